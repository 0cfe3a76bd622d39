//! `/settings/webhooks`: the endpoints that a coach registers. A signing secret is only in the answer that creates it.

use std::time::Duration;

use domain::audit::{AuditAction, AuditDetail};
use domain::delivery::{DELETED, DeliveryCounts};
use domain::endpoint::{
    Endpoint, EndpointChange, EndpointDraft, EndpointGone, EndpointList, EndpointView, EndpointWithHealth, NewEndpoint,
};
use domain::fields::Fields;
use domain::id::{EndpointId, new_uuid};
use domain::id_kind::IdKind;
use domain::signature::SigningSecret;
use domain::time::Timestamp;
use edge::{About, Command, Decision, Inbound, Problem, Reply, Session};
use futures::future::try_join_all;
use runtime::{error_chain, random_bytes};
use store::endpoint::{ChangedEndpoint, StoredEndpoint};
use store::{Part, RefusedTransaction, Write};

use crate::{App, receiver};

/// Time within which a change ends the pending deliveries.
const END_PENDING_TIME: Duration = Duration::from_secs(15);

pub(crate) async fn list(app: App, session: Session, _: Inbound) -> Result<Reply, Problem> {
    let watched = app.endpoints.list_with_health(&session.coach).await?;
    let counted = watched.into_iter().map(|watched| with_counts(&app, watched, session.now));
    Reply::ok(&EndpointList { endpoints: try_join_all(counted).await? })
}

pub(crate) async fn read(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let found = find(&app, &session, inbound.parameter(0)).await?;
    Reply::ok(&with_counts(&app, found.with_health(), session.now).await?)
}

pub(crate) struct Create;

/// The draft, and what is random of the endpoint.
pub(crate) struct CreateRead {
    draft: EndpointDraft,
    secret: SigningSecret,
    random: [u8; 10],
}

impl Command for Create {
    type App = App;
    type Caller = Session;
    type Snapshot = CreateRead;

    async fn read(app: &App, _: &Session, inbound: &Inbound) -> Result<CreateRead, Problem> {
        let draft = EndpointDraft::parse(Fields::body(inbound.json()?)?, app.reach)?;
        receiver::check(&draft.url, app.reach).await?;
        Ok(CreateRead { draft, secret: SigningSecret::new(random_bytes()), random: random_bytes() })
    }

    fn decide(app: &App, session: &Session, found: &CreateRead) -> Result<Decision, Problem> {
        let CreateRead { draft, secret, random } = found;
        let id = EndpointId::from_uuid(new_uuid(session.now.ms(), *random));
        let (created, writes) = app.endpoints.create(&session.coach, draft, id, secret, session.now);
        let answer = |secret| Reply::created(&new_endpoint(&created, DeliveryCounts::default(), secret, session.now));
        Ok(Decision::secret(answer(Some(secret))?, answer(None)?).write(writes).write([audit(
            app,
            session,
            AuditAction::EndpointCreated,
            &created.endpoint,
        )]))
    }

    async fn refused(_: &App, _: &Session, _: &CreateRead, refused: &RefusedTransaction) -> Result<(), Problem> {
        match refused {
            refused if refused.is(Part::Workspace) => Err(Problem::WorkspaceUnknown),
            refused if refused.is(Part::EndpointCount) => Err(Problem::EndpointLimit),
            _ => Ok(()),
        }
    }
}

/// An endpoint as it was read, and the counts of its recent deliveries.
pub(crate) struct EndpointRead {
    stored: StoredEndpoint,
    counts: DeliveryCounts,
}

impl EndpointRead {
    async fn of(app: &App, session: &Session, inbound: &Inbound) -> Result<Self, Problem> {
        let stored = find(app, session, inbound.parameter(0)).await?;
        // Counted before the commit: after it, nothing may fail the request.
        let counts = counts_of(app, &stored.endpoint.id, session.now).await?;
        Ok(Self { stored, counts })
    }
}

pub(crate) struct Change;

/// A change, and the changed endpoint.
pub(crate) struct ChangeRead {
    change: EndpointChange,
    changed: ChangedEndpoint,
    counts: DeliveryCounts,
}

impl Command for Change {
    type App = App;
    type Caller = Session;
    type Snapshot = ChangeRead;

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<ChangeRead, Problem> {
        let change = EndpointChange::parse(Fields::body(inbound.json()?)?, app.reach)?;
        let EndpointRead { stored, counts } = EndpointRead::of(app, session, inbound).await?;
        if let Some(url) = &change.url {
            receiver::check(url, app.reach).await?;
        }
        let changed = app.endpoints.change(&session.coach, &stored, &change, session.now);
        let changed = changed.map_err(|EndpointGone| Problem::EndpointGone)?;
        Ok(ChangeRead { change, changed, counts })
    }

    fn decide(app: &App, session: &Session, found: &ChangeRead) -> Result<Decision, Problem> {
        let ChangeRead { change, changed: ChangedEndpoint { endpoint: changed, write, resume }, counts } = found;
        let endpoint = &changed.endpoint;
        let status = change.enabled.map(|_| endpoint.status);
        let detail = AuditDetail { changed: Some(change.fields()), status, ..AuditDetail::of_endpoint(endpoint) };
        let audited = app.audit(session, AuditAction::EndpointUpdated, &endpoint.id, detail);
        let reply = Reply::ok(&EndpointView::new(changed.clone(), *counts, session.now))?;
        let decision = Decision::reply(About::Nobody, reply).write([write.clone(), audited]);
        Ok(decision.with(|unit| unit.entries(resume.clone())))
    }

    async fn committed(app: &App, session: &Session, found: &ChangeRead, reply: Reply) -> Reply {
        match found.change.enabled {
            Some(false) => {
                let changed = found.changed.endpoint.clone();
                let reason = changed.endpoint.not_sent();
                ended(app, changed, &reason, session.now, reply).await
            }
            Some(true) | None => reply,
        }
    }
}

pub(crate) struct Delete;

impl Command for Delete {
    type App = App;
    type Caller = Session;
    type Snapshot = EndpointRead;

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<EndpointRead, Problem> {
        EndpointRead::of(app, session, inbound).await
    }

    fn decide(app: &App, session: &Session, found: &EndpointRead) -> Result<Decision, Problem> {
        let deleted = found.stored.with_health();
        let audited = audit(app, session, AuditAction::EndpointDeleted, &deleted.endpoint);
        let writes = app.endpoints.delete(&session.coach, &deleted.endpoint.id, session.now);
        let remembered = app.deliveries.remember_deleted(&session.coach, &deleted.endpoint.id, session.now);
        let reply = Reply::ok(&EndpointView::new(deleted, found.counts, session.now))?;
        Ok(Decision::reply(About::Nobody, reply).write(writes).write([remembered, audited]))
    }

    async fn committed(app: &App, session: &Session, found: &EndpointRead, reply: Reply) -> Reply {
        ended(app, found.stored.with_health(), DELETED, session.now, reply).await
    }
}

pub(crate) struct RotateSecret;

impl Command for RotateSecret {
    type App = App;
    type Caller = Session;
    type Snapshot = (EndpointRead, SigningSecret);

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<Self::Snapshot, Problem> {
        inbound.refuse_fields()?;
        Ok((EndpointRead::of(app, session, inbound).await?, SigningSecret::new(random_bytes())))
    }

    fn decide(app: &App, session: &Session, (found, secret): &Self::Snapshot) -> Result<Decision, Problem> {
        let rotated = found.stored.with_health();
        let write = app.endpoints.rotate_secret(&found.stored, secret, session.now);
        let write = write.ok_or(Problem::SecretLimit)?;
        let answer = |secret| Reply::ok(&new_endpoint(&rotated, found.counts, secret, session.now));
        let audited = audit(app, session, AuditAction::EndpointSecretRotated, &rotated.endpoint);
        Ok(Decision::secret(answer(Some(secret))?, answer(None)?).write([write, audited]))
    }
}

/// The audit line of an action on an endpoint.
fn audit(app: &App, session: &Session, action: AuditAction, endpoint: &Endpoint) -> Write {
    app.audit(session, action, &endpoint.id, AuditDetail::of_endpoint(endpoint))
}

/// An endpoint with its secret. A late replay of the answer is without the secret.
fn new_endpoint(
    endpoint: &EndpointWithHealth,
    counts: DeliveryCounts,
    secret: Option<&SigningSecret>,
    now: Timestamp,
) -> NewEndpoint {
    let endpoint = EndpointView::new(endpoint.clone(), counts, now);
    NewEndpoint { endpoint, secret: secret.map(SigningSecret::reveal) }
}

/// The coach's endpoint that a path names.
pub(crate) async fn find(app: &App, session: &Session, id: &str) -> Result<StoredEndpoint, Problem> {
    app.endpoints.find(&session.coach, &endpoint_id(id)?).await?.ok_or(Problem::not_found(IdKind::Endpoint))
}

/// The counts of an endpoint's recent deliveries.
async fn counts_of(app: &App, endpoint: &EndpointId, now: Timestamp) -> Result<DeliveryCounts, Problem> {
    Ok(app.deliveries.last_day(endpoint, now).await?)
}

/// The endpoint with the counts of its recent deliveries.
async fn with_counts(app: &App, watched: EndpointWithHealth, now: Timestamp) -> Result<EndpointView, Problem> {
    let counts = counts_of(app, &watched.endpoint.id, now).await?;
    Ok(EndpointView::new(watched, counts, now))
}

/// The id of an endpoint that a path names.
pub(crate) fn endpoint_id(id: &str) -> Result<EndpointId, Problem> {
    EndpointId::parse(id).map_err(|_| Problem::not_found(IdKind::Endpoint))
}

/// Ends the pending deliveries of an endpoint, and answers with the counts after that. The change has succeeded even if
/// this fails: deliveries that are left end at their due time.
async fn ended(app: &App, watched: EndpointWithHealth, reason: &str, now: Timestamp, reply: Reply) -> Reply {
    let id = watched.endpoint.id.clone();
    let end = async {
        app.deliveries.end_pending(&id, reason, now).await?;
        app.deliveries.last_day(&id, now).await
    };
    let left = match tokio::time::timeout(END_PENDING_TIME, end).await {
        Ok(Ok(counts)) => return Reply::ok(&EndpointView::new(watched, counts, now)).unwrap_or(reply),
        Ok(Err(error)) => error_chain(&error),
        Err(_) => "timed out".to_owned(),
    };
    tracing::warn!(endpoint_id = %id, error = left, "could not end all pending deliveries of an endpoint");
    reply
}
