//! A line of the delivery log at rest. The receiver's answer is sealed, because it may repeat the body that it was
//! sent.

use chrono::TimeDelta;
use domain::delivery::{Attempt, AttemptResult};
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Deliveries, ENTITY};
use crate::db::{ItemWrite, StoreError, to_attribute};

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

impl Deliveries {
    pub(super) fn seal_attempt(&self, endpoint: &EndpointId, id: &DeliveryId, line: &Attempt) -> StoredAttempt {
        let seal = |text: &String| SealedText(self.vault.seal(&context(endpoint, id), text.as_bytes()));
        StoredAttempt {
            at: line.at,
            result: line.result.clone(),
            duration_ms: line.duration_ms,
            excerpt: line.response_excerpt.as_ref().map(seal),
        }
    }

    pub(super) fn open_attempt(
        &self,
        endpoint: &EndpointId,
        id: &DeliveryId,
        line: StoredAttempt,
    ) -> Result<Attempt, StoreError> {
        let open = |sealed: SealedText| {
            let text = self.vault.unseal(ENTITY, &context(endpoint, id), &sealed.0)?;
            String::from_utf8(text).map_err(|error| StoreError::corrupt(ENTITY, error))
        };
        let StoredAttempt { at, result, duration_ms, excerpt } = line;
        Ok(Attempt { at, result, duration_ms, response_excerpt: excerpt.map(open).transpose()? })
    }
}

/// Adds lines to a delivery's log.
pub(super) fn append<'a>(update: ItemWrite<'a>, lines: &[StoredAttempt]) -> ItemWrite<'a> {
    update.set_to("attempts = list_append(attempts, :lines)").values([(":lines", to_attribute(&lines))])
}

fn context(endpoint: &EndpointId, id: &DeliveryId) -> String {
    format!("delivery/{endpoint}/{id}/excerpt")
}
