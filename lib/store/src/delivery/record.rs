//! The item of a delivery, its keys, and the lines of its log. The receiver's answer is sealed, because it may repeat
//! the body that it was sent.

use chrono::TimeDelta;
use domain::delivery::{Attempt, AttemptResult, DeliveryState, DeliveryStatus, SentRequest};
use domain::id::{CoachId, DeliveryId, EndpointId, EventId};
use domain::subject::Subject;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::db::{self, Item, StoreError, sk_of, text};
use crate::vault::Vault;

pub(super) const ENTITY: &str = "delivery";
const PARTITION_PREFIX: &str = "ENDPOINT#";
pub(super) const SORT_PREFIX: &str = "DELIVERY#";

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct DeliveryItem {
    pub(super) pk: String,
    pub(super) sk: String,
    pub(super) version: u64,
    pub(super) id: DeliveryId,
    pub(super) coach_id: CoachId,
    pub(super) event_id: EventId,
    pub(super) event_type: String,
    #[serde(flatten)]
    pub(super) subject: Subject,
    /// Key of the index `by_subject`.
    pub(super) subject_ref: Option<String>,
    /// Key of the index `by_merged_contact`.
    pub(super) merged_contact_ref: Option<String>,
    pub(super) made_at: Timestamp,
    pub(super) status: DeliveryStatus,
    pub(super) attempts: Vec<StoredAttempt>,
    pub(super) chain: u32,
    pub(super) next_attempt: u32,
    pub(super) next_attempt_at: Option<Timestamp>,
    /// The time since which the delivery has waited, in milliseconds: the beginning of its latest attempt or chain.
    pub(super) waits_since: i64,
    #[serde(flatten)]
    pub(super) indexed: StatusKeys,
    /// The time at which the relay last found no order of the delivery, in milliseconds.
    pub(super) reordered_at: Option<i64>,
    /// The time at which a recovery last sent the delivery again, in milliseconds.
    pub(super) recovered_at: Option<i64>,
    /// A test event. A recovery skips it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) test: bool,
    /// The client is erased: there is no body, signature or answer any more. A recovery skips it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) erased: bool,
    /// The host that the latest attempt was sent to.
    pub(super) sent_to: Option<String>,
    /// The signed time of the latest attempt, in seconds.
    pub(super) sent_s: Option<i64>,
    /// The signature of the latest attempt. Absent after the client is erased.
    pub(super) signature: Option<String>,
    /// The sealed body. Empty after the client is erased.
    #[serde(with = "crate::binary")]
    pub(super) sealed: Vec<u8>,
    pub(super) expires_at: i64,
}

impl DeliveryItem {
    /// The request of the latest attempt. `None` before the first attempt.
    pub(super) fn sent_request(&self) -> Option<SentRequest> {
        let (host, unix_s) = (self.sent_to.clone()?, self.sent_s?);
        Some(SentRequest { host, unix_s, signature: self.signature.clone() })
    }

    /// The part of the record that orders and attempts change.
    pub(super) fn state(&self) -> DeliveryState {
        DeliveryState {
            status: self.status,
            chain: self.chain,
            next_attempt: self.next_attempt,
            next_attempt_at: self.next_attempt_at,
        }
    }

    /// The record in another state.
    #[must_use]
    pub(super) fn in_state(self, state: &DeliveryState) -> Self {
        let DeliveryState { status, chain, next_attempt, next_attempt_at } = *state;
        let indexed = StatusKeys::of(status, &self.pk);
        Self { status, chain, next_attempt, next_attempt_at, indexed, reordered_at: None, ..self }
    }
}

/// The partition keys of the indexes `pending` and `failed`: the endpoint's partition in the index of the delivery's
/// status, and none in the other. A delivered event is in neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StatusKeys {
    pending_of: Option<String>,
    failed_of: Option<String>,
}

impl StatusKeys {
    /// The keys of a delivery in the partition `pk`.
    pub(super) fn of(status: DeliveryStatus, pk: &str) -> Self {
        let key_in = |indexed: DeliveryStatus| (status == indexed).then(|| pk.to_owned());
        Self { pending_of: key_in(DeliveryStatus::Pending), failed_of: key_in(DeliveryStatus::Failed) }
    }
}

/// The index of the deliveries of a status, and its partition key. `None`: the status has no index.
pub(super) fn index_of(status: DeliveryStatus) -> Option<(&'static str, &'static str)> {
    match status {
        DeliveryStatus::Pending => Some(("pending", "pending_of")),
        DeliveryStatus::Failed => Some(("failed", "failed_of")),
        DeliveryStatus::Delivered => None,
    }
}

/// A line of the delivery log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredAttempt {
    at: Timestamp,
    #[serde(flatten)]
    result: AttemptResult,
    duration_ms: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    excerpt: Option<SealedText>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct SealedText(#[serde(with = "crate::binary")] Vec<u8>);

impl StoredAttempt {
    /// A line with the reason why nothing was sent.
    pub(super) fn unsent(at: Timestamp, reason: &str) -> Self {
        let Attempt { at, result, duration_ms, .. } = Attempt::unsent(at, reason);
        Self { at, result, duration_ms, excerpt: None }
    }

    /// The stored form of a line.
    pub(super) fn seal(vault: &Vault, endpoint: &EndpointId, id: &DeliveryId, line: &Attempt) -> Self {
        let seal = |text: &String| SealedText(vault.seal(&excerpt_context(endpoint, id), text.as_bytes()));
        Self {
            at: line.at,
            result: line.result.clone(),
            duration_ms: line.duration_ms,
            excerpt: line.response_excerpt.as_ref().map(seal),
        }
    }

    /// The line as it was before it was stored.
    pub(super) fn open(self, vault: &Vault, endpoint: &EndpointId, id: &DeliveryId) -> Result<Attempt, StoreError> {
        let open = |sealed: SealedText| {
            let text = vault.unseal(ENTITY, &excerpt_context(endpoint, id), &sealed.0)?;
            String::from_utf8(text).map_err(|error| StoreError::corrupt(ENTITY, error))
        };
        let Self { at, result, duration_ms, excerpt } = self;
        Ok(Attempt { at, result, duration_ms, response_excerpt: excerpt.map(open).transpose()? })
    }

    /// Returns true for two lines of one attempt.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.at, &self.result, self.duration_ms) == (other.at, &other.result, other.duration_ms)
    }

    pub(super) fn result(&self) -> &AttemptResult {
        &self.result
    }

    pub(super) fn duration_ms(&self) -> u32 {
        self.duration_ms
    }

    /// The time at which the attempt began.
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// The time at which the receiver had answered, or the attempt was given up.
    pub(super) fn ended_at(&self) -> Timestamp {
        self.at + TimeDelta::milliseconds(self.duration_ms.into())
    }

    /// The line at its time, or at another that is later.
    pub(super) fn not_before(self, at: Timestamp) -> Self {
        Self { at: self.at.max(at), ..self }
    }

    /// The line without the receiver's answer.
    pub(super) fn without_excerpt(&self) -> Self {
        Self { excerpt: None, ..self.clone() }
    }
}

fn excerpt_context(endpoint: &EndpointId, id: &DeliveryId) -> String {
    format!("delivery/{endpoint}/{id}/excerpt")
}

pub(crate) fn partition(endpoint: &EndpointId) -> String {
    format!("{PARTITION_PREFIX}{endpoint}")
}

/// Opens a binary attribute of a delivery, which `path` names: the body, or an excerpt of a receiver's answer. `None`:
/// the body is erased.
pub(crate) fn open_member(vault: &Vault, item: &Item, path: &str, sealed: &[u8]) -> Result<Option<Value>, StoreError> {
    let (endpoint, id) = (endpoint_of(text(item, "pk"))?, id_of(item)?);
    if path == "attempts.excerpt" {
        let excerpt = vault.unseal(ENTITY, &excerpt_context(&endpoint, &id), sealed)?;
        return Ok(Some(String::from_utf8_lossy(&excerpt).into()));
    }
    if sealed.is_empty() {
        return Ok(None);
    }
    vault.unseal_json(ENTITY, &body_context(&endpoint, &id), sealed).map(Some)
}

/// The endpoint of a partition.
pub(crate) fn endpoint_of(pk: &str) -> Result<EndpointId, StoreError> {
    let id = pk.strip_prefix(PARTITION_PREFIX).and_then(|id| EndpointId::parse(id).ok());
    id.ok_or_else(|| StoreError::corrupt(ENTITY, "its partition has another form"))
}

pub(super) fn sort_key(id: &DeliveryId) -> String {
    format!("{SORT_PREFIX}{id}")
}

pub(super) fn key(endpoint: &EndpointId, id: &DeliveryId) -> Item {
    db::key(partition(endpoint), sort_key(id))
}

/// The delivery of a key.
pub(super) fn id_of(key: &Item) -> Result<DeliveryId, StoreError> {
    let id = sk_of(key).strip_prefix(SORT_PREFIX).and_then(|id| DeliveryId::parse(id).ok());
    id.ok_or_else(|| StoreError::corrupt(ENTITY, "its key has another form"))
}

pub(super) fn body_context(endpoint: &EndpointId, id: &DeliveryId) -> String {
    format!("delivery/{endpoint}/{id}/body")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::db::{from_item, to_item};

    /// A delivery that waits for its second attempt, due at 6 s.
    pub(in super::super) fn record() -> DeliveryItem {
        DeliveryItem {
            pk: "ENDPOINT#we_1".to_owned(),
            sk: "DELIVERY#dlv_1".to_owned(),
            version: 1,
            id: DeliveryId::parse("dlv_1").unwrap(),
            coach_id: CoachId::parse("coach_1").unwrap(),
            event_id: EventId::parse("evt_1").unwrap(),
            event_type: "new_client".to_owned(),
            subject: Subject::client(domain::id::ClientId::parse("c1").unwrap()),
            subject_ref: Some("c1".to_owned()),
            merged_contact_ref: None,
            made_at: Timestamp::from_ms(0),
            status: DeliveryStatus::Pending,
            attempts: vec![line(1_000, 500)],
            chain: 1,
            next_attempt: 2,
            next_attempt_at: Some(Timestamp::from_ms(6_000)),
            waits_since: 1_000,
            indexed: StatusKeys::of(DeliveryStatus::Pending, "ENDPOINT#we_1"),
            reordered_at: None,
            recovered_at: None,
            test: false,
            erased: false,
            sent_to: None,
            sent_s: None,
            signature: None,
            sealed: vec![1, 2, 3],
            expires_at: 100,
        }
    }

    /// An attempt that was answered, with an excerpt.
    pub(in super::super) fn line(at_ms: i64, code: u16) -> StoredAttempt {
        let (at, result) = (Timestamp::from_ms(at_ms), AttemptResult::StatusCode(code));
        StoredAttempt { at, result, duration_ms: 5, excerpt: Some(SealedText(vec![9, 9])) }
    }

    #[test]
    fn a_record_and_its_attempts_read_back_from_the_item() {
        let attempts = vec![line(1, 503), StoredAttempt::unsent(Timestamp::from_ms(2), "not sent")];
        let item = to_item(&DeliveryItem { attempts: attempts.clone(), ..record() });
        assert!(!item.contains_key("recovered_at"), "conditions distinguish an absent attribute from a null one");
        let read: DeliveryItem = from_item(ENTITY, item).unwrap();
        assert_eq!((read.attempts, read.sealed), (attempts, vec![1, 2, 3]));
    }

    #[test]
    fn a_delivery_is_in_the_index_of_its_status_alone() {
        for status in [DeliveryStatus::Pending, DeliveryStatus::Failed, DeliveryStatus::Delivered] {
            let state = DeliveryState { status, ..record().state() };
            let item = to_item(&record().in_state(&state));
            let keys = ["pending_of", "failed_of"].into_iter().filter(|key| item.contains_key(*key));
            assert_eq!(keys.collect::<Vec<_>>(), index_of(status).map(|(_, key)| key).into_iter().collect::<Vec<_>>());
        }
    }
}
