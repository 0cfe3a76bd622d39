//! Health of endpoints, from the results of their attempts. Only changes are written: an endpoint that stays healthy,
//! or keeps failing, costs nothing.

use domain::audit::{AuditAction, AuditActor, AuditDetail};
use domain::breaker::Breaker;
use domain::change::Change;
use domain::delivery::EndpointAfter;
use domain::endpoint::{Endpoint, SignedEndpoint};
use domain::endpoint_health::{EndedAttempt, EndpointHealth, HealthEffect};
use domain::id::CoachId;
use domain::notice::EndpointNotice;
use domain::time::Timestamp;

use super::{Endpoints, StoredEndpoint, resume_due};
use crate::audit::{self, AuditContext};
use crate::db::{StoreError, retry};
use crate::outbox::Content;
use crate::unit::{Commit, Once, Unit, Units};

impl Endpoints {
    /// Records an attempt in the endpoint's health: warns the coach, or ends the endpoint.
    pub async fn record_attempt(
        &self,
        units: &Units,
        coach: &CoachId,
        read: &SignedEndpoint,
        attempt: &EndedAttempt<'_>,
    ) -> Result<EndpointAfter, StoreError> {
        let now = attempt.ended_at;
        if read.is_fresh(now) && read.health.after(attempt) == HealthEffect::Health(read.health.clone()) {
            return Ok(EndpointAfter::On);
        }
        retry("an endpoint", || async {
            let Some(record) = self.find(coach, &read.endpoint.id).await? else { return Ok(Some(EndpointAfter::On)) };
            if record.endpoint.url != read.endpoint.url {
                return Ok(Some(EndpointAfter::Moved));
            }
            let (unit, after) = match record.health.after(attempt) {
                HealthEffect::Health(health) if health == record.health => return Ok(Some(EndpointAfter::On)),
                HealthEffect::Health(health) => (self.in_health(coach, record, health, attempt), EndpointAfter::On),
                HealthEffect::Warn(health, since) => {
                    let notice = EndpointNotice::failing(coach, &record.endpoint, since, now);
                    let unit = self.in_health(coach, record, health, attempt);
                    (unit.entries([Content::Notice(Box::new(notice))]), EndpointAfter::On)
                }
                HealthEffect::TooLong(since) => match record.endpoint.disabled_after_failures(since, now) {
                    Some(off) => self.off(coach, record, off, now),
                    None => return Ok(Some(EndpointAfter::On)),
                },
                HealthEffect::Gone => match record.endpoint.gone(now) {
                    Some(off) => self.off(coach, record, off, now),
                    None => return Ok(Some(EndpointAfter::On)),
                },
            };
            Ok(matches!(units.commit(unit, Once::ByVersion, now).await?, Commit::Done).then_some(after))
        })
        .await
    }

    /// The endpoint in another health. If an attempt that did not wait for the breaker closes it, the deliveries that
    /// wait are sent.
    fn in_health(
        &self,
        coach: &CoachId,
        record: StoredEndpoint,
        health: EndpointHealth,
        attempt: &EndedAttempt<'_>,
    ) -> Unit {
        let is_closed_early = |breaker: &Breaker| breaker.is_closed_early_by(&health.breaker, attempt.ended_at);
        let is_early = is_closed_early(&attempt.breaker) && is_closed_early(&record.health.breaker);
        let resume = is_early.then(|| resume_due(coach, &record.endpoint, attempt.ended_at));
        Unit::new().write([self.replace(StoredEndpoint { health, ..record })]).entries(resume)
    }

    /// The end of an endpoint, which the application, the coach and the audit trail learn of.
    fn off(&self, coach: &CoachId, record: StoredEndpoint, off: Endpoint, now: Timestamp) -> (Unit, EndpointAfter) {
        let context = AuditContext { coach, actor: &AuditActor::service(), now };
        let detail = AuditDetail { status: Some(off.status), ..AuditDetail::of_endpoint(&off) };
        let audited = audit::record(&self.table, context, AuditAction::EndpointDisabled, off.id.as_str(), detail);
        let notice = Content::Notice(Box::new(EndpointNotice::off(coach, &off, now)));
        let (change, reason) = (Change::endpoint_disabled(coach, &off, now), off.not_sent());
        let unit = Unit::new().write([self.replace(record.with_endpoint(off, now)), audited]);
        (unit.change([change]).entries([notice]), EndpointAfter::Off(reason))
    }
}
