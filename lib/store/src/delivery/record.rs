//! The item of a delivery, its keys, and the lines of its log. The receiver's answer is sealed, because it may repeat
//! the body that it was sent.

use chrono::TimeDelta;
use domain::delivery::{Attempt, AttemptResult, DeliveryOrder, DeliveryStatus, SentRequest};
use domain::id::{CoachId, DeliveryId, EndpointId, EventId};
use domain::subject::Subject;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::db::{self, Item, ItemWrite, StoreError, to_attribute};
use crate::vault::Vault;

pub(super) const ENTITY: &str = "delivery";
const PARTITION_PREFIX: &str = "ENDPOINT#";
pub(super) const SORT_PREFIX: &str = "DELIVERY#";

#[derive(Serialize, Deserialize)]
pub(super) struct DeliveryItem {
    pub(super) pk: String,
    pub(super) sk: String,
    pub(super) id: DeliveryId,
    pub(super) coach_id: CoachId,
    pub(super) event_id: EventId,
    pub(super) event_type: String,
    #[serde(flatten)]
    pub(super) subject: Subject,
    pub(super) made_at: Timestamp,
    pub(super) status: DeliveryStatus,
    pub(super) attempts: Vec<StoredAttempt>,
    pub(super) chain: u32,
    pub(super) next_attempt: u32,
    pub(super) next_attempt_at: Option<Timestamp>,
    /// The time of the failure in milliseconds: the sort key of GSI `failed`. Present as long as the delivery can be
    /// sent again.
    pub(super) failed_at: Option<i64>,
    /// The time at which a recovery last sent the delivery again, in milliseconds.
    pub(super) recovered_at: Option<i64>,
    /// A test event. A recovery skips it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) test: bool,
    pub(super) hop: Option<u32>,
    pub(super) hop_owner: Option<String>,
    pub(super) lease_owner: Option<String>,
    pub(super) lease_until: Option<i64>,
    pub(super) recorded_by: Option<String>,
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

/// An order that leads to no attempt any more, and the step that may be missing. A function may have died right after
/// it recorded the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpentOrder {
    /// The attempt has been made. The next attempt's order may not have been sent.
    Next(Box<DeliveryOrder>),
    /// The receiver took the event at that time. The success may not have been recorded in the endpoint's health.
    Delivered(Timestamp),
    /// No step is missing: the delivery or the retry chain has ended, or another order has overtaken this one.
    Nothing,
}

impl DeliveryItem {
    /// The request of the latest attempt. `None` before the first attempt.
    pub(super) fn sent_request(&self) -> Option<SentRequest> {
        let (host, unix_s) = (self.sent_to.clone()?, self.sent_s?);
        Some(SentRequest { host, unix_s, signature: self.signature.clone() })
    }

    /// The reason why an order no longer counts; `None` if its attempt is the next one.
    pub(super) fn spent(&self, order: &DeliveryOrder, now: Timestamp) -> Result<Option<SpentOrder>, StoreError> {
        if self.expires_at <= now.unix_s() {
            return Ok(Some(SpentOrder::Nothing));
        }
        if let (DeliveryStatus::Delivered, Some(line)) = (self.status, self.attempts.last()) {
            return Ok(Some(SpentOrder::Delivered(line.ended_at())));
        }
        if self.status != DeliveryStatus::Pending || self.chain != order.chain {
            return Ok(Some(SpentOrder::Nothing));
        }
        match self.next_attempt.cmp(&order.attempt) {
            std::cmp::Ordering::Equal => Ok(None),
            std::cmp::Ordering::Greater => {
                // A recorded hop or lease shows that the order has been sent.
                let has_come = self.hop.is_some() || self.lease_owner.is_some();
                let due_at = self.next_attempt_at.filter(|_| !has_come);
                let next = due_at.map(|at| SpentOrder::Next(Box::new(order.for_attempt(self.next_attempt, at))));
                Ok(Some(next.unwrap_or(SpentOrder::Nothing)))
            }
            std::cmp::Ordering::Less => Err(StoreError::corrupt(ENTITY, "an order is ahead of its delivery")),
        }
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

    #[cfg(test)]
    pub(super) fn sealed(at: Timestamp, result: AttemptResult, excerpt: Vec<u8>) -> Self {
        Self { at, result, duration_ms: 5, excerpt: Some(SealedText(excerpt)) }
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

    /// The time at which the attempt began.
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// The time at which the receiver had answered, or the attempt was given up.
    pub(super) fn ended_at(&self) -> Timestamp {
        self.at + TimeDelta::milliseconds(self.duration_ms.into())
    }

    /// The approximate size in bytes.
    pub(super) fn size(&self) -> usize {
        const MEMBERS: usize = 100;
        MEMBERS + self.excerpt.as_ref().map_or(0, |excerpt| excerpt.0.len())
    }

    /// Returns true if the line has no excerpt of the receiver's answer.
    pub(super) fn has_no_excerpt(&self) -> bool {
        self.excerpt.is_none()
    }

    /// The line without the receiver's answer.
    pub(super) fn without_excerpt(&self) -> Self {
        Self { excerpt: None, ..self.clone() }
    }
}

/// Adds lines to a delivery's log.
pub(super) fn append<'a>(update: ItemWrite<'a>, lines: &[StoredAttempt]) -> ItemWrite<'a> {
    update.set_to("attempts = list_append(attempts, :lines)").values([(":lines", to_attribute(&lines))])
}

fn excerpt_context(endpoint: &EndpointId, id: &DeliveryId) -> String {
    format!("delivery/{endpoint}/{id}/excerpt")
}

pub(super) fn partition(endpoint: &EndpointId) -> String {
    format!("{PARTITION_PREFIX}{endpoint}")
}

/// The endpoint of a partition.
pub(super) fn endpoint_of(pk: &str) -> Result<EndpointId, StoreError> {
    let id = pk.strip_prefix(PARTITION_PREFIX).and_then(|id| EndpointId::parse(id).ok());
    id.ok_or_else(|| StoreError::corrupt(ENTITY, "its partition has another form"))
}

pub(super) fn sort_key(id: &DeliveryId) -> String {
    format!("{SORT_PREFIX}{id}")
}

pub(super) fn key(endpoint: &EndpointId, id: &DeliveryId) -> Item {
    db::key(partition(endpoint), sort_key(id))
}

pub(super) fn body_context(endpoint: &EndpointId, id: &DeliveryId) -> String {
    format!("delivery/{endpoint}/{id}/body")
}
