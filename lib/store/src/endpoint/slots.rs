//! Slots and places of endpoints. pk `COACH#<coach_id>`, sk `SLOTS#<endpoint_id>`: an attribute `s<number>` for each
//! slot that is taken, `<until>#<owner>`, and `next_place` (ms), the first place that is not reserved.
//!
//! A slot is a lease: the slot of a function that died is free again when its time is over. It holds its owner, so that
//! a take whose answer was lost is recognized. Places are never given back: an order that does not come leaves its
//! place empty. Taking a slot, of an endpoint that answers in time, ends the reservations: a later queue begins anew.

use std::collections::VecDeque;

use chrono::TimeDelta;
use domain::delivery::ATTEMPT_LEASE;
use domain::id::{CoachId, EndpointId};
use domain::pace::{Pace, SLOTS};
use domain::time::Timestamp;
use runtime::random_bytes;

use super::{Endpoints, key};
use crate::db::{Item, StoreError, Written, n, number, retry, s, text};
use crate::workspace::key_of;

/// A slot that is ours.
#[derive(Debug)]
pub struct Slot {
    key: Item,
    number: i32,
    holding: String,
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
            let slot = name(number);
            let is_free = format!("attribute_not_exists(#{slot}) OR #{slot} <= :over");
            let update = self.table.write(key.clone()).set(&slot, s(&holding)).remove(["next_place"]);
            let written = update.when(is_free, [(":over", s(over_by(now)))]).update_now().await?;
            let Written::Refused(item) = written else { return Ok(Some(Slot { key, number, holding })) };
            let item = item.unwrap_or_default();
            if text(&item, &slot) == holding {
                return Ok(Some(Slot { key, number, holding }));
            }
            free.retain(|number| !is_taken(&item, *number, now));
        }
        Ok(None)
    }

    /// Returns true if one of an endpoint's slots is free.
    pub async fn has_free_slot(&self, coach: &CoachId, id: &EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        let item = self.table.read(vec![slots_key(coach, id)]).await?.pop().unwrap_or_default();
        Ok((0..SLOTS).any(|number| !is_taken(&item, number, now)))
    }

    /// Gives a slot back.
    pub async fn release_slot(&self, slot: &Slot) -> Result<(), StoreError> {
        let name = name(slot.number);
        let held = format!("#{name} = :holding");
        let update = self.table.write(slot.key.clone()).remove([name.as_str()]);
        // Refused: its time was over, and another function has it.
        update.when(held, [(":holding", s(&slot.holding))]).update_now().await?;
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
        let (slots, at) = (self.table.write(slots_key(coach, id)), [(":now", n(now.ms()))]);
        retry("an endpoint's places", || async {
            let behind = slots.clone().add("next_place", n(gap.num_milliseconds())).returning_item();
            let item = match behind.when("next_place > :now", at.clone()).update_now().await? {
                Written::Done(item) => {
                    let next_place = number(&item, "next_place").unwrap_or(0);
                    return Ok(Some(Timestamp::from_ms(next_place) + -gap));
                }
                Written::Refused(item) => item.unwrap_or_default(),
            };
            // Batches that began before the endpoint was late have its slots: the first place comes after them.
            let is_free = (0..SLOTS).all(|number| !is_taken(&item, number, now));
            let first = if is_free { now } else { now + gap * SLOTS };
            let begun = slots.clone().set("next_place", n((first + gap).ms()));
            let begun = begun.when("attribute_not_exists(next_place) OR next_place <= :now", at.clone());
            Ok(begun.update_now().await?.is_done().then_some(first))
        })
        .await
    }

    /// Notes the pace of an endpoint that is late.
    pub async fn note_pace(&self, coach: &CoachId, id: &EndpointId, pace: Pace) -> Result<(), StoreError> {
        // A put of the record as it was read must not undo this: the version moves.
        let update = self.table.write(key(coach, id)).set("late_until", n(pace.until.ms())).count("version");
        let update = update.set("late_gap_ms", n(pace.gap.num_milliseconds())).when_present();
        // Refused: the endpoint has been deleted.
        update.update_now().await?;
        Ok(())
    }
}

fn is_taken(item: &Item, number: i32, now: Timestamp) -> bool {
    *text(item, &name(number)) > *over_by(now)
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
