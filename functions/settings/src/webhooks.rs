//! `/settings/webhooks`: the endpoints that a coach registers. A signing secret is only in the answer that creates it.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::TimeDelta;
use domain::delivery::{DELETED, DeliveryCounts};
use domain::endpoint::{
    Endpoint, EndpointChange, EndpointDraft, EndpointList, EndpointView, EndpointWithHealth, NewEndpoint,
    SignedEndpoint,
};
use domain::fields::Fields;
use domain::id::{EndpointId, new_uuid};
use domain::signature::SigningSecret;
use domain::time::Timestamp;
use edge::{Inbound, Problem, Reply};
use futures::future::try_join_all;
use runtime::{error_chain, random_bytes};
use store::Write;
use store::claim::Answer;
use store::endpoint::{EndpointCreation, EndpointUpdate, SecretRotation};

use crate::recorder::Recorder;
use crate::session::{Session, refuse_fields};
use crate::{App, receiver};

const ENDPOINT: &str = "webhook endpoint";
/// Time within which a change ends the pending deliveries.
const END_PENDING_TIME: Duration = Duration::from_secs(15);
/// Time of the deliveries that an endpoint counts.
const COUNT_WINDOW: TimeDelta = TimeDelta::hours(24);

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let watched = app.endpoints.list_with_health(&session.coach).await?;
        let counted = watched.into_iter().map(|watched| with_counts(&app, watched, session.now));
        Reply::ok(&EndpointList { endpoints: try_join_all(counted).await? })
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        let draft = EndpointDraft::parse(Fields::body(inbound.json()?)?, app.reach)?;
        receiver::check(&draft.url, app.reach).await?;
        let id = EndpointId::from_uuid(new_uuid(session.now.ms(), random_bytes()));
        let secret = SigningSecret::new(random_bytes());
        let answer = record_with(&recorder, StatusCode::CREATED, &secret, DeliveryCounts::default());
        match app.endpoints.create(session.context(), draft, id, &secret, answer).await? {
            EndpointCreation::Done(created) => {
                Reply::created(&new_endpoint(&created, DeliveryCounts::default(), Some(&secret)))
            }
            EndpointCreation::TooMany => Err(Problem::EndpointLimit),
            EndpointCreation::WorkspaceUnknown => Err(Problem::WorkspaceUnknown),
            EndpointCreation::ClaimLost => Err(Problem::IdempotencyInProgress),
        }
    };
    app.sessions.answer_once(&inbound, work).await
}

pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let SignedEndpoint { endpoint, health, .. } = find_signed(&app, &session, inbound.parameter(0)).await?;
        Reply::ok(&with_counts(&app, EndpointWithHealth { endpoint, health }, session.now).await?)
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn change(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let change = EndpointChange::parse(Fields::body(inbound.json()?)?, app.reach)?;
        let Endpoint { id, .. } = find(&app, &session, inbound.parameter(0)).await?;
        if let Some(url) = &change.url {
            receiver::check(url, app.reach).await?;
        }
        // Counted before the change: after it, nothing may fail the request.
        let counts = counts_of(&app, &id, session.now).await?;
        match app.endpoints.change(session.context(), &id, &change).await? {
            EndpointUpdate::Done(watched) => {
                let ended = match change.enabled {
                    Some(false) => end_pending(&app, &id, &watched.endpoint.not_sent(), session.now).await,
                    Some(true) | None => None,
                };
                Reply::ok(&EndpointView::new(*watched, ended.unwrap_or(counts)))
            }
            EndpointUpdate::Gone => Err(Problem::EndpointGone),
            EndpointUpdate::NotFound => Err(Problem::NotFound(ENDPOINT)),
        }
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn delete(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let Endpoint { id, .. } = find(&app, &session, inbound.parameter(0)).await?;
        let counts = counts_of(&app, &id, session.now).await?;
        let deleted = app.endpoints.delete(session.context(), &id).await?;
        let deleted = deleted.ok_or(Problem::NotFound(ENDPOINT))?;
        let counts = end_pending(&app, &id, DELETED, session.now).await.unwrap_or(counts);
        Reply::ok(&EndpointView::new(deleted, counts))
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn rotate_secret(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        refuse_fields(&inbound)?;
        let Endpoint { id, .. } = find(&app, &session, inbound.parameter(0)).await?;
        let secret = SigningSecret::new(random_bytes());
        // Nothing may fail between the rotation and the answer, which alone shows the secret.
        let counts = counts_of(&app, &id, session.now).await?;
        let answer = record_with(&recorder, StatusCode::OK, &secret, counts);
        match app.endpoints.rotate_secret(session.context(), &id, &secret, answer).await? {
            SecretRotation::Done(rotated) => Reply::ok(&new_endpoint(&rotated, counts, Some(&secret))),
            SecretRotation::TooMany => Err(Problem::SecretLimit),
            SecretRotation::NotFound => Err(Problem::NotFound(ENDPOINT)),
            SecretRotation::ClaimLost => Err(Problem::IdempotencyInProgress),
        }
    };
    app.sessions.answer_once(&inbound, work).await
}

/// The parts of a transaction that record the answer with an endpoint's secret.
fn record_with(
    recorder: &Recorder,
    status: StatusCode,
    secret: &SigningSecret,
    counts: DeliveryCounts,
) -> impl Fn(&EndpointWithHealth) -> Vec<Write> {
    let answer = move |endpoint: &EndpointWithHealth, secret: Option<&SigningSecret>| {
        Answer::of(status.as_u16(), &new_endpoint(endpoint, counts, secret))
    };
    move |endpoint| recorder.secret(&answer(endpoint, Some(secret)), &answer(endpoint, None))
}

/// An endpoint with its secret. A late replay of the answer is without the secret.
fn new_endpoint(endpoint: &EndpointWithHealth, counts: DeliveryCounts, secret: Option<&SigningSecret>) -> NewEndpoint {
    NewEndpoint { endpoint: EndpointView::new(endpoint.clone(), counts), secret: secret.map(SigningSecret::reveal) }
}

/// The coach's endpoint that a path names.
pub(crate) async fn find(app: &App, session: &Session, id: &str) -> Result<Endpoint, Problem> {
    Ok(find_signed(app, session, id).await?.endpoint)
}

async fn find_signed(app: &App, session: &Session, id: &str) -> Result<SignedEndpoint, Problem> {
    let found = app.endpoints.get(&session.coach, &endpoint_id(id)?, session.now).await?;
    found.ok_or(Problem::NotFound(ENDPOINT))
}

/// The counts of an endpoint's recent deliveries.
async fn counts_of(app: &App, endpoint: &EndpointId, now: Timestamp) -> Result<DeliveryCounts, Problem> {
    Ok(app.deliveries.counts_since(endpoint, now + -COUNT_WINDOW, false).await?)
}

/// The endpoint with the counts of its recent deliveries.
async fn with_counts(app: &App, watched: EndpointWithHealth, now: Timestamp) -> Result<EndpointView, Problem> {
    let counts = counts_of(app, &watched.endpoint.id, now).await?;
    Ok(EndpointView::new(watched, counts))
}

/// The id of an endpoint that a path names.
pub(crate) fn endpoint_id(id: &str) -> Result<EndpointId, Problem> {
    EndpointId::parse(id).map_err(|_| Problem::NotFound(ENDPOINT))
}

/// Ends the pending deliveries, and counts the recent ones then. The change succeeds even if this fails, which is
/// `None`: deliveries that are left end at their due time.
async fn end_pending(app: &App, endpoint: &EndpointId, reason: &str, now: Timestamp) -> Option<DeliveryCounts> {
    let end = async {
        app.deliveries.end_pending(endpoint, reason, now).await?;
        app.deliveries.counts_since(endpoint, now + -COUNT_WINDOW, true).await
    };
    let left = match tokio::time::timeout(END_PENDING_TIME, end).await {
        Ok(Ok(counts)) => return Some(counts),
        Ok(Err(error)) => error_chain(&error),
        Err(_) => "timed out".to_owned(),
    };
    tracing::warn!(endpoint_id = %endpoint, error = left, "could not end all pending deliveries of an endpoint");
    None
}
