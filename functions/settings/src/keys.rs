//! `/settings/keys`: a coach's API keys. A key itself is in the answer to its creation, once.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::{ApiKey, Permission, Scope};
use domain::fields::{Fields, Invalid};
use domain::id::KeyId;
use domain::time::Timestamp;
use edge::inbound::PathParameter;
use edge::{Inbound, Problem, Reply};
use serde::Serialize;
use serde_json::{Value, json};
use store::key::{KeyDraft, KeyRecord, Made, new_api_key};

use crate::App;
use crate::session::Session;

const MAX_KEY_NAME_CHARS: usize = 100;
const KEY: &str = "key";

/// A key as the settings show it.
#[derive(Serialize)]
struct KeyView {
    id: KeyId,
    name: String,
    scope: Scope,
    permissions: Vec<Permission>,
    display: String,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

impl From<KeyRecord> for KeyView {
    fn from(record: KeyRecord) -> Self {
        Self {
            id: record.key_id,
            name: record.name,
            scope: record.scope,
            permissions: record.permissions,
            display: record.display,
            created_at: record.created_at,
            expires_at: record.expires_at.map(Timestamp::from_ms),
            last_used_at: record.last_used_at.map(Timestamp::from_ms),
            revoked_at: record.revoked_at.map(Timestamp::from_ms),
        }
    }
}

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let keys = app.keys.list(&session.coach).await?;
        Reply::ok(&json!({ "keys": keys.into_iter().map(KeyView::from).collect::<Vec<_>>() }))
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let draft = draft(&inbound.json()?, session.now)?;
        let key = new_api_key(draft.scope);
        let made = app.keys.create(&app.workspaces, &session.coach, &draft, &key, session.now).await?;
        made_reply(made, Some(&key))
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn rotate(State(app): State<App>, PathParameter(id): PathParameter, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let id = KeyId::parse(&id).map_err(|_| Problem::NotFound(KEY))?;
        let rotated = app.keys.rotate(&app.workspaces, &session.coach, &id, new_api_key, session.now).await?;
        made_reply(rotated.0, rotated.1.as_ref())
    };
    app.sessions.answer(&inbound, work).await
}

pub(crate) async fn revoke(State(app): State<App>, PathParameter(id): PathParameter, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let id = KeyId::parse(&id).map_err(|_| Problem::NotFound(KEY))?;
        let revoked = app.keys.revoke(&app.workspaces, &session.coach, &id, session.now).await?;
        Reply::ok(&KeyView::from(revoked.ok_or(Problem::NotFound(KEY))?))
    };
    app.sessions.answer(&inbound, work).await
}

fn made_reply(made: Made, key: Option<&ApiKey>) -> Result<Reply, Problem> {
    let record = match made {
        Made::Done(record) => *record,
        Made::TooMany => return Err(Problem::KeyLimit),
        Made::UnknownWorkspace => return Err(Problem::WorkspaceUnknown),
        Made::NotFound => return Err(Problem::NotFound(KEY)),
        Made::NotLive => return Err(Problem::KeyNotLive),
    };
    let mut reply = Reply::created(&KeyView::from(record))?;
    reply.body["key"] = json!(key.map(ApiKey::expose));
    Ok(reply)
}

fn draft(body: &Value, now: Timestamp) -> Result<KeyDraft, Invalid> {
    let fields = Fields::body(body)?;
    fields.only(&["name", "scope", "permissions", "expires_at"])?;
    let name = fields.required_text("name", MAX_KEY_NAME_CHARS)?.to_owned();
    let scope = fields.required("scope", 16, Scope::parse)?;
    let mut permissions = fields.list("permissions", Permission::parse)?.unwrap_or_default();
    if scope == Scope::Partner && !permissions.is_empty() {
        return Err(Invalid::field(
            "permissions",
            "belong to keys of scope crm; a partner key opens all partner operations",
        ));
    }
    permissions.sort_unstable();
    permissions.dedup();
    let expires_at = fields.timestamp("expires_at")?;
    if expires_at.is_some_and(|at| at <= now) {
        return Err(Invalid::field("expires_at", "must be in the future"));
    }
    Ok(KeyDraft { name, scope, permissions, expires_at })
}
