//! A CRM contact: somebody in a workspace's address book, who may be or become a client.

use serde::{Deserialize, Serialize};

use crate::email::Email;
use crate::id::{ClientId, ContactId};
use crate::phone::Phone;
use crate::time::Timestamp;

/// Most characters of a contact's name.
pub const MAX_CONTACT_NAME_CHARS: usize = 200;

/// What a contact has agreed to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marketing {
    pub email: bool,
    pub sms: bool,
}

/// A contact as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    pub id: ContactId,
    pub name: String,
    pub email: Option<Email>,
    pub phone: Option<Phone>,
    /// Suppression: nothing may be sent to this contact.
    pub do_not_contact: bool,
    pub marketing: Marketing,
    /// The client that this contact has become.
    pub client_id: Option<ClientId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
