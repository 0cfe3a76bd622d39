//! The subject of an event, a change or a delivery: the client or the contact that it is about. Erasure follows the
//! subject.

use serde::{Deserialize, Serialize};

use crate::id::{ClientId, ContactId};

/// The person that something is about. A contact belongs to the coach of what carries the subject.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Parts", into = "Parts")]
pub enum Subject {
    /// Nobody, such as of an endpoint that was disabled.
    #[default]
    None,
    Client(ClientId),
    Contact(ContactId),
    /// A contact that is a client.
    Both {
        client_id: ClientId,
        contact_id: ContactId,
    },
}

/// A subject as it is stored: beside the other members of what carries it.
#[derive(Serialize, Deserialize)]
struct Parts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<ClientId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contact_id: Option<ContactId>,
}

impl Subject {
    /// A contact, and the client that it is, if it is one.
    pub fn of_contact(contact_id: ContactId, client_id: Option<&ClientId>) -> Self {
        match client_id {
            Some(client_id) => Self::Both { client_id: client_id.clone(), contact_id },
            None => Self::Contact(contact_id),
        }
    }

    /// The client, if there is one.
    pub fn client(&self) -> Option<&ClientId> {
        match self {
            Self::Client(client_id) | Self::Both { client_id, .. } => Some(client_id),
            Self::None | Self::Contact(_) => None,
        }
    }

    /// The contact, if there is one.
    pub fn contact(&self) -> Option<ContactId> {
        match self {
            Self::Contact(contact_id) | Self::Both { contact_id, .. } => Some(*contact_id),
            Self::None | Self::Client(_) => None,
        }
    }
}

impl From<Parts> for Subject {
    fn from(parts: Parts) -> Self {
        match (parts.client_id, parts.contact_id) {
            (None, None) => Self::None,
            (Some(client_id), None) => Self::Client(client_id),
            (client_id, Some(contact_id)) => Self::of_contact(contact_id, client_id.as_ref()),
        }
    }
}

impl From<Subject> for Parts {
    fn from(subject: Subject) -> Self {
        Self { client_id: subject.client().cloned(), contact_id: subject.contact() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_subject_is_stored_beside_other_members_and_read_back() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Carrier {
            n: u8,
            #[serde(flatten)]
            subject: Subject,
        }
        let client_id = ClientId::parse("c1").unwrap();
        let contact_id = ContactId::parse("018f0000-0000-7000-8000-000000000001").unwrap();
        for (subject, stored) in [
            (Subject::None, json!({ "n": 1 })),
            (Subject::Client(client_id.clone()), json!({ "n": 1, "client_id": "c1" })),
            (Subject::Contact(contact_id), json!({ "n": 1, "contact_id": contact_id })),
            (
                Subject::Both { client_id: client_id.clone(), contact_id },
                json!({ "n": 1, "client_id": "c1", "contact_id": contact_id }),
            ),
        ] {
            let carrier = Carrier { n: 1, subject };
            assert_eq!(serde_json::to_value(&carrier).unwrap(), stored);
            assert_eq!(serde_json::from_value::<Carrier>(stored).unwrap(), carrier);
        }
    }
}
