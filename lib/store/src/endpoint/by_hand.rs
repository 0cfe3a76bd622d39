//! Limits of deliveries that a coach orders by hand. pk `COACH#<coach_id>`, sk `BY_HAND#<endpoint_id>`: counters of
//! test events per calendar minute (module `window`), and the lease of a recovery: `recovery_owner`, `recovery_until`
//! (ms) and, after the last order, `recovery_last`: the delivery that was ordered last.
//!
//! A recovery runs until its last delivery has been attempted, or its lease has expired. A function that dies delays
//! the next recovery by at most [`RECOVERY_LEASE`].

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

/// The lease of a recovery that this request runs.
#[derive(Debug)]
pub struct RecoveryLease {
    key: Item,
    owner: String,
}

/// The result of beginning a recovery.
#[derive(Debug)]
pub enum RecoveryStart {
    Ours(RecoveryLease),
    /// Another recovery runs, at most until this time.
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

    /// Acquires the lease of a recovery, unless another recovery runs.
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
        let running = match acquire_recovery(expired, &owner, now).await? {
            None => return Ok(RecoveryStart::Ours(RecoveryLease { key, owner })),
            Some(running) => running,
        };
        let has_ended = match &running.recovery_last {
            Some(last) => !deliveries.waits_for_first_attempt(id, last).await?,
            None => false,
        };
        if !has_ended {
            return Ok(RecoveryStart::Running(Timestamp::from_ms(running.recovery_until)));
        }
        let ended = lease.when("recovery_owner = :seen", [(":seen", s(&running.recovery_owner))]);
        Ok(match acquire_recovery(ended, &owner, now).await? {
            None => RecoveryStart::Ours(RecoveryLease { key, owner }),
            Some(running) => RecoveryStart::Running(Timestamp::from_ms(running.recovery_until)),
        })
    }

    /// Ends a recovery: at once if it ordered nothing, else when the delivery that was ordered last is attempted.
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

/// Acquires the lease under the condition of `lease`. Returns the lease of another recovery if that one holds it.
async fn acquire_recovery(
    lease: ItemWrite<'_>,
    owner: &str,
    now: Timestamp,
) -> Result<Option<RunningRecovery>, StoreError> {
    let running = match lease.update_now().await? {
        Written::Done(_) => return Ok(None),
        Written::Refused(Some(item)) if item.contains_key("recovery_owner") => from_item("recovery", item)?,
        // The holder has released the lease meanwhile.
        Written::Refused(_) => {
            RunningRecovery { recovery_owner: String::new(), recovery_until: now.ms(), recovery_last: None }
        }
    };
    // Ours: the answer to the update was lost.
    Ok((running.recovery_owner != owner).then_some(running))
}

pub(super) fn by_hand_key(coach: &CoachId, id: &EndpointId) -> Item {
    key_of(coach, &format!("BY_HAND#{id}"))
}
