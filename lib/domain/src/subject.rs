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
            (Subject::default(), json!({ "n": 1 })),
            (Subject::client(client_id.clone()), json!({ "n": 1, "client_id": "c1" })),
            (Subject::contact(contact_id), json!({ "n": 1, "contact_id": contact_id })),
            (
                Subject {
                    client_id: Some(client_id),
                    contact_id: Some(contact_id),
                    merged_contact_id: Some(contact_id),
                },
                json!({ "n": 1, "client_id": "c1", "contact_id": contact_id, "merged_contact_id": contact_id }),
            ),
        ] {
            let carrier = Carrier { n: 1, subject };
            assert_eq!(serde_json::to_value(&carrier).unwrap(), stored);
            assert_eq!(serde_json::from_value::<Carrier>(stored).unwrap(), carrier);
        }
    }
}
