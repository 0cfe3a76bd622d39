//! `/settings/webhooks`: the endpoints that a coach registers. A signing secret is only in the answer that creates it.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::delivery::DELETED;
use domain::endpoint::{Endpoint, EndpointChange, EndpointDraft, EndpointList, NewEndpoint};
use domain::fields::Fields;
use domain::id::{EndpointId, new_uuid};
use domain::signature::SigningSecret;
use domain::time::Timestamp;
use edge::{Inbound, Problem, Reply};
use runtime::{error_chain, random_bytes};
use store::Write;
use store::claim::Answer;
use store::endpoint::{EndpointCreation, EndpointUpdate, SecretRotation};

use crate::recorder::Recorder;
use crate::session::Session;
use crate::{App, receiver};

const ENDPOINT: &str = "webhook endpoint";
/// Time within which a change ends the pending deliveries.
const ENDING: Duration = Duration::from_secs(15);

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work =
        async |session: Session| Reply::ok(&EndpointList { endpoints: app.endpoints.list(&session.coach).await? });
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        let draft = EndpointDraft::parse(Fields::body(inbound.json()?)?, app.reach)?;
        receiver::check(&draft.url, app.reach).await?;
        let id = EndpointId::from_uuid(new_uuid(session.now.ms(), random_bytes()));
        let secret = SigningSecret::new(random_bytes());
        let answer = record_with(&recorder, StatusCode::CREATED, &secret);
        match app.endpoints.create(&session.coach, draft, id, &secret, answer, session.now).await? {
            EndpointCreation::Done(endpoint) => Reply::created(&new_endpoint(&endpoint, Some(&secret))),
            EndpointCreation::TooMany => Err(Problem::EndpointLimit),
            EndpointCreation::WorkspaceUnknown => Err(Problem::WorkspaceUnknown),
            EndpointCreation::ClaimLost => Err(Problem::IdempotencyInProgress),
        }
    };
    app.sessions.answer_once(&inbound, work).await
}

pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| Reply::ok(&find(&app, &session, inbound.parameter(0)).await?);
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn change(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let change = EndpointChange::parse(Fields::body(inbound.json()?)?, app.reach)?;
        let id = parse(inbound.parameter(0))?;
        if let Some(url) = &change.url {
            receiver::check(url, app.reach).await?;
        }
        match app.endpoints.change(&session.coach, &id, &change, session.now).await? {
            EndpointUpdate::Done(endpoint) => {
                if change.enabled == Some(false) {
                    end_pending(&app, &endpoint.id, &endpoint.not_sent(), session.now).await;
                }
                Reply::ok(&endpoint)
            }
            EndpointUpdate::Gone => Err(Problem::EndpointGone),
            EndpointUpdate::NotFound => Err(Problem::NotFound(ENDPOINT)),
        }
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn delete(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let deleted = app.endpoints.delete(&session.coach, &parse(inbound.parameter(0))?, session.now).await?;
        let deleted = deleted.ok_or(Problem::NotFound(ENDPOINT))?;
        end_pending(&app, &deleted.id, DELETED, session.now).await;
        Reply::ok(&deleted)
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn rotate_secret(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        let id = parse(inbound.parameter(0))?;
        let secret = SigningSecret::new(random_bytes());
        let answer = record_with(&recorder, StatusCode::OK, &secret);
        match app.endpoints.rotate_secret(&session.coach, &id, &secret, answer, session.now).await? {
            SecretRotation::Done(endpoint) => Reply::ok(&new_endpoint(&endpoint, Some(&secret))),
            SecretRotation::TooMany => Err(Problem::SecretLimit),
            SecretRotation::NotFound => Err(Problem::NotFound(ENDPOINT)),
            SecretRotation::ClaimLost => Err(Problem::IdempotencyInProgress),
        }
    };
    app.sessions.answer_once(&inbound, work).await
}

/// The parts of a transaction that record the answer with an endpoint's secret.
fn record_with(recorder: &Recorder, status: StatusCode, secret: &SigningSecret) -> impl Fn(&Endpoint) -> Vec<Write> {
    let answer = move |endpoint: &Endpoint, secret: Option<&SigningSecret>| {
        Answer::of(status.as_u16(), &new_endpoint(endpoint, secret))
    };
    move |endpoint| recorder.secret(&answer(endpoint, Some(secret)), &answer(endpoint, None))
}

/// An endpoint with its secret. A late replay of the answer is without the secret.
fn new_endpoint(endpoint: &Endpoint, secret: Option<&SigningSecret>) -> NewEndpoint {
    NewEndpoint { endpoint: endpoint.clone(), secret: secret.map(SigningSecret::reveal) }
}

/// The coach's endpoint that a path names.
pub(crate) async fn find(app: &App, session: &Session, id: &str) -> Result<Endpoint, Problem> {
    let found = app.endpoints.get(&session.coach, &parse(id)?, session.now).await?;
    Ok(found.ok_or(Problem::NotFound(ENDPOINT))?.endpoint)
}

fn parse(id: &str) -> Result<EndpointId, Problem> {
    EndpointId::parse(id).map_err(|_| Problem::NotFound(ENDPOINT))
}

/// Ends the pending deliveries. The change succeeds even if this fails: deliveries that are left end at their due time.
async fn end_pending(app: &App, endpoint: &EndpointId, reason: &str, now: Timestamp) {
    let ended = tokio::time::timeout(ENDING, app.deliveries.end_waiting(endpoint, reason, now)).await;
    let left = match ended {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error_chain(&error),
        Err(_) => "timed out".to_owned(),
    };
    tracing::warn!(endpoint_id = %endpoint, error = left, "could not end all pending deliveries of an endpoint");
}
