//! A CRM contact: a person in a workspace's address book, who may be or become a client.
//!
//! Both the application and the API write a contact. The application writes the whole record; the API sets a name, an
//! e-mail address or the suppression. The latest write wins per field, in any order of arrival: [`KnownContact`] stores
//! the times.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::email::{Email, MAX_EMAIL_CHARS};
use crate::fact_time::FactTime;
use crate::fields::{Fields, Invalid};
use crate::id::{ClientId, CoachId, ContactId};
use crate::openapi::{Body, Field};
use crate::phone::Phone;
use crate::time::Timestamp;

/// Most characters of a contact's name.
pub const MAX_CONTACT_NAME_CHARS: usize = 200;

/// Marketing consent, by channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Marketing {
    pub email: bool,
    pub sms: bool,
}

/// A contact as the API shows it.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    pub id: ContactId,
    pub name: String,
    /// Null if the application has none.
    #[schema(required)]
    pub email: Option<Email>,
    /// The number as it was given. Null if the application has none.
    #[schema(required)]
    pub phone: Option<Phone>,
    /// True: no message may be sent to the contact (suppression).
    pub do_not_contact: bool,
    /// Marketing consent, by channel.
    pub marketing: Marketing,
    /// The client that the contact became. Null if it is no client.
    #[schema(required)]
    pub client_id: Option<ClientId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
crate::discreet! { Contact }

/// A contact to create, or to find by its address.
#[derive(Clone, PartialEq)]
pub struct ContactDraft {
    pub name: String,
    pub email: Email,
}
crate::discreet! { ContactDraft }

impl ContactDraft {
    /// Parses the body of `POST /v1/crm/contacts`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::strict(body, &["name", "email"])?;
        Ok(Self {
            name: fields.required_text("name", MAX_CONTACT_NAME_CHARS)?.to_owned(),
            email: fields.required("email", MAX_EMAIL_CHARS, Email::parse)?,
        })
    }

    pub fn schema() -> Body {
        let email = Field::email(MAX_EMAIL_CHARS).required();
        Body::strict([
            ("name", Field::text(MAX_CONTACT_NAME_CHARS).required()),
            (
                "email",
                email.about("If a contact has this address, in any case, the answer is that contact, unchanged."),
            ),
        ])
    }
}

/// A change of a contact.
#[derive(Clone, PartialEq)]
pub struct ContactPatch {
    pub name: Option<String>,
    /// True: no message may be sent to the contact.
    pub do_not_contact: bool,
}
crate::discreet! { ContactPatch }

impl ContactPatch {
    /// Parses the body of `PATCH /v1/crm/contacts/{id}`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::strict(body, &["name", "doNotContact"])?;
        let name = fields.text("name", MAX_CONTACT_NAME_CHARS)?.map(str::to_owned);
        let do_not_contact = match fields.boolean("doNotContact")? {
            Some(false) => {
                return Err(fields.refuse("doNotContact", "can only be true: what stops messages is not lifted here"));
            }
            given => given.is_some(),
        };
        if name.is_none() && !do_not_contact {
            return Err(Invalid::whole("The body must hold name, doNotContact or both."));
        }
        Ok(Self { name, do_not_contact })
    }

    pub fn schema() -> Body {
        Body::change([
            ("name", Field::text(MAX_CONTACT_NAME_CHARS)),
            (
                "doNotContact",
                Field::only_true().about(
                    "Only `true`: no message may be sent to the contact. The API cannot lift the suppression or give \
                     consent.",
                ),
            ),
        ])
    }
}

/// The whole record of a contact, as the application has it.
#[derive(Clone, PartialEq)]
pub struct ContactSaved {
    pub contact_id: ContactId,
    pub coach_id: CoachId,
    pub name: String,
    pub email: Option<Email>,
    pub phone: Option<Phone>,
    pub do_not_contact: bool,
    pub marketing: Marketing,
}
crate::discreet! { ContactSaved }

/// The times at which a contact's values were set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContactTimes {
    /// When the application saved the whole record. `None`: it has not saved one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<FactTime>,
    /// When the API set the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_set_at: Option<Timestamp>,
    /// When the API set the e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email_set_at: Option<Timestamp>,
    /// When the API set the suppression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub do_not_contact_set_at: Option<Timestamp>,
}

/// A contact, and the times at which its values were set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownContact {
    #[serde(flatten)]
    pub contact: Contact,
    #[serde(flatten)]
    pub times: ContactTimes,
}

impl KnownContact {
    /// Creates a contact through the API, without consent and without suppression.
    pub fn create(id: ContactId, draft: &ContactDraft, now: Timestamp) -> Self {
        let contact = Contact {
            id,
            name: draft.name.clone(),
            email: Some(draft.email.clone()),
            phone: None,
            do_not_contact: false,
            marketing: Marketing::default(),
            client_id: None,
            created_at: now,
            updated_at: now,
        };
        Self {
            contact,
            times: ContactTimes { name_set_at: Some(now), email_set_at: Some(now), ..ContactTimes::default() },
        }
    }

    /// Returns the contact after the application's whole record, a fact of the time `at`. Values that the API has set
    /// since then stay. `None`: the known contact is newer.
    pub fn apply_fact(known: Option<&Self>, saved: &ContactSaved, at: FactTime, now: Timestamp) -> Option<Self> {
        let times = known.map(|known| known.times).unwrap_or_default();
        if times.saved_at > Some(at) {
            return None;
        }
        let mut contact = Contact {
            id: saved.contact_id,
            name: saved.name.clone(),
            email: saved.email.clone(),
            phone: saved.phone.clone(),
            do_not_contact: saved.do_not_contact,
            marketing: saved.marketing,
            client_id: known.and_then(|known| known.contact.client_id.clone()),
            created_at: known.map_or(now, |known| known.contact.created_at),
            updated_at: known.map_or(now, |known| known.contact.updated_at),
        };
        if let Some(known) = known {
            let stays = |set_at: Option<Timestamp>| set_at.map(FactTime::from) > Some(at);
            if stays(times.name_set_at) {
                contact.name.clone_from(&known.contact.name);
            }
            if stays(times.email_set_at) {
                contact.email.clone_from(&known.contact.email);
            }
            if stays(times.do_not_contact_set_at) {
                contact.do_not_contact = known.contact.do_not_contact;
            }
            if contact != known.contact {
                contact.updated_at = known.later(now);
            }
        }
        Some(Self { contact, times: ContactTimes { saved_at: Some(at), ..times } })
    }

    /// Returns the contact after a change through the API. A set value counts from now on, even if it is the same.
    /// Confirming a value that the application set last is an update.
    pub fn change(&self, patch: &ContactPatch, now: Timestamp) -> Self {
        let mut changed = self.clone();
        let times = &self.times;
        let at = now.after(self.last_written_at());
        let is_theirs =
            |set_at: Option<Timestamp>| times.saved_at.is_some() && set_at.map(FactTime::from) <= times.saved_at;
        let mut confirms = false;
        if let Some(name) = &patch.name {
            changed.contact.name.clone_from(name);
            changed.times.name_set_at = Some(at);
            confirms |= is_theirs(times.name_set_at);
        }
        if patch.do_not_contact {
            changed.contact.do_not_contact = true;
            changed.times.do_not_contact_set_at = Some(at);
            confirms |= is_theirs(times.do_not_contact_set_at);
        }
        if confirms || changed.contact != self.contact {
            changed.contact.updated_at = at;
        }
        changed
    }

    /// Returns the time of a change, after the previous change.
    pub fn later(&self, now: Timestamp) -> Timestamp {
        now.after(self.contact.updated_at)
    }

    /// Returns the time of the last write, of the application or the API. A write of the API counts after it, even if
    /// the application's clock is ahead or a later request committed first: no older fact undoes it.
    fn last_written_at(&self) -> Timestamp {
        let ContactTimes { saved_at, name_set_at, email_set_at, do_not_contact_set_at } = self.times;
        let times = [saved_at.map(FactTime::timestamp), name_set_at, email_set_at, do_not_contact_set_at];
        times.into_iter().flatten().fold(self.contact.updated_at, Ord::max)
    }
}

#[cfg(test)]
mod tests;
