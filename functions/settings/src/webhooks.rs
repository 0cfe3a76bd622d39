//! `/settings/webhooks`: the endpoints that a coach registers. A signing secret is only in the answer that creates it.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use chrono::TimeDelta;
use domain::delivery::{DELETED, DeliveryCounts};
use domain::endpoint::{
    Endpoint, EndpointChange, EndpointDraft, EndpointList, EndpointView, NewEndpoint, SignedEndpoint, WatchedEndpoint,
};
use domain::endpoint_health::EndpointHealth;
use domain::fields::Fields;
use domain::id::{EndpointId, new_uuid};
use domain::signature::SigningSecret;
use domain::time::Timestamp;
use edge::{Inbound, Problem, Reply};
use runtime::{error_chain, random_bytes};
use store::endpoint::{EndpointCreation, EndpointUpdate, SecretRotation};

use crate::session::Session;
use crate::{App, receiver};

const ENDPOINT: &str = "webhook endpoint";
/// Time within which a change ends the pending deliveries.
const ENDING: Duration = Duration::from_secs(15);
/// Time of the deliveries that an endpoint counts.
const COUNTED: TimeDelta = TimeDelta::hours(24);

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let watched = app.endpoints.list_watched(&session.coach).await?;
        Reply::ok(&EndpointList { endpoints: with_counts(&app, watched, session.now).await? })
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let draft = EndpointDraft::parse(Fields::body(inbound.json()?)?, app.reach)?;
        receiver::check(&draft.url, app.reach).await?;
        let id = EndpointId::from_uuid(new_uuid(session.now.ms(), random_bytes()));
        let secret = SigningSecret::new(random_bytes());
        match app.endpoints.create(session.context(), draft, id, &secret).await? {
            EndpointCreation::Done(endpoint) => {
                let created = WatchedEndpoint { endpoint: *endpoint, health: EndpointHealth::default() };
                let endpoint = EndpointView::new(created, DeliveryCounts::default());
                Reply::created(&NewEndpoint { endpoint, secret: secret.reveal() })
            }
            EndpointCreation::TooMany => Err(Problem::EndpointLimit),
            EndpointCreation::WorkspaceUnknown => Err(Problem::WorkspaceUnknown),
        }
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let SignedEndpoint { endpoint, health, .. } = find_signed(&app, &session, inbound.parameter(0)).await?;
        Reply::ok(&shown(&app, WatchedEndpoint { endpoint, health }, session.now).await?)
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn change(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let change = EndpointChange::parse(Fields::body(inbound.json()?)?, app.reach)?;
        let id = parse(inbound.parameter(0))?;
        if let Some(url) = &change.url {
            receiver::check(url, app.reach).await?;
        }
        match app.endpoints.change(session.context(), &id, &change).await? {
            EndpointUpdate::Done(watched) => {
                if change.enabled == Some(false) {
                    end_pending(&app, &watched.endpoint.id, &watched.endpoint.not_sent(), session.now).await;
                }
                Reply::ok(&shown(&app, *watched, session.now).await?)
            }
            EndpointUpdate::Gone => Err(Problem::EndpointGone),
            EndpointUpdate::NotFound => Err(Problem::NotFound(ENDPOINT)),
        }
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn delete(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let id = parse(inbound.parameter(0))?;
        let counts = counts_of(&app, &id, session.now).await?;
        let deleted = app.endpoints.delete(session.context(), &id).await?;
        let deleted = deleted.ok_or(Problem::NotFound(ENDPOINT))?;
        end_pending(&app, &id, DELETED, session.now).await;
        Reply::ok(&EndpointView::new(deleted, counts))
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn rotate_secret(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let (id, secret) = (parse(inbound.parameter(0))?, SigningSecret::new(random_bytes()));
        // Nothing may fail between the rotation and the answer, which alone shows the secret.
        let counts = counts_of(&app, &id, session.now).await?;
        match app.endpoints.rotate_secret(session.context(), &id, &secret).await? {
            SecretRotation::Done(watched) => {
                let endpoint = EndpointView::new(*watched, counts);
                Reply::ok(&NewEndpoint { endpoint, secret: secret.reveal() })
            }
            SecretRotation::TooMany => Err(Problem::SecretLimit),
            SecretRotation::NotFound => Err(Problem::NotFound(ENDPOINT)),
        }
    };
    app.sessions.answer(&inbound, work).await
}

/// The coach's endpoint that a path names.
pub(crate) async fn find(app: &App, session: &Session, id: &str) -> Result<Endpoint, Problem> {
    Ok(find_signed(app, session, id).await?.endpoint)
}

async fn find_signed(app: &App, session: &Session, id: &str) -> Result<SignedEndpoint, Problem> {
    let found = app.endpoints.get(&session.coach, &parse(id)?, session.now).await?;
    found.ok_or(Problem::NotFound(ENDPOINT))
}

/// The endpoint with the counts of its recent deliveries.
async fn shown(app: &App, watched: WatchedEndpoint, now: Timestamp) -> Result<EndpointView, Problem> {
    let counts = counts_of(app, &watched.endpoint.id, now).await?;
    Ok(EndpointView::new(watched, counts))
}

/// The counts of an endpoint's recent deliveries. An unknown endpoint has none.
async fn counts_of(app: &App, endpoint: &EndpointId, now: Timestamp) -> Result<DeliveryCounts, Problem> {
    let counts = app.deliveries.counts_since([endpoint], now + -COUNTED).await?;
    Ok(counts.into_iter().next().unwrap_or_default())
}

/// The endpoints with the counts of their recent deliveries.
async fn with_counts(app: &App, watched: Vec<WatchedEndpoint>, now: Timestamp) -> Result<Vec<EndpointView>, Problem> {
    let ids = watched.iter().map(|watched| &watched.endpoint.id);
    let counts = app.deliveries.counts_since(ids, now + -COUNTED).await?;
    Ok(watched.into_iter().zip(counts).map(|(watched, counts)| EndpointView::new(watched, counts)).collect())
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
