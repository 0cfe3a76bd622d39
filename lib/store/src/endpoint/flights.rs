//! How many batches deliver to an endpoint at once. pk `COACH#<coach_id>`, sk `FLIGHTS#<endpoint_id>`: an attribute `s<n>` per slot, until
//! when it is taken, in ms. A slot whose holder died is free again when its time is over.
//!
//! Every batch needs a slot of each endpoint that it delivers to: one that hangs holds up few functions, whatever is queued for it.

use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure};
use domain::delivery::ATTEMPT_LEASE;
use domain::id::{CoachId, EndpointId};
use domain::time::Timestamp;

use super::{Endpoints, key, partition};
use crate::db::{Item, StoreError, Written, n, s, write};

/// A slot that is ours.
#[derive(Debug)]
pub struct Flight {
    slot: String,
    until: i64,
}

impl Flight {
    /// Whether it is the slot that is taken before all others.
    pub fn is_first(&self) -> bool {
        self.slot == "s0"
    }
}

impl Endpoints {
    /// Takes one of `slots` slots; `None` when all are taken.
    pub async fn take_flight(
        &self,
        coach: &CoachId,
        id: &EndpointId,
        slots: usize,
        now: Timestamp,
    ) -> Result<Option<Flight>, StoreError> {
        let until = (now + ATTEMPT_LEASE).ms();
        let mut free: Vec<String> = (0..slots).rev().map(|slot| format!("s{slot}")).collect();
        while let Some(slot) = free.pop() {
            let written = write("UpdateItem", || {
                let update = self.db.client().update_item().table_name(&self.table).set_key(Some(flights(coach, id)));
                update
                    .update_expression("SET #slot = :until")
                    .condition_expression("attribute_not_exists(#slot) OR #slot <= :now")
                    .expression_attribute_names("#slot", &slot)
                    .expression_attribute_values(":until", n(until))
                    .expression_attribute_values(":now", n(now.ms()))
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                    .return_consumed_capacity(ReturnConsumedCapacity::Total)
                    .send()
            });
            match written.await? {
                Written::Done(_) => return Ok(Some(Flight { slot, until })),
                // What was taken is seen at once; what has been given back meanwhile, the next time.
                Written::Refused(item) => free.retain(|slot| !is_taken(item.as_ref(), slot, now)),
            }
        }
        Ok(None)
    }

    /// Gives a slot back.
    pub async fn land(&self, coach: &CoachId, id: &EndpointId, flight: &Flight) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(flights(coach, id)));
            update
                .update_expression("REMOVE #slot")
                .condition_expression("#slot = :until")
                .expression_attribute_names("#slot", &flight.slot)
                .expression_attribute_values(":until", n(flight.until))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        // Refused: its time was over, and somebody else has it.
        written.await?;
        Ok(())
    }

    /// Notes that an endpoint is slow to answer, until then.
    pub async fn mark_slow(&self, coach: &CoachId, id: &EndpointId, until: Timestamp) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key(coach, id)));
            update
                .update_expression("SET slow_until = :until")
                .condition_expression("attribute_exists(pk)")
                .expression_attribute_values(":until", n(until.ms()))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        // Refused: it has been deleted.
        written.await?;
        Ok(())
    }
}

fn is_taken(item: Option<&Item>, slot: &str, now: Timestamp) -> bool {
    let until = item.and_then(|item| item.get(slot)).and_then(|until| until.as_n().ok());
    until.and_then(|until| until.parse::<i64>().ok()).is_some_and(|until| until > now.ms())
}

pub(super) fn flights(coach: &CoachId, id: &EndpointId) -> Item {
    Item::from([("pk".to_owned(), s(partition(coach))), ("sk".to_owned(), s(format!("FLIGHTS#{id}")))])
}
