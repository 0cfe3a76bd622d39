//! Deliveries that a coach orders: a test event, the retry of one delivery, the recovery of all failed deliveries. The
//! answer comes once the outbox entry of the order or the job is stored. The delivery log shows the results.
//!
//! The receiver may belong to a stranger, so orders are limited: test events per minute and endpoint, one recovery at a
//! time, and all requests per minute.

use domain::audit::{AuditAction, AuditDetail};
use domain::delivery::{DeliveryJob, Ordered, Recovered, Recovery, RecoveryRequest, recovery_ends_in_s};
use domain::endpoint::{Endpoint, EndpointStatus};
use domain::event::EventName;
use domain::fields::Fields;
use domain::id::{DeliveryId, EventId, RecoveryId, new_uuid};
use domain::id_kind::IdKind;
use domain::subject::Subject;
use domain::test_event;
use edge::{About, Command, Decision, Inbound, Problem, Reply, Session};
use runtime::random_bytes;
use store::RefusedTransaction;
use store::delivery::{NewDelivery, ResendLookup, ResendableDelivery};
use store::endpoint::{StoredEndpoint, recovery_until};
use store::endpoint_ref::EndpointRef;
use store::outbox::Content;

use crate::App;
use crate::deliveries::delivery_id;
use crate::webhooks::find;

/// `POST /settings/webhooks/{id}/test`
/// `POST /settings/webhooks/{id}/deliveries/{delivery_id}/retry`
/// `POST /settings/webhooks/{id}/recover`
pub(crate) struct Test;

/// The event to send, its endpoint, and the random part of its id.
pub(crate) struct TestRead {
    event_type: EventName,
    endpoint: Endpoint,
    random: [u8; 12],
}

impl Command for Test {
    type App = App;
    type Caller = Session;
    type Snapshot = TestRead;

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<TestRead, Problem> {
        let endpoint = find_enabled(app, session, inbound).await?;
        let event_type = test_event::parse(inbound.json_if_sent()?, &endpoint.events)?;
        Ok(TestRead { event_type, endpoint, random: random_bytes() })
    }

    async fn count(app: &App, session: &Session, found: &TestRead) -> Result<(), Problem> {
        count_test(app, session, &found.endpoint).await
    }

    fn decide(app: &App, session: &Session, found: &TestRead) -> Result<Decision, Problem> {
        let TestRead { event_type, endpoint, random } = found;
        let event_id = EventId::derive(session.now.ms(), &["test", &hex::encode(random)]);
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
        let audited = app.audit(session, AuditAction::EndpointTestSent, &endpoint.id, detail);
        let (write, order) = app.deliveries.create_test(delivery, session.now);
        let reply = Reply::accepted(&Ordered { delivery_id })?;
        Ok(Decision::reply(About::Nobody, reply).write([write, audited]).entry(order))
    }
}

pub(crate) struct Retry;

impl Command for Retry {
    type App = App;
    type Caller = Session;
    type Snapshot = (Endpoint, Box<ResendableDelivery>);

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<Self::Snapshot, Problem> {
        inbound.refuse_fields()?;
        let endpoint = find_enabled(app, session, inbound).await?;
        let id = delivery_id(inbound.parameter(1))?;
        let kept = match app.deliveries.find(&endpoint.id, &id, session.now).await? {
            ResendLookup::Ready(kept) => kept,
            ResendLookup::Erased => return Err(Problem::DeliveryErased),
            ResendLookup::NotFound => return Err(Problem::not_found(IdKind::Delivery)),
        };
        Ok((endpoint, kept))
    }

    async fn count(app: &App, session: &Session, (endpoint, kept): &Self::Snapshot) -> Result<(), Problem> {
        if kept.is_test() { count_test(app, session, endpoint).await } else { Ok(()) }
    }

    fn decide(app: &App, session: &Session, (endpoint, kept): &Self::Snapshot) -> Result<Decision, Problem> {
        let endpoint_ref = EndpointRef { coach: session.coach.clone(), id: endpoint.id.clone() };
        let detail = AuditDetail {
            endpoint_id: Some(endpoint.id.clone()),
            event_type: Some(kept.event_type().to_owned()),
            ..AuditDetail::of_endpoint(endpoint)
        };
        let delivery_id = kept.id().clone();
        let audited = app.audit(session, AuditAction::DeliveryRetried, &delivery_id, detail);
        let (write, order) = app.deliveries.restart(&endpoint_ref, kept, session.now);
        let reply = Reply::accepted(&Ordered { delivery_id })?;
        Ok(Decision::reply(About::Nobody, reply).write([write, audited]).entry(order))
    }
}

/// Counts the failed deliveries, and starts a job that sends them again.
pub(crate) struct Recover;

/// A recovery, and the deliveries that it finds.
pub(crate) struct Recoverable {
    dry_run: bool,
    endpoint: Endpoint,
    recovery: Recovery,
    found: Recovered,
}

impl Command for Recover {
    type App = App;
    type Caller = Session;
    type Snapshot = Recoverable;

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<Recoverable, Problem> {
        let RecoveryRequest { selection, dry_run } = RecoveryRequest::parse(Fields::body(inbound.json()?)?)?;
        let endpoint = find_enabled(app, session, inbound).await?;
        let id = RecoveryId::from_uuid(new_uuid(session.now.ms(), random_bytes()));
        let recovery = Recovery { id, selection, begun_at: session.now };
        let found = app.deliveries.count_recoverable(&endpoint.id, &recovery).await?;
        Ok(Recoverable { dry_run, endpoint, recovery, found })
    }

    fn decide(app: &App, session: &Session, recoverable: &Recoverable) -> Result<Decision, Problem> {
        let Recoverable { dry_run, endpoint, recovery, found } = recoverable;
        if *dry_run {
            return Ok(Decision::reply(About::Nobody, Reply::ok(found)?));
        }
        let detail = AuditDetail {
            deliveries: Some(found.deliveries),
            ..AuditDetail::of_recovery(endpoint, &recovery.selection)
        };
        let audited = app.audit(session, AuditAction::DeliveriesRecovered, &endpoint.id, detail);
        let decision = Decision::reply(About::Nobody, Reply::accepted(found)?).write([audited]);
        if found.is_empty() {
            return Ok(decision);
        }
        let lock = app.endpoints.begin_recovery(&session.coach, &endpoint.id, recovery);
        let job = DeliveryJob::recover(session.coach.clone(), endpoint.id.clone(), recovery.clone());
        Ok(decision.write([lock]).entry(Content::Job(Box::new(job))))
    }

    async fn refused(_: &App, session: &Session, _: &Recoverable, refused: &RefusedTransaction) -> Result<(), Problem> {
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
