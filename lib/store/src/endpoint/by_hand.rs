//! Limits of deliveries that a coach orders by hand. pk `COACH#<coach_id>`, sk `BY_HAND#<endpoint_id>`: counters of
//! test events per calendar minute (module `window`), and the lease of a recovery: `recovery_owner`, `recovery_until`
//! (ms) and, after the last order, `recovery_last`: the delivery that was ordered last.
//!
//! The lease of a recovery ends when the last delivery that it enqueued is attempted, at the latest after
//! [`RECOVERY_LEASE`]. A repeated request under the same idempotency key continues its own recovery.
//!
//! A recovery is in the audit trail from its beginning. Its end adds the number of deliveries, so the line of a
//! recovery that was interrupted has none.

use domain::audit::AuditDetail;
use domain::delivery::RECOVERY_LEASE;
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::rate_limit::TEST_EVENT;
use domain::time::Timestamp;
use futures::future::try_join;
use serde::Deserialize;

use super::{Endpoints, by_hand_key};
use crate::audit::{self, AuditContext};
use crate::db::{Item, ItemWrite, StoreError, Written, from_item, n, s};
use crate::delivery::{Deliveries, Recovery};
use crate::window::{self, Counted};

/// The lease of a recovery that this request runs.
#[derive(Debug)]
pub struct RecoveryLease {
    key: Item,
    owner: String,
    /// The key of the recovery's line in the audit trail.
    line: Item,
}

/// A recovery that begins.
pub struct NewRecovery<'a> {
    /// The context of its first request: another request may continue it later.
    pub context: AuditContext<'a>,
    pub endpoint: &'a EndpointId,
    /// Equal for the requests of one recovery, and hexadecimal.
    pub owner: &'a str,
    pub detail: AuditDetail,
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

    /// Acquires the lease of a recovery, unless a recovery of another owner runs.
    pub async fn begin_recovery(
        &self,
        recovery: NewRecovery<'_>,
        deliveries: &Deliveries,
        now: Timestamp,
    ) -> Result<RecoveryStart, StoreError> {
        let NewRecovery { context, endpoint: id, owner, detail } = recovery;
        let (key, owner) = (by_hand_key(context.coach, id), owner.to_owned());
        if let Some(until) = self.acquire_recovery_lease(&key, id, &owner, deliveries, now).await? {
            return Ok(RecoveryStart::Running(until));
        }
        let line = audit::begin_recovery(&self.table, context, &owner, id, detail).await?;
        Ok(RecoveryStart::Ours(RecoveryLease { key, owner, line }))
    }

    /// Acquires a lease, or returns the end of another owner's.
    async fn acquire_recovery_lease(
        &self,
        key: &Item,
        id: &EndpointId,
        owner: &str,
        deliveries: &Deliveries,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        const FREE: &str = "attribute_not_exists(recovery_until) OR recovery_until <= :now OR recovery_owner = :owner";
        let lease = self.table.write(key.clone()).set("recovery_owner", s(owner)).remove(["recovery_last"]);
        let lease = lease.set("recovery_until", n((now + RECOVERY_LEASE).ms()));
        let free = lease.clone().when(FREE, [(":now", n(now.ms())), (":owner", s(owner))]);
        let running = match acquire_recovery(free, owner, now).await? {
            None => return Ok(None),
            Some(running) => running,
        };
        let has_ended = match &running.recovery_last {
            Some(last) => !deliveries.waits_for_first_attempt(id, last).await?,
            None => false,
        };
        if !has_ended {
            return Ok(Some(Timestamp::from_ms(running.recovery_until)));
        }
        let ended = lease.when("recovery_owner = :seen", [(":seen", s(&running.recovery_owner))]);
        let running = acquire_recovery(ended, owner, now).await?;
        Ok(running.map(|running| Timestamp::from_ms(running.recovery_until)))
    }

    /// Ends a recovery: at once if it enqueued nothing, else when the delivery that was enqueued last is attempted.
    pub async fn end_recovery(&self, lease: &RecoveryLease, recovery: &Recovery) -> Result<(), StoreError> {
        let held = self.table.write(lease.key.clone()).when("recovery_owner = :owner", [(":owner", s(&lease.owner))]);
        let ended = match &recovery.last {
            Some(last) => held.set("recovery_last", s(last.as_str())),
            None => held.remove(["recovery_owner", "recovery_until", "recovery_last"]),
        };
        let line = self.table.write(lease.line.clone()).when_present();
        let line = line.set("detail.deliveries", n(recovery.deliveries));
        // Refused: the lease has expired, and another recovery holds it.
        try_join(ended.update_now(), line.update_now()).await?;
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
