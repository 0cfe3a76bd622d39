//! `/settings/keys`: a coach's API keys. The key itself is only in the answer that creates it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::api_key::ApiKey;
use domain::fields::Fields;
use domain::id::KeyId;
use domain::key::{KeyChange, KeyCursor, KeyDraft, KeyFilter, KeyList, KeyStatus, KeyView, NewKey};
use domain::list::KEY_PAGE;
use domain::time::Timestamp;
use edge::{Inbound, Problem, Reply};
use store::Write;
use store::claim::Answer;
use store::key::{KeyCreation, KeyRecord, KeyUpdate, new_api_key};

use crate::App;
use crate::recorder::Recorder;
use crate::session::{Session, refuse_fields};

const KEY: &str = "key";

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let limit = KEY_PAGE.parse(inbound.query("limit").as_deref()) as usize;
        let filter = KeyFilter::parse(inbound.query("status").as_deref())?;
        let cursor = KeyCursor::parse(inbound.query("cursor").as_deref())?;
        let page = app.keys.page(&session.coach, filter, limit, cursor, session.now).await?;
        let keys = page.keys.into_iter().map(|record| view(record, session.now)).collect();
        Reply::ok(&KeyList { keys, next_cursor: page.next_cursor })
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        let draft = KeyDraft::parse(Fields::body(inbound.json()?)?, session.now)?;
        let key = new_api_key(draft.scope);
        let answer = record_with(&recorder, session.now);
        let created = app.keys.create(&app.workspaces, session.context(), &draft, &key, answer).await?;
        creation_reply(created, Some(&key), session.now)
    };
    app.sessions.answer_once(&inbound, work).await
}

pub(crate) async fn rotate(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session, recorder: Recorder| {
        refuse_fields(&inbound)?;
        let id = KeyId::parse(inbound.parameter(0)).map_err(|_| Problem::NotFound(KEY))?;
        let (now, answer) = (session.now, record_with(&recorder, session.now));
        let rotated = app.keys.rotate(&app.workspaces, session.context(), &id, new_api_key, answer).await?;
        creation_reply(rotated.0, rotated.1.as_ref(), now)
    };
    app.sessions.answer_once(&inbound, work).await
}

pub(crate) async fn change(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let change = KeyChange::parse(Fields::body(inbound.json()?)?, session.now)?;
        let id = KeyId::parse(inbound.parameter(0)).map_err(|_| Problem::NotFound(KEY))?;
        match app.keys.change(&app.workspaces, session.context(), &id, &change).await? {
            KeyUpdate::Done(record) => Reply::ok(&view(*record, session.now)),
            KeyUpdate::NotFound => Err(Problem::NotFound(KEY)),
            KeyUpdate::Revoked => Err(Problem::KeyRevoked),
            KeyUpdate::NotActive => Err(Problem::KeyNotActive),
        }
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn revoke(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let id = KeyId::parse(inbound.parameter(0)).map_err(|_| Problem::NotFound(KEY))?;
        let revoked = app.keys.revoke(&app.workspaces, session.context(), &id).await?;
        Reply::ok(&view(revoked.ok_or(Problem::NotFound(KEY))?, session.now))
    };
    app.sessions.answer(&inbound, work).await
}

fn creation_reply(created: KeyCreation, key: Option<&ApiKey>, now: Timestamp) -> Result<Reply, Problem> {
    let record = match created {
        KeyCreation::Done(record) => *record,
        KeyCreation::TooMany => return Err(Problem::KeyLimit),
        KeyCreation::UnknownWorkspace => return Err(Problem::WorkspaceUnknown),
        KeyCreation::NotFound => return Err(Problem::NotFound(KEY)),
        KeyCreation::Replaced => return Err(Problem::KeyNotActive),
        KeyCreation::NotLive => return Err(Problem::KeyNotLive),
        KeyCreation::ClaimLost => return Err(Problem::IdempotencyInProgress),
    };
    let key = key.ok_or_else(|| Problem::internal("show a new key", "there is none"))?;
    Reply::created(&new_key(&record, Some(key), now))
}

/// The parts of a creation's transaction that record its answer.
fn record_with(recorder: &Recorder, now: Timestamp) -> impl Fn(&KeyRecord, &ApiKey) -> Vec<Write> {
    let answer = move |record: &KeyRecord, key: Option<&ApiKey>| {
        Answer::of(StatusCode::CREATED.as_u16(), &new_key(record, key, now))
    };
    move |record, key| recorder.secret(&answer(record, Some(key)), &answer(record, None))
}

/// A new key. A late replay of the answer is without the key itself.
fn new_key(record: &KeyRecord, key: Option<&ApiKey>, now: Timestamp) -> NewKey {
    NewKey { record: view(record.clone(), now), key: key.map(|key| key.expose().to_owned()) }
}

fn view(record: KeyRecord, now: Timestamp) -> KeyView {
    let status = record.status(now);
    let expires_at = record.expires_at.map(Timestamp::from_ms);
    KeyView {
        id: record.key_id,
        name: record.name,
        scope: record.scope,
        permissions: record.permissions,
        display: record.display,
        created_at: record.created_at,
        expires_at,
        // Stored by the minute, which may have begun before the key was created.
        last_used_at: record.last_used_at.map(|at| Timestamp::from_ms(at).max(record.created_at)),
        revoked_at: record.revoked_at.map(Timestamp::from_ms),
        status,
        replaced_by: record.replaced_by,
        // A rotation sets the end of the overlap as the expiry.
        works_until: expires_at.filter(|_| status != KeyStatus::Revoked),
    }
}
