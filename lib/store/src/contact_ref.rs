//! Reference to a contact from items about the contact: the key of the indexes `by_contact`.

use std::fmt;

use domain::id::{CoachId, ContactId};
use serde::{Deserialize, Serialize};

/// A contact of a coach's workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContactRef {
    pub coach_id: CoachId,
    pub contact_id: ContactId,
}

impl ContactRef {
    /// Builds the reference.
    pub fn new(coach: &CoachId, contact: ContactId) -> Self {
        Self { coach_id: coach.clone(), contact_id: contact }
    }
}

impl fmt::Display for ContactRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.coach_id, self.contact_id)
    }
}
