//! The events that a key may read from the event feed, which a coach allows per key.

use serde::{Deserialize, Serialize};

use crate::event::{EventType, PayloadMode};

/// The events that a key may read, and how much of a client's personal data they hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EventAccess {
    /// The types of the events: emitted events only, at least one.
    pub types: Vec<EventType>,
    pub payload_mode: PayloadMode,
}
