//! `/settings/keys`: a coach's API keys. The key itself is only in the answer that creates it.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::ApiKey;
use domain::audit::{AuditAction, AuditDetail};
use domain::fields::Fields;
use domain::id::KeyId;
use domain::key::{KeyChange, KeyCursor, KeyDraft, KeyFilter, KeyList, KeyStatus, KeyView, NewKey};
use domain::list::KEY_PAGE;
use domain::time::Timestamp;
use edge::{Command, Decision, Inbound, Problem, Reply};
use runtime::random_bytes;
use store::key::KeyRecord;
use store::workspace::StoredWorkspace;
use store::{Part, RefusedTransaction};

use crate::App;
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
    app.sessions.run(&inbound, &Create { app: &app, inbound: &inbound, random: random_bytes() }).await
}

pub(crate) async fn rotate(State(app): State<App>, inbound: Inbound) -> Response {
    app.sessions.run(&inbound, &Rotate { app: &app, inbound: &inbound, random: random_bytes() }).await
}

pub(crate) async fn change(State(app): State<App>, inbound: Inbound) -> Response {
    app.sessions.run(&inbound, &Change { app: &app, inbound: &inbound }).await
}

pub(crate) async fn revoke(State(app): State<App>, inbound: Inbound) -> Response {
    app.sessions.run(&inbound, &Revoke { app: &app, inbound: &inbound }).await
}

struct Create<'a> {
    app: &'a App,
    inbound: &'a Inbound,
    random: [u8; 128],
}

impl Command for Create<'_> {
    type Caller = Session;
    type Snapshot = (KeyDraft, StoredWorkspace);

    async fn read(&self, session: &Session) -> Result<Self::Snapshot, Problem> {
        let draft = KeyDraft::parse(Fields::body(self.inbound.json()?)?, session.now)?;
        Ok((draft, workspace(self.app, session).await?))
    }

    fn decide(&self, session: &Session, (draft, workspace): &Self::Snapshot) -> Result<Decision, Problem> {
        let key = ApiKey::generate(draft.scope, &self.random);
        let record = KeyRecord::new(&key, draft, workspace, session.now);
        let detail = AuditDetail { scope: Some(record.scope), ..record.audit_detail() };
        let audited = self.app.audit(session, AuditAction::KeyCreated, &record.key_id, detail);
        Ok(creation(self.app, session, &key, &record, workspace)?.write([audited]))
    }

    async fn refused(
        &self,
        session: &Session,
        _: &Self::Snapshot,
        refused: &RefusedTransaction,
    ) -> Result<(), Problem> {
        make_room(self.app, session, refused).await
    }
}

struct Rotate<'a> {
    app: &'a App,
    inbound: &'a Inbound,
    random: [u8; 128],
}

impl Command for Rotate<'_> {
    type Caller = Session;
    type Snapshot = (KeyRecord, StoredWorkspace);

    async fn read(&self, session: &Session) -> Result<Self::Snapshot, Problem> {
        refuse_fields(self.inbound)?;
        let record = find(self.app, session, self.inbound).await?;
        match record.status(session.now) {
            KeyStatus::Active => Ok((record, workspace(self.app, session).await?)),
            KeyStatus::Replaced => Err(Problem::KeyNotActive),
            KeyStatus::Revoked | KeyStatus::Expired => Err(Problem::KeyNotLive),
        }
    }

    fn decide(&self, session: &Session, (old, workspace): &Self::Snapshot) -> Result<Decision, Problem> {
        let key = ApiKey::generate(old.scope, &self.random);
        let record = KeyRecord::new(&key, &old.to_draft(), workspace, session.now);
        let detail = AuditDetail { new_key_id: Some(record.key_id.clone()), ..old.audit_detail() };
        let audited = self.app.audit(session, AuditAction::KeyRotated, &old.key_id, detail);
        let retired = self.app.keys.retire(old, &record.key_id, session.now);
        Ok(creation(self.app, session, &key, &record, workspace)?.write([retired, audited]))
    }

    async fn refused(
        &self,
        session: &Session,
        _: &Self::Snapshot,
        refused: &RefusedTransaction,
    ) -> Result<(), Problem> {
        make_room(self.app, session, refused).await
    }
}

struct Change<'a> {
    app: &'a App,
    inbound: &'a Inbound,
}

/// A change of a key, the key, and the workspace of a key whose expiry changes.
pub(crate) struct ChangeRead {
    change: KeyChange,
    record: KeyRecord,
    workspace: Option<StoredWorkspace>,
}

impl Command for Change<'_> {
    type Caller = Session;
    type Snapshot = ChangeRead;

    async fn read(&self, session: &Session) -> Result<ChangeRead, Problem> {
        let change = KeyChange::parse(Fields::body(self.inbound.json()?)?, session.now)?;
        let record = find(self.app, session, self.inbound).await?;
        let workspace = match (record.status(session.now), change.expires_at) {
            (KeyStatus::Revoked, _) => return Err(Problem::KeyRevoked),
            (KeyStatus::Expired | KeyStatus::Replaced, Some(_)) => return Err(Problem::KeyNotActive),
            // Another expiry copies the workspace's state into the key.
            (KeyStatus::Active, Some(_)) => Some(workspace(self.app, session).await?),
            (KeyStatus::Expired | KeyStatus::Replaced | KeyStatus::Active, None) => None,
        };
        Ok(ChangeRead { change, record, workspace })
    }

    fn decide(&self, session: &Session, found: &ChangeRead) -> Result<Decision, Problem> {
        let (ChangeRead { change, record, .. }, workspace) = (found, found.workspace.as_ref());
        let detail = AuditDetail { changed: Some(change.fields()), ..record.audit_detail() };
        Ok(Decision::reply(Reply::ok(&view(record.changed(change), session.now))?)
            .write(self.app.keys.change(&session.coach, record, change, workspace, session.now))
            .write(workspace.map(|workspace| self.app.workspaces.check_unchanged(workspace)))
            .write([self.app.audit(session, AuditAction::KeyUpdated, &record.key_id, detail)]))
    }

    async fn refused(
        &self,
        session: &Session,
        found: &ChangeRead,
        refused: &RefusedTransaction,
    ) -> Result<(), Problem> {
        let (keys, id) = (&self.app.keys, &found.record.key_id);
        // The key has expired, and another one has its place.
        let is_out = refused.is(Part::KeyRing) && !keys.has_place(&session.coach, id, session.now).await?;
        if is_out { Err(Problem::KeyNotActive) } else { Ok(()) }
    }
}

struct Revoke<'a> {
    app: &'a App,
    inbound: &'a Inbound,
}

impl Command for Revoke<'_> {
    type Caller = Session;
    type Snapshot = KeyRecord;

    async fn read(&self, session: &Session) -> Result<KeyRecord, Problem> {
        find(self.app, session, self.inbound).await
    }

    fn decide(&self, session: &Session, found: &KeyRecord) -> Result<Decision, Problem> {
        if found.revoked_at.is_some() {
            return Ok(Decision::reply(Reply::ok(&view(found.clone(), session.now))?));
        }
        let revoked = KeyRecord { revoked_at: Some(session.now.ms()), ..found.clone() };
        Ok(Decision::reply(Reply::ok(&view(revoked, session.now))?)
            .write(self.app.keys.revoke(&session.coach, &found.key_id, session.now))
            .write([self.app.audit(session, AuditAction::KeyRevoked, &found.key_id, found.audit_detail())]))
    }
}

/// The key that a path names.
async fn find(app: &App, session: &Session, inbound: &Inbound) -> Result<KeyRecord, Problem> {
    let id = KeyId::parse(inbound.parameter(0)).map_err(|_| Problem::NotFound(KEY))?;
    app.keys.get(&session.coach, &id).await?.ok_or(Problem::NotFound(KEY))
}

async fn workspace(app: &App, session: &Session) -> Result<StoredWorkspace, Problem> {
    app.workspaces.get(&session.coach).await?.ok_or(Problem::WorkspaceUnknown)
}

/// The decision to create a key, on condition that its workspace is as it was read. A late replay of the answer is
/// without the key itself.
fn creation(
    app: &App,
    session: &Session,
    key: &ApiKey,
    record: &KeyRecord,
    workspace: &StoredWorkspace,
) -> Result<Decision, Problem> {
    let answer = |key: Option<&ApiKey>| {
        let key = key.map(|key| key.expose().to_owned());
        Reply::created(&NewKey { record: view(record.clone(), session.now), key })
    };
    let writes = app.keys.create(record, key);
    Ok(Decision::secret(answer(Some(key))?, answer(None)?)
        .write(writes)
        .write([app.workspaces.check_unchanged(workspace)]))
}

/// Removes expired keys from a ring that had no room. Refuses the request if all keys are live.
async fn make_room(app: &App, session: &Session, refused: &RefusedTransaction) -> Result<(), Problem> {
    let has_room = !refused.is(Part::KeyRing) || app.keys.make_room(&session.coach, session.now).await?;
    if has_room { Ok(()) } else { Err(Problem::KeyLimit) }
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
