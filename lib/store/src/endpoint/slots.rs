//! Slots and places of endpoints. pk `COACH#<coach_id>`, sk `SLOTS#<endpoint_id>`: an attribute `s<number>` for each
//! slot that is taken, `<until>#<owner>`, and `next_place` (ms), the first place that is not reserved.
//!
//! A slot is a lease: the slot of a function that died is free again when its time is over. It holds its owner, so that
//! a take whose answer was lost is recognized. Places are never given back: an order that does not come leaves its
//! place empty. Taking a slot, of an endpoint that answers in time, ends the reservations: a later queue begins anew.

use std::collections::VecDeque;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use chrono::TimeDelta;
use domain::delivery::ATTEMPT_LEASE;
use domain::id::{CoachId, EndpointId};
use domain::pace::{Pace, SLOTS};
use domain::time::Timestamp;
use runtime::random_bytes;
use serde::Deserialize;

use super::{Endpoints, key};
use crate::db::{Ask, Item, StoreError, Written, from_item, n, retry, s, write};
use crate::workspace::key_of;

/// A slot that is ours.
#[derive(Debug)]
pub struct Slot {
    key: Item,
    number: i32,
    holding: String,
}

/// The places of an endpoint.
#[derive(Default, Deserialize)]
struct Places {
    #[serde(default)]
    next_place: i64,
}

impl Endpoints {
    /// Acquires one of an endpoint's slots; `None` where all are taken.
    pub async fn acquire_slot(
        &self,
        coach: &CoachId,
        id: &EndpointId,
        now: Timestamp,
    ) -> Result<Option<Slot>, StoreError> {
        let (key, holding) = (slots_key(coach, id), holding(now));
        let mut free: VecDeque<i32> = (0..SLOTS).collect();
        while let Some(number) = free.pop_front() {
            let written = write("UpdateItem", || {
                self.update_slots(&key)
                    .update_expression("SET #slot = :holding REMOVE next_place")
                    .condition_expression("attribute_not_exists(#slot) OR #slot <= :over")
                    .expression_attribute_names("#slot", name(number))
                    .expression_attribute_values(":holding", s(&holding))
                    .expression_attribute_values(":over", s(over_by(now)))
                    .ask()
            });
            let Written::Refused(item) = written.await? else { return Ok(Some(Slot { key, number, holding })) };
            let item = item.unwrap_or_default();
            if holder(&item, number) == Some(&holding) {
                return Ok(Some(Slot { key, number, holding }));
            }
            free.retain(|number| !is_taken(&item, *number, now));
        }
        Ok(None)
    }

    /// Returns true if one of an endpoint's slots is free.
    pub async fn has_free_slot(&self, coach: &CoachId, id: &EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        let item = self.db.read(&self.table, vec![slots_key(coach, id)]).await?.pop().unwrap_or_default();
        Ok((0..SLOTS).any(|number| !is_taken(&item, number, now)))
    }

    /// Gives a slot back.
    pub async fn release_slot(&self, slot: &Slot) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            self.update_slots(&slot.key)
                .update_expression("REMOVE #slot")
                .condition_expression("#slot = :holding")
                .expression_attribute_names("#slot", name(slot.number))
                .expression_attribute_values(":holding", s(&slot.holding))
                .ask()
        });
        // Refused: its time was over, and another function has it.
        written.await?;
        Ok(())
    }

    /// Reserves a place at a late endpoint: behind the last one, or now where nobody waits and no slot is taken.
    pub async fn reserve_place(
        &self,
        coach: &CoachId,
        id: &EndpointId,
        gap: TimeDelta,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let key = slots_key(coach, id);
        retry("an endpoint's places", || async {
            let behind = write("UpdateItem", || {
                self.update_slots(&key)
                    .update_expression("ADD next_place :gap")
                    .condition_expression("next_place > :now")
                    .expression_attribute_values(":gap", n(gap.num_milliseconds()))
                    .expression_attribute_values(":now", n(now.ms()))
                    .return_values(ReturnValue::UpdatedNew)
                    .ask()
            });
            let item = match behind.await? {
                Written::Done(updated) => {
                    let places: Places = from_item("endpoint's places", updated.attributes.unwrap_or_default())?;
                    return Ok(Some(Timestamp::from_ms(places.next_place) + -gap));
                }
                Written::Refused(item) => item.unwrap_or_default(),
            };
            // Batches that began before the endpoint was late have its slots: the first place comes after them.
            let is_free = (0..SLOTS).all(|number| !is_taken(&item, number, now));
            let first = if is_free { now } else { now + gap * SLOTS };
            let begun = write("UpdateItem", || {
                self.update_slots(&key)
                    .update_expression("SET next_place = :next")
                    .condition_expression("attribute_not_exists(next_place) OR next_place <= :now")
                    .expression_attribute_values(":next", n((first + gap).ms()))
                    .expression_attribute_values(":now", n(now.ms()))
                    .ask()
            });
            Ok(matches!(begun.await?, Written::Done(_)).then_some(first))
        })
        .await
    }

    /// Notes the pace of an endpoint that is late.
    pub async fn note_pace(&self, coach: &CoachId, id: &EndpointId, pace: Pace) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key(coach, id)));
            // Another version: whoever puts the record as it was read must not undo this.
            update
                .update_expression("SET late_until = :until, late_gap_ms = :gap ADD version :one")
                .condition_expression("attribute_exists(pk)")
                .expression_attribute_values(":until", n(pace.until.ms()))
                .expression_attribute_values(":gap", n(pace.gap.num_milliseconds()))
                .expression_attribute_values(":one", n(1))
                .ask()
        });
        // Refused: the endpoint has been deleted.
        written.await?;
        Ok(())
    }

    fn update_slots(&self, key: &Item) -> UpdateItemFluentBuilder {
        let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key.clone()));
        update.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }
}

/// Who has a slot, or had it last.
fn holder(item: &Item, number: i32) -> Option<&String> {
    item.get(&name(number)).and_then(|held| held.as_s().ok())
}

fn is_taken(item: &Item, number: i32, now: Timestamp) -> bool {
    holder(item, number).is_some_and(|held| *held > over_by(now))
}

/// The value of a slot that is taken from `now` on.
fn holding(now: Timestamp) -> String {
    format!("{}#{}", over_by(now + ATTEMPT_LEASE), hex::encode(random_bytes::<8>()))
}

/// A slot with a value up to this is free again. Digits of one length are in the order of their numbers.
fn over_by(now: Timestamp) -> String {
    format!("{:015}", now.ms())
}

/// A slot's attribute.
fn name(number: i32) -> String {
    format!("s{number}")
}

pub(super) fn slots_key(coach: &CoachId, id: &EndpointId) -> Item {
    key_of(coach, &format!("SLOTS#{id}"))
}
