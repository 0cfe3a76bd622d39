//! Deliveries that a coach orders: a test event, the retry of one delivery, the recovery of all failed deliveries. The
//! answer comes once the outbox entries of the orders are stored. The delivery log shows the results.
//!
//! The receiver may belong to a stranger, so orders are limited: test events per minute and endpoint, one recovery at a
//! time, and all requests per minute.

use std::time::Instant;

use axum::extract::State;
use axum::response::Response;
use domain::audit::{AuditAction, AuditDetail};
use domain::delivery::{COUNTING_TIME, Ordered, RECOVERY_TIME, Recovered, RecoveryRequest, recovery_ends_in_s};
use domain::endpoint::{Endpoint, EndpointStatus};
use domain::event::EventName;
use domain::fields::Fields;
use domain::id::{DeliveryId, EventId};
use domain::subject::Subject;
use domain::test_event;
use edge::{About, Command, Decision, Inbound, Problem, Reply};
use runtime::{error_chain, random_bytes};
use store::audit::AuditContext;
use store::claim::Claim;
use store::delivery::{
    Failures, NewDelivery, RecoverableCount, Recovery, RecoveryEnd, ResendLookup, ResendableDelivery,
};
use store::endpoint::{NewRecovery, RecoveryStart, StoredEndpoint};
use store::endpoint_ref::EndpointRef;

use crate::App;
use crate::deliveries::{DELIVERY, delivery_id};
use crate::session::{Session, refuse_fields};
use crate::webhooks::find;

/// `POST /settings/webhooks/{id}/test`
pub(crate) async fn test(State(app): State<App>, inbound: Inbound) -> Response {
    app.sessions.run(&inbound, &Test { app: &app, inbound: &inbound, random: random_bytes() }).await
}

/// `POST /settings/webhooks/{id}/deliveries/{delivery_id}/retry`
pub(crate) async fn retry(State(app): State<App>, inbound: Inbound) -> Response {
    app.sessions.run(&inbound, &Retry { app: &app, inbound: &inbound }).await
}

struct Test<'a> {
    app: &'a App,
    inbound: &'a Inbound,
    random: [u8; 12],
}

impl Command for Test<'_> {
    type Caller = Session;
    type Snapshot = (EventName, Endpoint);

    async fn read(&self, session: &Session) -> Result<Self::Snapshot, Problem> {
        let endpoint = find_enabled(self.app, session, self.inbound).await?;
        let event_type = test_event::parse(self.inbound.json_if_sent()?, &endpoint.events)?;
        count_test(self.app, session, &endpoint).await?;
        Ok((event_type, endpoint))
    }

    fn decide(&self, session: &Session, (event_type, endpoint): &Self::Snapshot) -> Result<Decision, Problem> {
        let event_id = EventId::derive(session.now.ms(), &["test", &hex::encode(self.random)]);
        let delivery_id = DeliveryId::derive(session.now.ms(), &event_id, &endpoint.id);
        let delivery = NewDelivery {
            coach_id: &session.coach,
            endpoint_id: &endpoint.id,
            id: delivery_id.clone(),
            event_id: &event_id,
            event_type: event_type.as_str(),
            subject: &Subject::default(),
            made_at: session.now,
            may_repeat: false,
            body: test_event::body(*event_type, endpoint.payload_mode, session.now),
            not_sent: None,
        };
        let detail = AuditDetail::of_test(endpoint, *event_type, &delivery_id);
        let audited = self.app.audit(session, AuditAction::EndpointTestSent, &endpoint.id, detail);
        let (write, order) = self.app.deliveries.create_test(delivery, session.now);
        let reply = Reply::accepted(&Ordered { delivery_id })?;
        Ok(Decision::reply(About::Nobody, reply).write([write, audited]).entry(order))
    }
}

struct Retry<'a> {
    app: &'a App,
    inbound: &'a Inbound,
}

impl Command for Retry<'_> {
    type Caller = Session;
    type Snapshot = (Endpoint, Box<ResendableDelivery>);

    async fn read(&self, session: &Session) -> Result<Self::Snapshot, Problem> {
        refuse_fields(self.inbound)?;
        let endpoint = find_enabled(self.app, session, self.inbound).await?;
        let id = delivery_id(self.inbound.parameter(1))?;
        let kept = match self.app.deliveries.find(&endpoint.id, &id, session.now).await? {
            ResendLookup::Ready(kept) => kept,
            ResendLookup::Erased => return Err(Problem::DeliveryErased),
            ResendLookup::NotFound => return Err(Problem::NotFound(DELIVERY)),
        };
        if kept.is_test() {
            count_test(self.app, session, &endpoint).await?;
        }
        Ok((endpoint, kept))
    }

    fn decide(&self, session: &Session, (endpoint, kept): &Self::Snapshot) -> Result<Decision, Problem> {
        let endpoint_ref = EndpointRef { coach: session.coach.clone(), id: endpoint.id.clone() };
        let detail = AuditDetail {
            endpoint_id: Some(endpoint.id.clone()),
            event_type: Some(kept.event_type().to_owned()),
            ..AuditDetail::of_endpoint(endpoint)
        };
        let delivery_id = kept.id().clone();
        let audited = self.app.audit(session, AuditAction::DeliveryRetried, &delivery_id, detail);
        let (write, order) = self.app.deliveries.restart(&endpoint_ref, kept, session.now);
        let reply = Reply::accepted(&Ordered { delivery_id })?;
        Ok(Decision::reply(About::Nobody, reply).write([write, audited]).entry(order))
    }
}

/// `POST /settings/webhooks/{id}/recover`
///
/// A recovery is many transactions, so its answer is recorded after them. If the function dies before, a repeat under
/// the same idempotency key continues the recovery: it leaves out failures after the first request, and everything that
/// was sent again since then. Its answer counts the rest.
pub(crate) async fn recover(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: &Session, claim: Option<&Claim>| {
        let RecoveryRequest { selection, dry_run } = RecoveryRequest::parse(Fields::body(inbound.json()?)?)?;
        let endpoint = find_enabled(&app, session, &inbound).await?;
        let now = session.now;
        let begun_at = claim.map_or(now, |claim| claim.since);
        let failures = Failures { selection: &selection, begun_at, now };
        if dry_run {
            let until = Instant::now() + COUNTING_TIME;
            let RecoverableCount { deliveries, is_complete } =
                app.deliveries.count_recoverable(&endpoint.id, &failures, until).await?;
            return Reply::ok(&Recovered { deliveries, more: !is_complete });
        }
        let until = Instant::now() + RECOVERY_TIME;
        let recovery = NewRecovery {
            context: AuditContext { now: begun_at, ..session.context() },
            endpoint: &endpoint.id,
            owner: &claim.map_or_else(|| hex::encode(random_bytes::<8>()), |claim| claim.key_hash().to_owned()),
            detail: AuditDetail::of_recovery(&endpoint, &selection),
        };
        let lease = match app.endpoints.begin_recovery(recovery, &app.deliveries, now).await? {
            RecoveryStart::Ours(lease) => lease,
            RecoveryStart::Running(until) => {
                return Err(Problem::RecoveryRunning { retry_after_s: recovery_ends_in_s(until, now) });
            }
        };
        let endpoint_ref = EndpointRef { coach: session.coach.clone(), id: endpoint.id.clone() };
        let recovery = app.deliveries.recover(&endpoint_ref, &failures, &app.outbox, until).await;
        if let Err(error) = app.endpoints.end_recovery(&lease, &recovery).await {
            tracing::warn!(endpoint_id = %endpoint.id, error = error_chain(&error), "could not end a recovery; its lease expires");
        }
        let Recovery { deliveries, end, .. } = recovery;
        let more = match end {
            RecoveryEnd::Complete => false,
            RecoveryEnd::OutOfTime => true,
            RecoveryEnd::Failed(error) if deliveries == 0 => return Err(error.into()),
            RecoveryEnd::Failed(error) => {
                tracing::warn!(endpoint_id = %endpoint.id, error = error_chain(&error), "a recovery stopped early");
                true
            }
        };
        Reply::accepted(&Recovered { deliveries, more })
    };
    app.sessions.run_once(&inbound, work).await
}

/// Counts a test event of an endpoint, whether new or retried.
async fn count_test(app: &App, session: &Session, endpoint: &Endpoint) -> Result<(), Problem> {
    let counted = app.endpoints.count_test(&session.coach, &endpoint.id, session.now).await?;
    counted.used_up.map_or(Ok(()), |used_up| Err(Problem::RateLimited(used_up)))
}

/// The endpoint that a path names, if it takes deliveries.
async fn find_enabled(app: &App, session: &Session, inbound: &Inbound) -> Result<Endpoint, Problem> {
    let StoredEndpoint { endpoint, .. } = find(app, session, inbound.parameter(0)).await?;
    match endpoint.status {
        EndpointStatus::Enabled => Ok(endpoint),
        EndpointStatus::Disabled => Err(Problem::EndpointDisabled),
        EndpointStatus::Gone => Err(Problem::EndpointGone),
    }
}
