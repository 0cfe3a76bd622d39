//! Table `idempotency`: one item per idempotency key. pk `CLAIM#<coach>#<api>#<source>#<sha256>`. GSI `by_contact`:
//! `contact_ref`. pk `SECRET#..`: the secret of an answer, see module `secret`.
//! A claim is a lease with an owner token. Every write under the claim states the token, so a process that lost its
//! lease changes nothing. A transaction of the work also moves the claim: to the answer, or to a stage from which a
//! takeover continues. A takeover reads the client again, and never replays the password of a client who was handed
//! over.
//!
//! 1. `begin` PutItem, unless a valid record exists. The refused put returns the record: an answer, a lease, or a
//!    lapsed lease.
//! 2. `take_over` UpdateItem, if the lease is still the lapsed one.
//! 3. `record` Parts of the work's transaction: the answer or a stage. `record_alone` UpdateItem to the answer.
//! 4. `release` UpdateItem that ends the lease and keeps the stage: after a fault the next request continues at once.
//!    `withdraw` ends the record too.
//! 5. `about` Query of `by_contact`. `erase`, `erase_creation` UpdateItem or DeleteItem, if the record still has the
//!    erased subject: the key may be in other use by now. Module `eraser`. Operators read by the same index.

mod eraser;
mod secret;

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use domain::id::ClientId;
use domain::idempotency::{Fingerprint, IdempotencyKey, LEASE, Mismatch, RETENTION, SECRET_RETENTION};
use domain::time::Timestamp;
use runtime::{BoxError, Environment, random_bytes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use eraser::ClaimEraser;
pub(crate) use eraser::query_about;

use crate::contact_ref::ContactRef;
use crate::db::{
    self, Db, Item, ItemWrite, Part, StoreError, Table, Write, Written, b, from_item, n, s, text, to_item,
};
use crate::vault::Vault;

/// Marks a record whose subject is erased. It refuses repeats.
const ERASED: &str = "erased";
/// The longest time for which the end of a lease may delay an answer.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);

/// Counts claims that were taken over after work died under them.
const TAKEOVERS: runtime::Metric = runtime::Metric::logged("claim_takeovers", runtime::Unit::Count);

/// A lease on an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pk: String,
    owner: String,
}

/// The key of a claim's record, independent of the lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimKey(String);

/// The subject of a recorded reply, or of the stage before it. Erasure finds the record by its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedSubject {
    Client(ClientId),
    Contact(ContactRef),
}

/// A recorded reply.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordedReply {
    pub status: u16,
    /// JSON.
    pub body: Vec<u8>,
}
domain::discreet! { RecordedReply }

/// A claim's record of committed work.
pub struct Recorded {
    what: What,
    subject: Option<RecordedSubject>,
}

enum What {
    /// The end of the work, and the time for which its reply is replayed.
    Reply(RecordedReply, TimeDelta),
    /// The end of work whose reply shows a secret once, and the same reply without the secret.
    Secret { whole: RecordedReply, redacted: RecordedReply },
    /// A stage before the end. A takeover continues from it.
    Stage(Value),
}

impl Recorded {
    /// Records a reply, to be replayed for this long.
    pub fn reply(reply: RecordedReply, keep: TimeDelta) -> Self {
        Self { what: What::Reply(reply, keep), subject: None }
    }

    /// Records a reply that shows a secret. A late replay gets the `redacted` reply.
    pub fn secret(whole: RecordedReply, redacted: RecordedReply) -> Self {
        Self { what: What::Secret { whole, redacted }, subject: None }
    }

    /// Records a stage.
    pub fn stage(stage: Value) -> Self {
        Self { what: What::Stage(stage), subject: None }
    }

    /// Names the client or contact whose erasure removes the record.
    pub fn about(self, subject: Option<RecordedSubject>) -> Self {
        Self { subject, ..self }
    }
}

impl RecordedSubject {
    fn attribute(&self) -> &'static str {
        match self {
            Self::Client(_) => "client_id",
            Self::Contact(_) => "contact_ref",
        }
    }

    fn value(&self) -> AttributeValue {
        match self {
            Self::Client(id) => s(id.as_str()),
            Self::Contact(contact) => s(contact.to_string()),
        }
    }
}

impl ClaimKey {
    /// The key of the record of an idempotency key.
    pub fn of(key: &IdempotencyKey) -> Self {
        Self(format!("CLAIM#{}", key.as_str()))
    }

    /// The key of the item.
    pub(crate) fn item_key(&self) -> Item {
        db::pk(&self.0)
    }
}

/// The request that claims a key.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequest {
    pub fingerprint: Fingerprint,
    /// The handling of a request whose key stands for another payload.
    pub mismatch: Mismatch,
}

/// The state of a key when a request arrives with it.
#[derive(Debug)]
pub enum ClaimState {
    /// No record, or work that died before it committed anything.
    Fresh(Claim),
    /// Work that died after it committed this stage.
    Staged { claim: Claim, stage: Value, same_payload: bool },
    /// Work that may still be alive.
    InProgress { same_payload: bool },
    /// Finished work.
    Finished { reply: RecordedReply, same_payload: bool },
    /// Work about a person who is erased.
    Erased,
}

#[derive(Serialize, Deserialize)]
struct ClaimItem {
    pk: String,
    owner: String,
    /// Milliseconds.
    lease_until: i64,
    #[serde(with = "crate::binary")]
    fingerprint: Vec<u8>,
    stage: Option<Sealed>,
    status: Option<u16>,
    body: Option<Sealed>,
    /// The end of the time in which the answer is replayed with its secret, in ms. Absent from answers without one.
    secret_until: Option<i64>,
    /// Seconds: the TTL attribute.
    expires_at: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Sealed(#[serde(with = "crate::binary")] Vec<u8>);

/// The idempotency table.
#[derive(Clone)]
pub struct Claims {
    table: Table,
    vault: Vault,
}

impl Claims {
    /// The table that `IDEMPOTENCY_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "IDEMPOTENCY_TABLE")?, vault: vault.clone() })
    }

    /// Claims a key, or returns the state that prevents a claim.
    pub async fn begin(
        &self,
        key: &IdempotencyKey,
        asked: ClaimRequest,
        now: Timestamp,
    ) -> Result<ClaimState, StoreError> {
        let record = ClaimItem {
            pk: ClaimKey::of(key).0,
            owner: hex::encode(random_bytes::<16>()),
            lease_until: (now + LEASE).ms(),
            fingerprint: asked.fingerprint.as_bytes().to_vec(),
            stage: None,
            status: None,
            body: None,
            secret_until: None,
            expires_at: ends_s(now + RETENTION),
        };
        let claim = Claim { pk: record.pk.clone(), owner: record.owner.clone() };
        // The SDK repeats a put whose answer was lost. The repeated put finds its own token. A put that was given up
        // and takes effect late does not overwrite a stage or answer.
        let put = self.table.write(to_item(&record)).when(
            "attribute_not_exists(pk) OR expires_at <= :now \
             OR (#owner = :owner AND attribute_not_exists(stage) AND attribute_not_exists(#status))",
            [(":now", n(now.unix_s())), (":owner", s(&claim.owner))],
        );
        match put.put_now().await {
            Ok(Written::Done(_)) => Ok(ClaimState::Fresh(claim)),
            Ok(Written::Refused(Some(old))) => self.existing_claim(claim, old, asked, now).await,
            // Deleted by TTL between the check and the answer.
            Ok(Written::Refused(None)) => Ok(ClaimState::InProgress { same_payload: true }),
            Err(error) => {
                // The claim may have been taken nevertheless, and no work would run under it.
                if let Err(error) = self.release(&claim).await {
                    tracing::warn!(%error, "failed to release a claim that may have been taken");
                }
                Err(error)
            }
        }
    }

    async fn existing_claim(
        &self,
        claim: Claim,
        old: Item,
        ClaimRequest { fingerprint, mismatch }: ClaimRequest,
        now: Timestamp,
    ) -> Result<ClaimState, StoreError> {
        if old.contains_key(ERASED) {
            return Ok(ClaimState::Erased);
        }
        let old: ClaimItem = from_item("claim", old)?;
        let same_payload = fingerprint.is(&old.fingerprint);
        if let (Some(status), Some(body)) = (old.status, &old.body) {
            let whole = match old.secret_until {
                Some(until_ms) if same_payload => self.whole_answer(&old.pk, until_ms, now).await?,
                _ => None,
            };
            let body = match whole {
                Some(whole) => whole,
                None => self.vault.unseal("claim", &context(&old.pk, "body"), &body.0)?,
            };
            let reply = RecordedReply { status, body };
            return Ok(ClaimState::Finished { reply, same_payload });
        }
        // A different payload is refused even after the lease: the first request may have committed its work.
        if old.lease_until > now.ms() || (!same_payload && mismatch == Mismatch::Refused) {
            return Ok(ClaimState::InProgress { same_payload });
        }
        self.take_over(claim, &old, fingerprint, now).await
    }

    async fn take_over(
        &self,
        claim: Claim,
        lapsed: &ClaimItem,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<ClaimState, StoreError> {
        let same_payload = fingerprint.is(&lapsed.fingerprint);
        // A committed stage belongs to the old payload. A claim without a stage counts as new.
        let recorded = if lapsed.stage.is_some() { &lapsed.fingerprint[..] } else { fingerprint.as_bytes() };
        let update = self
            .table
            .write(db::pk(&claim.pk))
            .set("owner", s(&claim.owner))
            .set("lease_until", n((now + LEASE).ms()))
            .set("fingerprint", b(recorded.to_vec()))
            .set("expires_at", n(ends_s(now + RETENTION)))
            // The SDK repeats an update whose answer was lost. The repeated update finds its own token.
            .when(
                "#owner = :owner OR (#owner = :lapsed_owner AND lease_until = :lapsed_until)",
                [(":lapsed_owner", s(&lapsed.owner)), (":lapsed_until", n(lapsed.lease_until))],
            )
            .when("attribute_not_exists(#status)", [])
            .returning_item();
        let Written::Done(taken) = update.update_now().await? else {
            return Ok(ClaimState::InProgress { same_payload: true });
        };
        let taken: ClaimItem = from_item("claim", taken)?;
        // A released lease is no sign of work that died.
        if lapsed.lease_until > 0 {
            runtime::add(TAKEOVERS, 1.0);
        }
        match taken.stage {
            None => Ok(ClaimState::Fresh(claim)),
            Some(stage) => {
                let stage = self.vault.unseal_json("claim", &context(&claim.pk, "stage"), &stage.0)?;
                Ok(ClaimState::Staged { claim, stage, same_payload })
            }
        }
    }

    /// Parts of the work's transaction: the claim ends with its reply, or reaches a stage.
    pub(crate) fn record(&self, claim: &Claim, recorded: &Recorded, now: Timestamp) -> Vec<Write> {
        let mut writes = vec![self.record_write(claim, recorded, now).update(Part::Claim)];
        if let What::Secret { whole, .. } = &recorded.what {
            writes.push(self.secret_write(claim, whole, now));
        }
        writes
    }

    /// Records the reply of work that writes nothing else. Returns false if another request has taken over the claim.
    pub async fn record_alone(&self, claim: &Claim, recorded: &Recorded, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.record_write(claim, recorded, now).update_now().await?.is_done())
    }

    /// The write of a reply removes the stage, because the password in the stage has no further use.
    fn record_write(&self, claim: &Claim, recorded: &Recorded, now: Timestamp) -> ItemWrite<'_> {
        let replied = |reply: &RecordedReply, keep: TimeDelta| {
            let body = self.vault.seal(&context(&claim.pk, "body"), &reply.body);
            let write = self.owned(claim).set("status", n(reply.status)).set("body", b(body)).remove(["stage"]);
            write.set("expires_at", n(ends_s(now + keep)))
        };
        let write = match &recorded.what {
            What::Reply(reply, keep) => replied(reply, *keep),
            What::Secret { redacted, .. } => {
                replied(redacted, RETENTION).set("secret_until", n((now + SECRET_RETENTION).ms()))
            }
            What::Stage(stage) => {
                self.owned(claim).set("stage", b(self.vault.seal_json(&context(&claim.pk, "stage"), stage)))
            }
        };
        match &recorded.subject {
            None => write,
            Some(subject) => write.set(subject.attribute(), subject.value()),
        }
    }

    /// A write on condition that the lease is ours.
    fn owned(&self, claim: &Claim) -> ItemWrite<'_> {
        self.table.write(db::pk(&claim.pk)).when("#owner = :owner", [(":owner", s(&claim.owner))])
    }

    /// Ends the lease without an answer. Waits a short time only: the lease also expires by itself.
    pub async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        self.end(claim, None).await
    }

    /// Ends the lease and the record: any request may use the key again.
    pub async fn withdraw(&self, claim: &Claim, now: Timestamp) -> Result<(), StoreError> {
        self.end(claim, Some(now)).await
    }

    async fn end(&self, claim: &Claim, expires_at: Option<Timestamp>) -> Result<(), StoreError> {
        let mut end = self.owned(claim).set("lease_until", n(0)).when("attribute_not_exists(#status)", []);
        if let Some(at) = expires_at {
            end = end.set("expires_at", n(at.unix_s()));
        }
        match tokio::time::timeout(RELEASE_WITHIN, end.update_now()).await {
            Ok(ended) => ended.map(drop),
            Err(elapsed) => Err(StoreError::Unavailable { operation: "UpdateItem", source: elapsed.into() }),
        }
    }
}

/// The first whole second at or after `until`: rounding up never shortens the retention.
fn ends_s(until: Timestamp) -> i64 {
    let s = until.unix_s();
    if until > Timestamp::from_ms(s * 1_000) { s + 1 } else { s }
}

/// Opens the answer or the stage of a record. `None`: `path` names the fingerprint, which is a hash.
pub(crate) fn open_member(vault: &Vault, item: &Item, path: &str, bytes: &[u8]) -> Result<Option<Value>, StoreError> {
    match path {
        "body" | "stage" => vault.unseal_json("claim", &context(text(item, "pk"), path), bytes).map(Some),
        _ => Ok(None),
    }
}

fn context(pk: &str, field: &str) -> String {
    format!("{pk}/{field}")
}
