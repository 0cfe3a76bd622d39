//! How many batches deliver to an endpoint at once. pk `COACH#<coach_id>`, sk `FLIGHTS#<endpoint_id>`: an attribute `s<n>` per slot, until
//! when it is taken, in ms. A slot whose holder died is free again when its time is over.
//!
//! Every batch needs a slot of each endpoint that it delivers to: one that hangs holds up few functions, whatever is queued for it.

use std::collections::VecDeque;

use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure};
use domain::delivery::ATTEMPT_LEASE;
use domain::id::{CoachId, EndpointId};
use domain::time::Timestamp;

use super::{Endpoints, key, partition};
use crate::db::{Item, StoreError, Written, n, s, write};
use crate::statement::{Answer, Statement};

/// A slot that is ours.
#[derive(Debug)]
pub struct Flight {
    coach: CoachId,
    endpoint: EndpointId,
    slot: usize,
    until: i64,
}

impl Flight {
    /// Whether it is the slot that is taken before all others.
    pub fn is_first(&self) -> bool {
        self.slot == 0
    }
}

/// A slot that is being taken.
struct Taking<'a> {
    whose: &'a (CoachId, EndpointId),
    /// Slots that are not known to be taken.
    free: VecDeque<usize>,
    flight: Option<Flight>,
    /// It is done by itself.
    alone: bool,
}

impl Taking<'_> {
    /// The slot to be tried next.
    fn next(&self) -> Option<usize> {
        if self.flight.is_some() || self.alone { None } else { self.free.front().copied() }
    }
}

impl Endpoints {
    /// Takes one of `slots` slots of each endpoint; `None` where all are taken.
    pub async fn take_flights(
        &self,
        endpoints: &[(CoachId, EndpointId)],
        slots: usize,
        now: Timestamp,
    ) -> Vec<Answer<'_, Option<Flight>>> {
        let until = (now + ATTEMPT_LEASE).ms();
        let mut takings: Vec<Taking<'_>> = endpoints
            .iter()
            .map(|whose| Taking { whose, free: (0..slots).collect(), flight: None, alone: false })
            .collect();
        for _ in 0..slots {
            let mut open: Vec<(&mut Taking<'_>, usize)> =
                takings.iter_mut().filter_map(|taking| taking.next().map(|slot| (taking, slot))).collect();
            let statements = open.iter().map(|(taking, slot)| self.taking(taking.whose, *slot, until, now)).collect();
            for ((taking, slot), tried) in open.iter_mut().zip(self.db.try_all(statements).await) {
                match tried {
                    Some(Written::Done(_)) => taking.flight = Some(flight(taking.whose, *slot, until)),
                    Some(Written::Refused(Some(item))) => taking.free.retain(|slot| !is_taken(Some(&item), *slot, now)),
                    // There has been no batch yet, or it is not known what came of it.
                    Some(Written::Refused(None)) | None => taking.alone = true,
                }
            }
        }
        let flights = takings.into_iter().map(|Taking { whose, free, flight, alone }| match flight {
            None if alone => {
                let whose = whose.clone();
                Answer::awaited(async move { self.take_one_of(&whose, free, now).await })
            }
            flight => Answer::Here(Ok(flight)),
        });
        flights.collect()
    }

    /// Takes a slot, where the item is there: a statement makes none.
    fn taking(&self, (coach, id): &(CoachId, EndpointId), slot: usize, until: i64, now: Timestamp) -> Statement {
        let slot = name(slot);
        Statement::update(
            (&self.table, partition(coach), sort_key(id)),
            (&format!("SET {slot} = ?"), vec![n(until)]),
            (&format!("({slot} IS MISSING OR {slot} <= ?)"), vec![n(now.ms())]),
        )
    }

    async fn take_one_of(
        &self,
        whose: &(CoachId, EndpointId),
        mut free: VecDeque<usize>,
        now: Timestamp,
    ) -> Result<Option<Flight>, StoreError> {
        let (coach, id) = whose;
        let until = (now + ATTEMPT_LEASE).ms();
        while let Some(slot) = free.pop_front() {
            let written = write("UpdateItem", || {
                let update = self.db.client().update_item().table_name(&self.table).set_key(Some(flights(coach, id)));
                update
                    .update_expression("SET #slot = :until")
                    .condition_expression("attribute_not_exists(#slot) OR #slot <= :now")
                    .expression_attribute_names("#slot", name(slot))
                    .expression_attribute_values(":until", n(until))
                    .expression_attribute_values(":now", n(now.ms()))
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                    .return_consumed_capacity(ReturnConsumedCapacity::Total)
                    .send()
            });
            match written.await? {
                Written::Done(_) => return Ok(Some(flight(whose, slot, until))),
                // What was taken is seen at once; what has been given back meanwhile, the next time.
                Written::Refused(item) => free.retain(|slot| !is_taken(item.as_ref(), *slot, now)),
            }
        }
        Ok(None)
    }

    /// Gives slots back; what came of each, in their order.
    pub async fn land(&self, landing: Vec<Flight>) -> Vec<Answer<'_, ()>> {
        let statement = |flight: &Flight| {
            let slot = name(flight.slot);
            Statement::update(
                (&self.table, partition(&flight.coach), sort_key(&flight.endpoint)),
                (&format!("REMOVE {slot}"), Vec::new()),
                (&format!("{slot} = ?"), vec![n(flight.until)]),
            )
        };
        let tried = self.db.try_all(landing.iter().map(statement).collect()).await;
        let landed = landing.into_iter().zip(tried).map(|(flight, tried)| match tried {
            // Refused: its time was over, and somebody else has it.
            Some(_) => Answer::Here(Ok(())),
            None => Answer::awaited(async move { self.land_alone(&flight).await }),
        });
        landed.collect()
    }

    async fn land_alone(&self, flight: &Flight) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let key = flights(&flight.coach, &flight.endpoint);
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key));
            update
                .update_expression("REMOVE #slot")
                .condition_expression("#slot = :until")
                .expression_attribute_names("#slot", name(flight.slot))
                .expression_attribute_values(":until", n(flight.until))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        // Refused: as above.
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

fn flight((coach, endpoint): &(CoachId, EndpointId), slot: usize, until: i64) -> Flight {
    Flight { coach: coach.clone(), endpoint: endpoint.clone(), slot, until }
}

fn is_taken(item: Option<&Item>, slot: usize, now: Timestamp) -> bool {
    let until = item.and_then(|item| item.get(&name(slot))).and_then(|until| until.as_n().ok());
    until.and_then(|until| until.parse::<i64>().ok()).is_some_and(|until| until > now.ms())
}

/// A slot's attribute.
fn name(slot: usize) -> String {
    format!("s{slot}")
}

fn sort_key(id: &EndpointId) -> String {
    format!("FLIGHTS#{id}")
}

pub(super) fn flights(coach: &CoachId, id: &EndpointId) -> Item {
    Item::from([("pk".to_owned(), s(partition(coach))), ("sk".to_owned(), s(sort_key(id)))])
}
