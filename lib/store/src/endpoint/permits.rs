//! Permits and places of endpoints. pk `COACH#<coach_id>`, sk `PERMITS#<endpoint_id>`: an attribute `s<number>` for
//! each taken permit, `<until>#<owner>`, and `next_place` (ms), the first place that is not reserved.
//!
//! A permit is a lease: the permit of a function that died is free again when its time is over. The owner in the value
//! recognizes an own update whose answer was lost. Places are never released: an order that does not arrive leaves its
//! place empty. Only an endpoint that answers in time uses permits, so acquiring a permit deletes `next_place`: if the
//! endpoint becomes late again, its places start from then.

use std::collections::VecDeque;

use chrono::TimeDelta;
use domain::delivery::ATTEMPT_LEASE;
use domain::id::{CoachId, EndpointId};
use domain::pace::{PERMITS, Pace};
use domain::time::Timestamp;
use runtime::random_bytes;

use super::{Endpoints, key, permits_key};
use crate::db::{Item, StoreError, Written, n, number, retry, s, text};

/// A permit that this batch holds.
#[derive(Debug)]
pub struct Permit {
    key: Item,
    number: i32,
    holding: String,
}

impl Endpoints {
    /// Acquires one of an endpoint's permits; `None` if all are taken.
    pub async fn acquire_permit(
        &self,
        coach: &CoachId,
        id: &EndpointId,
        now: Timestamp,
    ) -> Result<Option<Permit>, StoreError> {
        let (key, holding) = (permits_key(coach, id), holding(now));
        let mut free: VecDeque<i32> = (0..PERMITS).collect();
        while let Some(number) = free.pop_front() {
            let permit = name(number);
            let is_free = format!("attribute_not_exists(#{permit}) OR #{permit} <= :over");
            let update = self.table.write(key.clone()).set(&permit, s(&holding)).remove(["next_place"]);
            let written = update.when(is_free, [(":over", s(over_by(now)))]).update_now().await?;
            let item = match written {
                Written::Done(_) => return Ok(Some(Permit { key, number, holding })),
                Written::Refused(item) => item.unwrap_or_default(),
            };
            // Ours: the answer to the update was lost.
            if text(&item, &permit) == holding {
                return Ok(Some(Permit { key, number, holding }));
            }
            free.retain(|number| !is_taken(&item, *number, now));
        }
        Ok(None)
    }

    /// Returns true if one of an endpoint's permits is free.
    pub async fn has_free_permit(&self, coach: &CoachId, id: &EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        let item = self.table.read(vec![permits_key(coach, id)]).await?.pop().unwrap_or_default();
        Ok((0..PERMITS).any(|number| !is_taken(&item, number, now)))
    }

    /// Releases a permit.
    pub async fn release_permit(&self, permit: &Permit) -> Result<(), StoreError> {
        let name = name(permit.number);
        let held = format!("#{name} = :holding");
        let update = self.table.write(permit.key.clone()).remove([name.as_str()]);
        // Refused: the lease had expired, and another function has it.
        update.when(held, [(":holding", s(&permit.holding))]).update_now().await?;
        Ok(())
    }

    /// Reserves a place at a late endpoint: after the last place, or now if no place is reserved and no permit taken.
    pub async fn reserve_place(
        &self,
        coach: &CoachId,
        id: &EndpointId,
        gap: TimeDelta,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let (permits, at) = (self.table.write(permits_key(coach, id)), [(":now", n(now.ms()))]);
        retry("an endpoint's places", || async {
            let behind = permits.clone().add("next_place", n(gap.num_milliseconds())).returning_item();
            let item = match behind.when("next_place > :now", at.clone()).update_now().await? {
                Written::Done(item) => {
                    let next_place = number(&item, "next_place").unwrap_or(0);
                    return Ok(Some(Timestamp::from_ms(next_place) + -gap));
                }
                Written::Refused(item) => item.unwrap_or_default(),
            };
            // Batches that began before the endpoint was late have its permits: the first place comes after them.
            let is_free = (0..PERMITS).all(|number| !is_taken(&item, number, now));
            let first = if is_free { now } else { now + gap * PERMITS };
            let begun = permits.clone().set("next_place", n((first + gap).ms()));
            let begun = begun.when("attribute_not_exists(next_place) OR next_place <= :now", at.clone());
            Ok(begun.update_now().await?.is_done().then_some(first))
        })
        .await
    }

    /// Records the pace of a late endpoint.
    pub async fn note_pace(&self, coach: &CoachId, id: &EndpointId, pace: Pace) -> Result<(), StoreError> {
        // The version rises, so that a put of an older record cannot undo this update.
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

/// The value of a permit that is taken from `now` on.
fn holding(now: Timestamp) -> String {
    format!("{}#{}", over_by(now + ATTEMPT_LEASE), hex::encode(random_bytes::<8>()))
}

/// The value up to which a permit is free at `now`. Numbers with the same count of digits sort as texts.
fn over_by(now: Timestamp) -> String {
    format!("{:015}", now.ms())
}

/// A permit's attribute.
fn name(number: i32) -> String {
    format!("s{number}")
}
