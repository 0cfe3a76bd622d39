//! The EventBridge event around a fact. Read down to what is known: what is sent on carries nothing else.

use domain::fact::cleaned;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A fact on its way.
#[derive(Clone)]
pub(crate) struct Envelope {
    pub(crate) detail_type: String,
    /// Known fields alone.
    pub(crate) detail: Value,
    /// When the fact first came, where it has gone round before.
    pub(crate) first_seen: Option<Timestamp>,
    /// How often it has.
    pub(crate) rounds: u32,
    /// How often it has been gone over since it was stored.
    pub(crate) passes: u32,
}
domain::discreet! { Envelope }

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(rename = "detail-type")]
    detail_type: String,
    detail: Value,
    #[serde(default)]
    first_seen: Option<Timestamp>,
    #[serde(default)]
    rounds: u32,
    #[serde(default)]
    passes: u32,
}

/// Longest name of a fact that is repeated to anybody.
const MAX_DETAIL_TYPE_CHARS: usize = 128;

impl Envelope {
    /// The fact that a message's body holds, or what there is to say of a body that holds none.
    pub(crate) fn parse(body: &str) -> Result<Self, Self> {
        let unreadable =
            || Self { detail_type: String::new(), detail: json!({}), first_seen: None, rounds: 0, passes: 0 };
        let wire: Wire = serde_json::from_str(body).map_err(|_| unreadable())?;
        // A detail that is no object is left as it is for the parser to refuse, unless it could be text.
        let detail = if wire.detail.is_object() { cleaned(&wire.detail_type, &wire.detail) } else { Value::Null };
        let detail_type = wire.detail_type.chars().take(MAX_DETAIL_TYPE_CHARS).collect();
        Ok(Self { detail_type, detail, first_seen: wire.first_seen, rounds: wire.rounds, passes: wire.passes })
    }

    /// The message that takes the fact round again.
    pub(crate) fn next_round(&self, first_seen: Timestamp) -> String {
        self.message(Some(first_seen), (self.rounds + 1, self.passes))
    }

    /// The message that has the fact gone over again.
    pub(crate) fn next_pass(&self) -> String {
        self.message(self.first_seen, (self.rounds, self.passes + 1))
    }

    fn message(&self, first_seen: Option<Timestamp>, (rounds, passes): (u32, u32)) -> String {
        let (detail_type, detail) = (self.detail_type.clone(), self.detail.clone());
        let wire = Wire { detail_type, detail, first_seen, rounds, passes };
        serde_json::to_string(&wire).expect("an envelope converts to JSON")
    }
}
