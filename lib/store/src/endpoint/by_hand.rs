//! Limits of what a coach orders for an endpoint by hand. pk `COACH#<coach_id>`, sk `BY_HAND#<endpoint_id>`: counters
//! of test events per calendar minute, as in module `window`, and the lease of a recovery: `recovery_owner`,
//! `recovery_until` (ms) and, once all is ordered, `recovery_last`, the delivery that was ordered last.
//!
//! A recovery runs until its last delivery has been attempted, or its lease has expired. A function that dies holds up
//! the next recovery for [`RECOVERY_LEASE`] at most.

use domain::delivery::RECOVERY_LEASE;
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::rate_limit::TEST_EVENT;
use domain::time::Timestamp;
use runtime::random_bytes;
use serde::Deserialize;

use super::Endpoints;
use crate::db::{Item, ItemWrite, StoreError, Written, from_item, n, s};
use crate::delivery::Deliveries;
use crate::window::{self, Counted};
use crate::workspace::key_of;

/// A recovery that is ours to run.
#[derive(Debug)]
pub struct RecoveryLease {
    key: Item,
    owner: String,
}

/// The result of beginning a recovery.
#[derive(Debug)]
pub enum RecoveryStart {
    Ours(RecoveryLease),
    /// Another recovery runs, until then at most.
    Running(Timestamp),
}

/// The lease that another recovery holds.
#[derive(Deserialize)]
struct RunningRecovery {
    recovery_owner: String,
    recovery_until: i64,
    recovery_last: Option<DeliveryId>,
}

impl Endpoints {
    /// Counts a test event for an endpoint.
    pub async fn count_test(&self, coach: &CoachId, id: &EndpointId, now: Timestamp) -> Result<Counted, StoreError> {
        window::count(&self.table, by_hand_key(coach, id), TEST_EVENT, now).await
    }

    /// Takes the lease of a recovery, unless another recovery runs.
    pub async fn begin_recovery(
        &self,
        coach: &CoachId,
        id: &EndpointId,
        deliveries: &Deliveries,
        now: Timestamp,
    ) -> Result<RecoveryStart, StoreError> {
        const EXPIRED: &str = "attribute_not_exists(recovery_until) OR recovery_until <= :now";
        let key = by_hand_key(coach, id);
        let owner = hex::encode(random_bytes::<8>());
        let lease = self.table.write(key.clone()).set("recovery_owner", s(&owner)).remove(["recovery_last"]);
        let lease = lease.set("recovery_until", n((now + RECOVERY_LEASE).ms()));
        let expired = lease.clone().when(EXPIRED, [(":now", n(now.ms()))]);
        let Some(held) = take_recovery(expired, &owner, now).await? else {
            return Ok(RecoveryStart::Ours(RecoveryLease { key, owner }));
        };
        let until = Timestamp::from_ms(held.recovery_until);
        let Some(last) = held.recovery_last else { return Ok(RecoveryStart::Running(until)) };
        if deliveries.waits_for_first_attempt(id, &last).await? {
            return Ok(RecoveryStart::Running(until));
        }
        let ended = lease.when("recovery_owner = :seen", [(":seen", s(&held.recovery_owner))]);
        Ok(match take_recovery(ended, &owner, now).await? {
            None => RecoveryStart::Ours(RecoveryLease { key, owner }),
            Some(held) => RecoveryStart::Running(Timestamp::from_ms(held.recovery_until)),
        })
    }

    /// Ends a recovery: at once where nothing was ordered, else when the delivery that was ordered last is attempted.
    pub async fn end_recovery(&self, lease: &RecoveryLease, last: Option<&DeliveryId>) -> Result<(), StoreError> {
        let held = self.table.write(lease.key.clone()).when("recovery_owner = :owner", [(":owner", s(&lease.owner))]);
        let ended = match last {
            Some(last) => held.set("recovery_last", s(last.as_str())),
            None => held.remove(["recovery_owner", "recovery_until", "recovery_last"]),
        };
        // Refused: the lease has expired, and another recovery holds it.
        ended.update_now().await?;
        Ok(())
    }
}

/// Takes the lease under a condition. Returns the lease of another recovery that holds it instead.
async fn take_recovery(
    lease: ItemWrite<'_>,
    owner: &str,
    now: Timestamp,
) -> Result<Option<RunningRecovery>, StoreError> {
    let Written::Refused(item) = lease.update_now().await? else { return Ok(None) };
    let held = match item {
        Some(item) if item.contains_key("recovery_owner") => from_item::<RunningRecovery>("recovery", item)?,
        // The holder has given the lease back meanwhile.
        _ => RunningRecovery { recovery_owner: String::new(), recovery_until: now.ms(), recovery_last: None },
    };
    // Ours: the answer to the update was lost.
    Ok((held.recovery_owner != owner).then_some(held))
}

pub(super) fn by_hand_key(coach: &CoachId, id: &EndpointId) -> Item {
    key_of(coach, &format!("BY_HAND#{id}"))
}
