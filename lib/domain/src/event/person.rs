//! The person that an event names. Receivers get the id, and with contact details the personal data, too.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{EventGroup, EventName, PayloadMode};
use crate::client::Client;
use crate::contact::Contact;
use crate::email::Email;
use crate::external_id::ExternalId;
use crate::id::{ClientId, ContactId};
use crate::phone::Phone;
use crate::subject::Subject;

/// The person that an event names, with the personal data for receivers with contact details.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Person {
    /// The client in `data.client`.
    Client { id: ClientId, details: ClientDetails },
    /// The contact in `data.contact`.
    Contact(NamedContact),
    /// No contact: `data.contact` is null.
    NoContact,
}

/// The member that names a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonSchema {
    Client,
    Contact,
    /// Null if a booking has no contact.
    BookedContact,
}

impl PersonSchema {
    pub fn of(event_type: EventName) -> Self {
        match event_type.group() {
            EventGroup::Client => Self::Client,
            EventGroup::Contact | EventGroup::Opportunity => Self::Contact,
            EventGroup::Booking => Self::BookedContact,
        }
    }

    /// The name of the member.
    pub fn member(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Contact | Self::BookedContact => "contact",
        }
    }
}

/// The contact that an event names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedContact {
    pub id: ContactId,
    /// The client that the contact is.
    pub client_id: Option<ClientId>,
    /// The contact of the event's record, if it was merged into this one.
    pub merged: Option<ContactId>,
    pub details: ContactDetails,
}

/// The members of `data.client` that the payload mode `contact_details` adds. Null means that the client has none.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientDetails {
    /// The client's name.
    pub name: String,
    /// The address with which the client signs in. Null if the client has none.
    #[schema(required)]
    pub email: Option<Email>,
    /// The number as it was given. Null if the client has none.
    #[schema(required)]
    pub phone: Option<Phone>,
    /// Your own id for the client.
    #[schema(required)]
    pub external_id: Option<ExternalId>,
}
crate::discreet! { ClientDetails }

/// The members of `data.contact` that the payload mode `contact_details` adds. Null means that the contact has none.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContactDetails {
    /// Null if the application has not sent the contact within two minutes of the event.
    #[schema(required)]
    pub name: Option<String>,
    /// The contact's e-mail address. Null if none is known.
    #[schema(required)]
    pub email: Option<Email>,
    /// The number as it was given. Null if none is known.
    #[schema(required)]
    pub phone: Option<Phone>,
}
crate::discreet! { ContactDetails }

impl Person {
    pub fn client(client: &Client) -> Self {
        let profile = &client.profile;
        let details = ClientDetails {
            name: profile.full_name.clone(),
            email: profile.email.clone(),
            phone: profile.phone.clone(),
            external_id: profile.external_id.clone(),
        };
        Self::Client { id: client.id.clone(), details }
    }

    pub fn contact(contact: &Contact) -> Self {
        let details = ContactDetails {
            name: Some(contact.name.clone()),
            email: contact.email.clone(),
            phone: contact.phone.clone(),
        };
        Self::Contact(NamedContact { id: contact.id, client_id: contact.client_id.clone(), merged: None, details })
    }

    /// A contact that is not stored yet.
    pub fn unknown_contact(id: ContactId) -> Self {
        Self::Contact(NamedContact { id, client_id: None, merged: None, details: ContactDetails::default() })
    }

    /// The person in events of records of `contact`, which may have been merged into the person.
    pub fn for_records_of(self, contact: ContactId) -> Self {
        match self {
            Self::Contact(named) if named.id != contact => {
                Self::Contact(NamedContact { merged: Some(contact), ..named })
            }
            person => person,
        }
    }

    /// The contact of the event's record, if the person is a contact that was not stored when the event was written.
    pub fn unseen_contact(&self) -> Option<ContactId> {
        match self {
            // A stored contact has a name, which may be empty.
            Self::Contact(named) if named.details.name.is_none() => Some(named.merged.unwrap_or(named.id)),
            Self::Contact(_) | Self::Client { .. } | Self::NoContact => None,
        }
    }

    /// The subject of events about the person.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Client { id, .. } => Subject::client(id.clone()),
            Self::Contact(NamedContact { id, client_id, merged, .. }) => {
                Subject { client_id: client_id.clone(), contact_id: Some(*id), merged_contact_id: *merged }
            }
            Self::NoContact => Subject::default(),
        }
    }

    /// Returns the member of `data` that names the person, and its value for receivers of this mode.
    pub(super) fn member(&self, mode: PayloadMode) -> (&'static str, Value) {
        let with_details = |id: Value, details: Value| {
            let mut person = json!({ "id": id });
            if let (PayloadMode::ContactDetails, Value::Object(details), Some(person)) =
                (mode, details, person.as_object_mut())
            {
                person.extend(details);
            }
            person
        };
        match self {
            Self::Client { id, details } => ("client", with_details(json!(id), json!(details))),
            Self::Contact(named) => ("contact", with_details(json!(named.id), json!(named.details))),
            Self::NoContact => ("contact", Value::Null),
        }
    }
}
