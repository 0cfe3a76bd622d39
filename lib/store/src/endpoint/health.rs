//! Health of endpoints, from the results of their attempts. Only changes are written: an endpoint that stays healthy,
//! or keeps failing, costs nothing.

use domain::audit::{AuditAction, AuditActor, AuditDetail};
use domain::change::Change;
use domain::delivery::EndpointAfter;
use domain::endpoint::{Endpoint, SignedEndpoint};
use domain::endpoint_health::{EndpointHealth, FailureEffect};
use domain::id::{CoachId, EventId};
use domain::notice::EndpointNotice;
use domain::time::Timestamp;

use super::{Endpoints, StoredEndpoint, key};
use crate::audit::{self, AuditContext};
use crate::db::{StoreError, retry, s, to_attribute};
use crate::outbox::{Content, Outbox};

/// A change of an endpoint's health.
enum HealthUpdate {
    Health(EndpointHealth),
    /// The endpoint has failed since this time, and its coach gets a notice.
    Warned(EndpointHealth, Timestamp),
    Off(Endpoint),
}

impl Endpoints {
    /// Records that an attempt at an endpoint succeeded at `at`, which may be long ago: a series of failures that began
    /// later continues.
    pub async fn note_success(&self, coach: &CoachId, read: &SignedEndpoint, at: Timestamp) -> Result<(), StoreError> {
        if read.health.is_healthy() && read.is_fresh(at) {
            return Ok(());
        }
        let Endpoint { id, url, .. } = &read.endpoint;
        // The version rises, so that a put of an older record cannot undo this update. Times compare as their texts do.
        let good = self.table.write(key(coach, id)).set("health", to_attribute(&EndpointHealth::default()));
        let values = [(":url", s(url.expose())), (":at", s(at.to_string()))];
        let good = good.count("version").when("#url = :url AND health.failing_since <= :at", values);
        // Refused: the success is recorded already, the failures began later, or the endpoint has another URL.
        good.update_now().await?;
        Ok(())
    }

    /// Records that an attempt at an event failed.
    pub async fn note_failure(
        &self,
        coach: &CoachId,
        read: &SignedEndpoint,
        event: &EventId,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<EndpointAfter, StoreError> {
        if read.is_fresh(now) && read.health.after_failure(event, now) == FailureEffect::Known {
            return Ok(EndpointAfter::On);
        }
        let update = |record: &StoredEndpoint, endpoint: &Endpoint| match record.health.after_failure(event, now) {
            FailureEffect::Known => None,
            FailureEffect::Failing(health) => Some(HealthUpdate::Health(health)),
            FailureEffect::Warn(health, since) => Some(HealthUpdate::Warned(health, since)),
            FailureEffect::TooLong(since) => endpoint.disabled_after_failures(since, now).map(HealthUpdate::Off),
        };
        self.note(coach, read, outbox, now, update).await
    }

    /// Records that the receiver answered 410.
    pub async fn note_gone(
        &self,
        coach: &CoachId,
        read: &SignedEndpoint,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<EndpointAfter, StoreError> {
        self.note(coach, read, outbox, now, |_, endpoint| endpoint.gone(now).map(HealthUpdate::Off)).await
    }

    async fn note(
        &self,
        coach: &CoachId,
        read: &SignedEndpoint,
        outbox: &Outbox,
        now: Timestamp,
        change: impl Fn(&StoredEndpoint, &Endpoint) -> Option<HealthUpdate>,
    ) -> Result<EndpointAfter, StoreError> {
        let id = &read.endpoint.id;
        retry("an endpoint", || async {
            let Some(record) = self.find(coach, id).await? else { return Ok(Some(EndpointAfter::On)) };
            let endpoint = record.endpoint.clone();
            if endpoint.url != read.endpoint.url {
                return Ok(Some(EndpointAfter::Moved));
            }
            let (writes, noted) = match change(&record, &endpoint) {
                None => return Ok(Some(EndpointAfter::On)),
                Some(HealthUpdate::Health(health)) => {
                    (vec![self.replace(StoredEndpoint { health, ..record })], EndpointAfter::On)
                }
                Some(HealthUpdate::Warned(health, since)) => {
                    let notice = Content::Notice(Box::new(EndpointNotice::failing(coach, &endpoint, since, now)));
                    let replaced = self.replace(StoredEndpoint { health, ..record });
                    (vec![replaced, outbox.put(&notice, now)], EndpointAfter::On)
                }
                Some(HealthUpdate::Off(off)) => {
                    let change = Content::Change(Box::new(Change::endpoint_disabled(coach, &off, now)));
                    let notice = Content::Notice(Box::new(EndpointNotice::off(coach, &off, now)));
                    let [change, notice] = [change, notice].map(|content| outbox.put(&content, now));
                    let context = AuditContext { coach, actor: &AuditActor::service(), now };
                    let detail = AuditDetail { status: Some(off.status), ..AuditDetail::of_endpoint(&off) };
                    let (action, target) = (AuditAction::EndpointDisabled, id.as_str());
                    let audited = audit::record(&self.table, context, action, target, detail);
                    let not_sent = off.not_sent();
                    let replaced = self.replace(StoredEndpoint { endpoint: off, ..record });
                    (vec![replaced, change, notice, audited], EndpointAfter::Off(not_sent))
                }
            };
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(noted))
        })
        .await
    }
}
