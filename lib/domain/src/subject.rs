//! The subject of an event, a change or a delivery: the client or the contact that it is about. Erasure follows the
//! subject.

use serde::{Deserialize, Serialize};

use crate::id::{ClientId, ContactId};

/// The person that an item is about: a client, a contact, or a contact that is a client. The default is nobody, for
/// example for a disabled endpoint. A contact belongs to the coach of the item.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Subject {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<ClientId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    /// The contact of the item's record, if it was merged into `contact_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_contact_id: Option<ContactId>,
}

impl Subject {
    pub fn client(client_id: ClientId) -> Self {
        Self { client_id: Some(client_id), ..Self::default() }
    }

    pub fn contact(contact_id: ContactId) -> Self {
        Self { contact_id: Some(contact_id), ..Self::default() }
    }
}
