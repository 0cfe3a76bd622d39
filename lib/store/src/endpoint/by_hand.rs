//! Limits of deliveries that a coach orders by hand. pk `COACH#<coach_id>`, sk `BY_HAND#<endpoint_id>`: counters of
//! test events per calendar minute (module `window`), and the lock of a recovery: `recovery` (its id) and
//! `recovery_until` (ms).
//!
//! A recovery has the lock from its request to its last page, and each page prolongs it. The lock ends by itself if no
//! page comes for [`RECOVERY_LOCK`]: then another recovery may run beside this one. They send nothing twice.

use domain::delivery::{RECOVERY_LOCK, Recovery};
use domain::id::{CoachId, EndpointId};
use domain::rate_limit::TEST_EVENT;
use domain::time::Timestamp;

use super::{Endpoints, by_hand_key};
use crate::db::{ItemWrite, Part, RefusedTransaction, StoreError, Write, n, number, s};
use crate::window::{self, Counted};

impl Endpoints {
    /// Counts a test event for an endpoint.
    pub async fn count_test(&self, coach: &CoachId, id: &EndpointId, now: Timestamp) -> Result<Counted, StoreError> {
        window::count(&self.table, by_hand_key(coach, id), TEST_EVENT, now).await
    }

    /// Part of a transaction: locks an endpoint for a recovery. Refused while another recovery has the lock: see
    /// [`recovery_until`].
    pub fn begin_recovery(&self, coach: &CoachId, id: &EndpointId, recovery: &Recovery) -> Write {
        let now = recovery.begun_at;
        let lock = self.table.write(by_hand_key(coach, id)).set("recovery", s(recovery.id.as_str()));
        let lock = lock.set("recovery_until", n((now + RECOVERY_LOCK).ms()));
        lock.when("attribute_not_exists(recovery_until) OR recovery_until <= :now", [(":now", n(now.ms()))])
            .update(Part::Recovery)
    }

    /// Prolongs the lock of a recovery, if the recovery has it.
    pub async fn prolong_recovery(
        &self,
        coach: &CoachId,
        id: &EndpointId,
        recovery: &Recovery,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let prolong = self.locked(coach, id, recovery).set("recovery_until", n((now + RECOVERY_LOCK).ms()));
        prolong.update_now().await.map(drop)
    }

    /// Ends the lock of a recovery, if the recovery has it.
    pub async fn end_recovery(&self, coach: &CoachId, id: &EndpointId, recovery: &Recovery) -> Result<(), StoreError> {
        let end = self.locked(coach, id, recovery).remove(["recovery", "recovery_until"]);
        end.update_now().await.map(drop)
    }

    /// A write on condition that the recovery has the lock.
    fn locked(&self, coach: &CoachId, id: &EndpointId, recovery: &Recovery) -> ItemWrite<'_> {
        let held = [(":held", s(recovery.id.as_str()))];
        self.table.write(by_hand_key(coach, id)).when("recovery = :held", held)
    }
}

/// The end of the lock that refused a recovery. `None`: the transaction was refused for another reason.
pub fn recovery_until(refused: &RefusedTransaction) -> Option<Timestamp> {
    let lock = refused.item(Part::Recovery)?;
    number(lock, "recovery_until").map(Timestamp::from_ms)
}
