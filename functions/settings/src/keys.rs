//! `/settings/keys`: a coach's API keys. The key itself is only in the answer that creates it.

use domain::api_key::ApiKey;
use domain::audit::{AuditAction, AuditDetail};
use domain::cursor::CursorList;
use domain::fields::Fields;
use domain::id::KeyId;
use domain::id_kind::IdKind;
use domain::key::{KeyChange, KeyCursor, KeyDraft, KeyFilter, KeyList, KeyStatus, KeyView, NewKey};
use domain::list::KEY_PAGE;
use domain::time::Timestamp;
use edge::{About, Command, Decision, Inbound, Problem, Reply, Session};
use futures::future::try_join;
use runtime::random_bytes;
use store::key::{KeyRecord, Readers};
use store::workspace::StoredWorkspace;
use store::{Part, RefusedTransaction};

use crate::App;

pub(crate) async fn list(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let limit = KEY_PAGE.parse(inbound.query("limit").as_deref()) as usize;
    let filter = KeyFilter::parse(inbound.query("status").as_deref())?;
    let list = CursorList { name: "keys", coach: &session.coach };
    let after = list.parse(inbound.query("cursor").as_deref(), KeyCursor::parse)?;
    let page = app.keys.page(&session.coach, filter, limit, after, session.now).await?;
    let keys = page.keys.into_iter().map(|record| view(record, session.now)).collect();
    let next_cursor = page.next_cursor.map(|next| list.cursor(&String::from(next)));
    Reply::ok(&KeyList { keys, next_cursor })
}

/// The creation of a key, or the rotation of the key in the path: the new key is like the old one.
pub(crate) struct NewKeyCommand<const ROTATES: bool>;
pub(crate) type Create = NewKeyCommand<false>;
pub(crate) type Rotate = NewKeyCommand<true>;

/// The key to create, the key that it replaces, the workspace, and the readers of events if the key becomes one.
pub(crate) struct CreateRead {
    draft: KeyDraft,
    old: Option<KeyRecord>,
    workspace: StoredWorkspace,
    readers: Option<Readers>,
    random: [u8; 128],
}

impl<const ROTATES: bool> Command for NewKeyCommand<ROTATES> {
    type App = App;
    type Caller = Session;
    type Snapshot = CreateRead;

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<CreateRead, Problem> {
        let (draft, old) = if ROTATES {
            inbound.refuse_fields()?;
            let old = find(app, session, inbound).await?;
            match old.status(session.now) {
                KeyStatus::Active => (old.to_draft(), Some(old)),
                KeyStatus::Replaced => return Err(Problem::KeyNotActive),
                KeyStatus::Revoked | KeyStatus::Expired => return Err(Problem::KeyNotLive),
            }
        } else {
            (KeyDraft::parse(Fields::body(inbound.json()?)?, session.now)?, None)
        };
        let readers = readers(app, session, draft.events.is_some());
        let (workspace, readers) = try_join(workspace(app, session), readers).await?;
        Ok(CreateRead { draft, old, workspace, readers, random: random_bytes() })
    }

    fn decide(app: &App, session: &Session, found: &CreateRead) -> Result<Decision, Problem> {
        let (CreateRead { draft, old, workspace, random, .. }, now) = (found, session.now);
        let readers = found.readers.as_ref();
        let key = app.keys.generate(draft.scope, random);
        let record = KeyRecord::new(&key, draft, workspace, readers, now);
        let (action, target, detail) = match old {
            None => {
                let detail = AuditDetail { scope: Some(record.scope), ..record.audit_detail() };
                (AuditAction::KeyCreated, &record.key_id, detail)
            }
            Some(old) => {
                let detail = AuditDetail { new_key_id: Some(record.key_id.clone()), ..old.audit_detail() };
                (AuditAction::KeyRotated, &old.key_id, detail)
            }
        };
        // A late replay of the answer is without the key itself.
        let answer = |key: Option<&ApiKey>| {
            let key = key.map(|key| key.expose().to_owned());
            Reply::created(&NewKey { record: view(record.clone(), now), key })
        };
        Ok(Decision::secret(answer(Some(&key))?, answer(None)?)
            .write(match old {
                None => app.keys.create(&record, &key, readers),
                Some(old) => app.keys.replace(old, &record, &key, readers, now),
            })
            .write([app.workspaces.check_unchanged(workspace), app.audit(session, action, target, detail)]))
    }

    /// Removes expired keys from a ring that had no room. Refuses the request if all keys are live.
    async fn refused(
        app: &App,
        session: &Session,
        _: &CreateRead,
        refused: &RefusedTransaction,
    ) -> Result<(), Problem> {
        let has_room = !refused.is(Part::KeyRing) || app.keys.make_room(&session.coach, session.now).await?;
        if has_room { Ok(()) } else { Err(Problem::KeyLimit) }
    }
}

pub(crate) struct Change;

/// A change of a key, the key, the workspace of a key whose expiry changes, and the readers of events if the key
/// becomes one.
pub(crate) struct ChangeRead {
    change: KeyChange,
    record: KeyRecord,
    workspace: Option<StoredWorkspace>,
    readers: Option<Readers>,
}

impl Command for Change {
    type App = App;
    type Caller = Session;
    type Snapshot = ChangeRead;

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<ChangeRead, Problem> {
        let change = KeyChange::parse(Fields::body(inbound.json()?)?, session.now)?;
        let record = find(app, session, inbound).await?;
        match record.status(session.now) {
            KeyStatus::Revoked => return Err(Problem::KeyRevoked),
            KeyStatus::Expired | KeyStatus::Replaced if change.expires_at.is_some() => {
                return Err(Problem::KeyNotActive);
            }
            KeyStatus::Expired | KeyStatus::Replaced if change.events.is_some() => {
                return Err(Problem::KeyEventsFixed);
            }
            KeyStatus::Expired | KeyStatus::Replaced | KeyStatus::Active => {}
        }
        let workspace = match change.expires_at {
            // Another expiry copies the workspace's state into the key.
            Some(_) => Some(workspace(app, session).await?),
            None => None,
        };
        let becomes_reader = record.events.is_none() && matches!(change.events, Some(Some(_)));
        let readers = readers(app, session, becomes_reader).await?;
        Ok(ChangeRead { change, record, workspace, readers })
    }

    fn decide(app: &App, session: &Session, found: &ChangeRead) -> Result<Decision, Problem> {
        let ChangeRead { change, record, .. } = found;
        let (workspace, readers) = (found.workspace.as_ref(), found.readers.as_ref());
        let detail = AuditDetail { changed: Some(change.fields()), ..record.audit_detail() };
        Ok(Decision::reply(About::Nobody, Reply::ok(&view(record.changed(change, readers), session.now))?)
            .write(app.keys.change(record, change, workspace, readers, session.now))
            .write(workspace.map(|workspace| app.workspaces.check_unchanged(workspace)))
            .write([app.audit(session, AuditAction::KeyUpdated, &record.key_id, detail)]))
    }

    async fn refused(
        app: &App,
        session: &Session,
        found: &ChangeRead,
        refused: &RefusedTransaction,
    ) -> Result<(), Problem> {
        let (keys, id) = (&app.keys, &found.record.key_id);
        // The key has expired, and another one has its place.
        let is_out = refused.is(Part::KeyRing) && !keys.has_place(&session.coach, id, session.now).await?;
        if is_out { Err(Problem::KeyNotActive) } else { Ok(()) }
    }
}

pub(crate) struct Revoke;

impl Command for Revoke {
    type App = App;
    type Caller = Session;
    type Snapshot = KeyRecord;

    async fn read(app: &App, session: &Session, inbound: &Inbound) -> Result<KeyRecord, Problem> {
        find(app, session, inbound).await
    }

    fn decide(app: &App, session: &Session, found: &KeyRecord) -> Result<Decision, Problem> {
        if found.revoked_at.is_some() {
            return Ok(Decision::reply(About::Nobody, Reply::ok(&view(found.clone(), session.now))?));
        }
        let revoked = KeyRecord { revoked_at: Some(session.now.ms()), ..found.clone() };
        Ok(Decision::reply(About::Nobody, Reply::ok(&view(revoked, session.now))?)
            .write(app.keys.revoke(&session.coach, &found.key_id, session.now))
            .write([app.audit(session, AuditAction::KeyRevoked, &found.key_id, found.audit_detail())]))
    }
}

/// The key that a path names.
async fn find(app: &App, session: &Session, inbound: &Inbound) -> Result<KeyRecord, Problem> {
    let id = KeyId::parse(inbound.parameter(0)).map_err(|_| Problem::not_found(IdKind::Key))?;
    app.keys.get(&session.coach, &id).await?.ok_or(Problem::not_found(IdKind::Key))
}

/// The readers of events, for a key that becomes one.
async fn readers(app: &App, session: &Session, becomes_reader: bool) -> Result<Option<Readers>, Problem> {
    if !becomes_reader {
        return Ok(None);
    }
    Ok(Some(app.keys.readers(&session.coach, session.now).await?))
}

async fn workspace(app: &App, session: &Session) -> Result<StoredWorkspace, Problem> {
    app.workspaces.get(&session.coach).await?.ok_or(Problem::WorkspaceUnknown)
}

fn view(record: KeyRecord, now: Timestamp) -> KeyView {
    let status = record.status(now);
    let expires_at = record.expires_at.map(Timestamp::from_ms);
    KeyView {
        id: record.key_id,
        name: record.name,
        scope: record.scope,
        permissions: record.permissions,
        events: record.events,
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
