//! Deliveries that a coach orders: a test event, the retry of one delivery, the recovery of all failed deliveries. The
//! answer comes once the outbox entries of the orders are stored. The delivery log shows the results.
//!
//! The receiver may belong to a stranger, so orders are limited: test events per minute and endpoint, one recovery at a
//! time, and all requests per minute.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::Response;
use domain::audit::{AuditAction, AuditDetail};
use domain::delivery::{Ordered, Recovered, RecoveryRequest, RecoverySelection, recovery_ends_in_s};
use domain::endpoint::{Endpoint, EndpointStatus};
use domain::fields::Fields;
use domain::id::{DeliveryId, EventId};
use domain::subject::Subject;
use domain::test_event;
use edge::{Inbound, Problem, Reply};
use runtime::{error_chain, random_bytes};
use store::delivery::{NewDelivery, Recovery, ResendLookup, Restarted};
use store::endpoint::{EndpointRef, RecoveryStart};

use crate::App;
use crate::deliveries::{DELIVERY, delivery_id};
use crate::recorder::Recorder;
use crate::session::Session;
use crate::webhooks::find;

/// Time within which a recovery starts retry chains, or counts them. The function has 25 s.
const RECOVERY: Duration = Duration::from_secs(18);
/// The same under an idempotency key, where the work and the record of its answer have 19 s.
const RECORDED_RECOVERY: Duration = Duration::from_secs(16);

/// `POST /settings/webhooks/{id}/test`
pub(crate) async fn test(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        let endpoint = enabled(find(&app, &session, inbound.parameter(0)).await?)?;
        let event_type = test_event::parse(inbound.json_if_sent()?, &endpoint.events)?;
        count_test(&app, &session, &endpoint).await?;
        let distinguisher = hex::encode(random_bytes::<12>());
        let event_id = EventId::derive(session.now.ms(), &["test", &distinguisher]);
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
            body: test_event::body(event_type, endpoint.payload_mode, session.now),
            not_sent: None,
        };
        let detail = AuditDetail::of_test(&endpoint, event_type, &delivery_id);
        let reply = Reply::accepted(&Ordered { delivery_id })?;
        let (context, answer) = (session.context(), recorder.answer(&reply));
        let is_ours =
            app.deliveries.create_test(&app.workspaces, context, delivery, detail, answer, &app.outbox).await?;
        if is_ours { Ok(reply) } else { Err(Problem::IdempotencyInProgress) }
    };
    app.sessions.answer_once(&inbound, work).await
}

/// `POST /settings/webhooks/{id}/deliveries/{delivery_id}/retry`
pub(crate) async fn retry(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        let endpoint = enabled(find(&app, &session, inbound.parameter(0)).await?)?;
        let delivery_id = delivery_id(inbound.parameter(1))?;
        let kept = match app.deliveries.find(&endpoint.id, &delivery_id, session.now).await? {
            ResendLookup::Ready(kept) => kept,
            ResendLookup::Erased => return Err(Problem::DeliveryErased),
            ResendLookup::NotFound => return Err(Problem::NotFound(DELIVERY)),
        };
        if kept.is_test() {
            count_test(&app, &session, &endpoint).await?;
        }
        let reply = Reply::accepted(&Ordered { delivery_id })?;
        let (context, answer) = (session.context(), recorder.answer(&reply));
        match app.deliveries.restart(&app.workspaces, context, &endpoint, &kept, answer, &app.outbox).await? {
            Restarted::Done => Ok(reply),
            Restarted::Busy => Err(Problem::DeliveryInProgress),
            Restarted::ClaimLost => Err(Problem::IdempotencyInProgress),
        }
    };
    app.sessions.answer_once(&inbound, work).await
}

/// `POST /settings/webhooks/{id}/recover`
///
/// A recovery is many transactions, so its answer is recorded after them. If the function dies before, a repeat runs
/// again: it leaves out what a recovery has just sent, and its answer counts the rest.
pub(crate) async fn recover(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        let RecoveryRequest { selection, dry_run } = RecoveryRequest::parse(Fields::body(inbound.json()?)?)?;
        let endpoint = enabled(find(&app, &session, inbound.parameter(0)).await?)?;
        let until = Instant::now() + if recorder.records() { RECORDED_RECOVERY } else { RECOVERY };
        if dry_run {
            let deliveries = app.deliveries.count_recoverable(&endpoint.id, &selection, session.now, until).await?;
            return recorder.finish(Reply::ok(&Recovered { deliveries })?).await;
        }
        let lease =
            match app.endpoints.begin_recovery(&session.coach, &endpoint.id, &app.deliveries, session.now).await? {
                RecoveryStart::Ours(lease) => lease,
                RecoveryStart::Running(until) => {
                    return Err(Problem::RecoveryRunning { retry_after_s: recovery_ends_in_s(until, session.now) });
                }
            };
        let endpoint_ref = EndpointRef { coach: session.coach.clone(), id: endpoint.id.clone() };
        let recovered = app.deliveries.recover(&endpoint_ref, &selection, &app.outbox, session.now, until).await;
        let last = recovered.as_ref().ok().and_then(|recovery| recovery.last.as_ref());
        if let Err(error) = app.endpoints.end_recovery(&lease, last).await {
            tracing::warn!(endpoint_id = %endpoint.id, error = error_chain(&error), "could not end a recovery; its lease expires");
        }
        let Recovery { deliveries, .. } = recovered?;
        let RecoverySelection { since, until, types } = selection;
        let detail = AuditDetail {
            deliveries: Some(deliveries),
            since: Some(since),
            until,
            types: types.map(|types| types.iter().map(|name| name.as_str().to_owned()).collect()),
            ..AuditDetail::of_endpoint(&endpoint)
        };
        let (action, target) = (AuditAction::DeliveriesRecovered, endpoint.id.as_str());
        app.workspaces.record_afterwards(session.context(), action, target, detail).await?;
        recorder.finish(Reply::accepted(&Recovered { deliveries })?).await
    };
    app.sessions.answer_once(&inbound, work).await
}

/// Counts a test event of an endpoint, whether new or retried.
async fn count_test(app: &App, session: &Session, endpoint: &Endpoint) -> Result<(), Problem> {
    let counted = app.endpoints.count_test(&session.coach, &endpoint.id, session.now).await?;
    counted.used_up.map_or(Ok(()), |used_up| Err(Problem::RateLimited(used_up)))
}

/// Refuses an endpoint that takes no deliveries.
fn enabled(endpoint: Endpoint) -> Result<Endpoint, Problem> {
    match endpoint.status {
        EndpointStatus::Enabled => Ok(endpoint),
        EndpointStatus::Disabled => Err(Problem::EndpointDisabled),
        EndpointStatus::Gone => Err(Problem::EndpointGone),
    }
}
