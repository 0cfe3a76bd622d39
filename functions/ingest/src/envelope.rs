//! The EventBridge event around a fact. Only known fields are read, so a message that is sent on holds nothing else.

use domain::fact::Known;
use domain::fields::Invalid;
use domain::pieces::{Piece, Pieces};
use domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A fact with the state of its processing.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Envelope {
    #[serde(rename = "detail-type")]
    pub(crate) detail_type: String,
    /// An object of known fields alone.
    pub(crate) detail: Value,
    /// The reason why the fact cannot be read, if so.
    #[serde(skip)]
    pub(crate) unreadable: Option<Invalid>,
    /// The time when the fact first arrived, if the fact has gone round.
    pub(crate) first_seen: Option<Timestamp>,
    /// The number of rounds of the fact so far.
    pub(crate) rounds: u32,
    /// The number of passes over the fact since it was stored.
    pub(crate) passes: u32,
    /// The end of the part that is stored already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<String>,
}
domain::discreet! { Envelope }

/// Limit of a fact's name in logs and dead letters.
const MAX_DETAIL_TYPE_CHARS: usize = 128;

impl Envelope {
    /// Parses a message's body, as far as it can be read.
    pub(crate) fn parse(body: &str) -> Self {
        // A byte order mark is no part of the JSON.
        let body = body.trim_start_matches('\u{feff}');
        let Pieces { pieces, is_whole } = Pieces::of_object(body).unwrap_or_default();
        // The last of two members with one name counts.
        let text_of = |name: &str| {
            let is_it = |piece: &&Piece<'_>| read::<String>(piece.name).as_deref() == Some(name);
            pieces.iter().rfind(is_it).map(|piece| piece.value)
        };
        let detail_type: Option<String> = text_of("detail-type").and_then(read);
        let detail = text_of("detail");
        let unreadable = match (detail, &detail_type, is_whole) {
            (None, ..) => Some(Invalid::whole("the message is not an EventBridge event")),
            (_, None, _) => Some(Invalid::field("DetailType", "must be the name of a fact")),
            (.., false) => Some(Invalid::whole("the message is not one whole EventBridge event")),
            _ => None,
        };
        let detail_type = detail_type.unwrap_or_default();
        let known = Known::read(&detail_type, detail.unwrap_or_default());
        Self {
            detail_type: detail_type.chars().take(MAX_DETAIL_TYPE_CHARS).collect(),
            detail: known.fields,
            unreadable: unreadable.or(known.unreadable),
            first_seen: text_of("first_seen").and_then(read),
            rounds: text_of("rounds").and_then(read).unwrap_or_default(),
            passes: text_of("passes").and_then(read).unwrap_or_default(),
            after: text_of("after").and_then(read),
        }
    }

    /// The message for the next round of the fact.
    pub(crate) fn next_round(&self, first_seen: Timestamp) -> String {
        Self { first_seen: Some(first_seen), rounds: self.rounds + 1, ..self.clone() }.message()
    }

    /// The message for the next pass over the fact.
    pub(crate) fn next_pass(&self) -> String {
        Self { passes: self.passes + 1, after: None, ..self.clone() }.message()
    }

    /// The message that stores the rest of the fact.
    pub(crate) fn rest(&self, after: Option<String>) -> String {
        Self { after, ..self.clone() }.message()
    }

    fn message(&self) -> String {
        serde_json::to_string(self).expect("an envelope converts to JSON")
    }
}

/// The value of a piece of the message, if it can be read.
fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}
