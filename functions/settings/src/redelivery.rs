//! Deliveries that a coach orders: a test event, the retry of one delivery, the recovery of all failed deliveries. The
//! answer comes once the outbox entry of the order or the job is stored. The delivery log shows the results.
//!
//! The receiver may belong to a stranger, so orders are limited: test events per minute and endpoint, one recovery at a
//! time, and all requests per minute.

use axum::extract::State;
use axum::response::Response;
use domain::audit::{AuditAction, AuditDetail};
use domain::delivery::{DeliveryJob, Ordered, Recovered, Recovery, RecoveryRequest, recovery_ends_in_s};
use domain::endpoint::{Endpoint, EndpointStatus};
use domain::event::EventName;
use domain::fields::Fields;
use domain::id::{DeliveryId, EventId, RecoveryId, new_uuid};
use domain::subject::Subject;
use domain::test_event;
use edge::{About, Command, Decision, Inbound, Problem, Reply};
use runtime::random_bytes;
use store::RefusedTransaction;
use store::delivery::{NewDelivery, ResendLookup, ResendableDelivery};
use store::endpoint::{StoredEndpoint, recovery_until};
use store::endpoint_ref::EndpointRef;
use store::outbox::Content;

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

/// `POST /settings/webhooks/{id}/recover`
pub(crate) async fn recover(State(app): State<App>, inbound: Inbound) -> Response {
    app.sessions.run(&inbound, &Recover { app: &app, inbound: &inbound, random: random_bytes() }).await
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
        Ok((event_type, endpoint))
    }

    async fn count(&self, session: &Session, (_, endpoint): &Self::Snapshot) -> Result<(), Problem> {
        count_test(self.app, session, endpoint).await
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
            subject: Subject::default(),
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
        Ok((endpoint, kept))
    }

    async fn count(&self, session: &Session, (endpoint, kept): &Self::Snapshot) -> Result<(), Problem> {
        if kept.is_test() { count_test(self.app, session, endpoint).await } else { Ok(()) }
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

/// Counts the failed deliveries, and starts a job that sends them again.
struct Recover<'a> {
    app: &'a App,
    inbound: &'a Inbound,
    random: [u8; 10],
}

/// A recovery, and the deliveries that it finds.
struct Recoverable {
    dry_run: bool,
    endpoint: Endpoint,
    recovery: Recovery,
    found: Recovered,
}

impl Command for Recover<'_> {
    type Caller = Session;
    type Snapshot = Recoverable;

    async fn read(&self, session: &Session) -> Result<Recoverable, Problem> {
        let RecoveryRequest { selection, dry_run } = RecoveryRequest::parse(Fields::body(self.inbound.json()?)?)?;
        let endpoint = find_enabled(self.app, session, self.inbound).await?;
        let id = RecoveryId::from_uuid(new_uuid(session.now.ms(), self.random));
        let recovery = Recovery { id, selection, begun_at: session.now };
        let found = self.app.deliveries.count_recoverable(&endpoint.id, &recovery).await?;
        Ok(Recoverable { dry_run, endpoint, recovery, found })
    }

    fn decide(&self, session: &Session, recoverable: &Recoverable) -> Result<Decision, Problem> {
        let Recoverable { dry_run, endpoint, recovery, found } = recoverable;
        if *dry_run {
            return Ok(Decision::reply(About::Nobody, Reply::ok(found)?));
        }
        let detail = AuditDetail {
            deliveries: Some(found.deliveries),
            ..AuditDetail::of_recovery(endpoint, &recovery.selection)
        };
        let audited = self.app.audit(session, AuditAction::DeliveriesRecovered, &endpoint.id, detail);
        let decision = Decision::reply(About::Nobody, Reply::accepted(found)?).write([audited]);
        if found.is_empty() {
            return Ok(decision);
        }
        let lock = self.app.endpoints.begin_recovery(&session.coach, &endpoint.id, recovery);
        let job = DeliveryJob::recover(session.coach.clone(), endpoint.id.clone(), recovery.clone());
        Ok(decision.write([lock]).entry(Content::Job(Box::new(job))))
    }

    async fn refused(&self, session: &Session, _: &Recoverable, refused: &RefusedTransaction) -> Result<(), Problem> {
        let Some(until) = recovery_until(refused) else { return Ok(()) };
        Err(Problem::RecoveryRunning { retry_after_s: recovery_ends_in_s(until, session.now) })
    }
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
