//! The EventBridge event around a fact. Only known fields are kept, so a message that is sent on holds nothing else.

use domain::fact::{Fact, known_fields, lenient};
use domain::fields::Invalid;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::progress::Progress;

/// The known fields of a fact with the state of its processing.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Envelope {
    #[serde(rename = "detail-type")]
    pub detail_type: String,
    pub detail: Value,
    /// The time when the fact first arrived, if the fact has gone round.
    pub first_seen: Option<Timestamp>,
    /// The number of rounds of the fact so far.
    pub rounds: u32,
    /// The number of passes over the fact since it was stored.
    pub passes: u32,
    /// The end of the part that is stored already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The time of the call that stored the fact first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_at: Option<Timestamp>,
}
domain::discreet! { Envelope }

/// Limit of a fact's name in logs and dead letters.
const MAX_DETAIL_TYPE_CHARS: usize = 128;

impl Envelope {
    /// Parses a message's body, and the fact in it.
    pub fn parse(body: &str) -> (Self, Result<Fact, Invalid>) {
        let event: Option<Self> = match lenient(body) {
            event @ Value::Object(_) => serde_json::from_value(event).ok(),
            _ => None,
        };
        let Some(mut envelope) = event.filter(|event| !event.detail.is_null()) else {
            return (Self::default(), Err(Invalid::whole("the message is not an EventBridge event")));
        };
        let fact = Fact::parse(&envelope.detail_type, &envelope.detail);
        envelope.detail = known_fields(&envelope.detail_type, &envelope.detail);
        envelope.detail_type = envelope.detail_type.chars().take(MAX_DETAIL_TYPE_CHARS).collect();
        (envelope, fact)
    }

    /// The progress of the fact.
    pub fn progress(&self) -> Progress<'_> {
        Progress { passes: self.passes, after: self.after.as_deref(), stored_at: self.stored_at }
    }

    /// The message for the next round of the fact.
    pub fn next_round(&self, first_seen: Timestamp) -> String {
        Self { first_seen: Some(first_seen), rounds: self.rounds + 1, ..self.clone() }.message()
    }

    /// The message for the next pass over the fact.
    pub fn next_pass(&self, now: Timestamp) -> String {
        let stored_at = self.stored_at.or(Some(now));
        Self { passes: self.passes + 1, after: None, stored_at, ..self.clone() }.message()
    }

    /// The message that stores the rest of the fact.
    pub fn rest(&self, after: Option<String>, now: Timestamp) -> String {
        Self { after, stored_at: self.stored_at.or(Some(now)), ..self.clone() }.message()
    }

    fn message(&self) -> String {
        serde_json::to_string(self).expect("an envelope converts to JSON")
    }
}
