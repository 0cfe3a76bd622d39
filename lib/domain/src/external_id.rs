//! A coach's own id for a client, such as the number of a patient in a practice's software. Unique per coach.

use serde::{Deserialize, Serialize};

use crate::fields::{Fields, Invalid};

/// Most characters of an external id.
pub const MAX_EXTERNAL_ID_CHARS: usize = 128;

/// An external id with a visible character, compared as given: case, blanks and normal forms count.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct ExternalId(String);
crate::discreet! { ExternalId }

impl ExternalId {
    /// Reads the field of a body; omitted or null is `None`.
    pub(crate) fn field(fields: Fields<'_>, name: &str) -> Result<Option<Self>, Invalid> {
        Ok(fields.visible_text(name, MAX_EXTERNAL_ID_CHARS)?.map(Self::unchecked))
    }

    /// Parses a filter. An empty filter is the id of no client.
    pub fn filter(name: &str, text: &str) -> Result<Self, Invalid> {
        if text.chars().count() > MAX_EXTERNAL_ID_CHARS {
            let rule = format_args!("must be at most {MAX_EXTERNAL_ID_CHARS} characters");
            return Err(Invalid::field(name, rule));
        }
        Ok(Self::unchecked(text))
    }

    /// Wraps a text without a check.
    pub(crate) fn unchecked(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
