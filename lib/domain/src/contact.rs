//! A CRM contact: a person in a workspace's address book, who may be or become a client.
//!
//! Both the application and the API write a contact. The application writes the whole record; the API sets a name, an
//! e-mail address or the suppression. The latest write wins per field ([`register`](crate::register)).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::email::{Email, EmailKey, MAX_EMAIL_CHARS};
use crate::fact_time::FactTime;
use crate::fact_values::{email, name, object, phone};
use crate::fields::{Fields, Invalid};
use crate::id::{ClientId, CoachId, ContactId};
use crate::openapi::{Body, Field};
use crate::phone::Phone;
use crate::register::registers;
use crate::time::Timestamp;

/// Most characters of a contact's name.
pub const MAX_CONTACT_NAME_CHARS: usize = 200;

/// Most contacts of one e-mail address that a list finds.
pub const MAX_NAMESAKES_FOUND: usize = 1_000;

/// Marketing consent, by channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Marketing {
    /// True if the contact has consented to marketing by e-mail.
    pub email: bool,
    /// True if the contact has consented to marketing by text message.
    pub sms: bool,
}

/// A contact as the API shows it.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    /// Names the contact in every other request, as `contactId` or `leadId` in bodies. Store it.
    pub id: ContactId,
    /// The contact's name.
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
    /// When the contact was created, or when the service received it from the application.
    pub created_at: Timestamp,
    /// When the contact last changed, or when the service received the change from the application.
    pub updated_at: Timestamp,
}
crate::discreet! { Contact }

/// A contact that was merged into another, as the list of updates shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergedContact {
    /// The contact that was merged away. Replace it by `mergedIntoId`.
    pub id: ContactId,
    /// The contact that remains.
    pub merged_into_id: ContactId,
    /// The time at which the service stored the merge.
    pub updated_at: Timestamp,
}

/// A contact as a list shows it. The list of updates has merged contacts, too.
#[derive(Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ListedContact {
    Live(Contact),
    Merged(MergedContact),
}
crate::discreet! { ListedContact }

/// Parses the filter `email` of the list of contacts. Returns the addresses that it may mean: also addresses that only
/// the application accepts. A `+` that was not encoded arrives as a blank.
pub fn parse_email_filter(text: &str) -> Result<Vec<EmailKey>, String> {
    if text.chars().count() > MAX_EMAIL_CHARS {
        return Err(format!("must be at most {MAX_EMAIL_CHARS} characters"));
    }
    let with_plus = text.contains(' ').then(|| text.replace(' ', "+"));
    let meant = [Some(text), with_plus.as_deref()].into_iter().flatten();
    Ok(meant.map(|text| Email::unchecked(text).key()).collect())
}

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
            (
                "name",
                Field::text(MAX_CONTACT_NAME_CHARS)
                    .required()
                    .about("The contact's name. A contact that has the address already keeps its own."),
            ),
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
            ("name", Field::text(MAX_CONTACT_NAME_CHARS).about("The contact's new name.")),
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
#[derive(Clone, PartialEq, Deserialize)]
pub struct ContactSaved {
    pub contact_id: ContactId,
    pub coach_id: CoachId,
    #[serde(deserialize_with = "name")]
    pub name: String,
    #[serde(deserialize_with = "email")]
    pub email: Option<Email>,
    #[serde(deserialize_with = "phone")]
    pub phone: Option<Phone>,
    pub do_not_contact: bool,
    #[serde(deserialize_with = "object")]
    pub marketing: Marketing,
}
crate::discreet! { ContactSaved }

/// A contact with the registers of its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownContact {
    #[serde(flatten)]
    pub contact: Contact,
    pub registers: ContactRegisters,
}

registers! {
    /// The last write of each value. The API never sets the phone and the consent.
    pub ContactRegisters { name, email, phone, do_not_contact, marketing }
}

impl KnownContact {
    /// A contact of which nothing is set.
    fn new(id: ContactId, now: Timestamp) -> Self {
        let contact = Contact {
            id,
            name: String::new(),
            email: None,
            phone: None,
            do_not_contact: false,
            marketing: Marketing::default(),
            client_id: None,
            created_at: now,
            updated_at: now,
        };
        Self { contact, registers: ContactRegisters::default() }
    }

    /// Creates a contact through the API, without consent and without suppression.
    pub fn create(id: ContactId, draft: &ContactDraft, now: Timestamp) -> Self {
        let mut created = Self::new(id, now);
        let Self { contact, registers } = &mut created;
        registers.name.set(&mut contact.name, draft.name.clone(), now);
        registers.email.set(&mut contact.email, Some(draft.email.clone()), now);
        created
    }

    /// Returns the contact after the application's whole record, a fact of the time `at`. Values that the API has set
    /// since then stay. `None`: the fact changes nothing.
    pub fn apply_fact(known: Option<&Self>, saved: &ContactSaved, at: FactTime, now: Timestamp) -> Option<Self> {
        let mut applied = known.cloned().unwrap_or_else(|| Self::new(saved.contact_id, now));
        let Self { contact, registers } = &mut applied;
        registers.name.offer(&mut contact.name, saved.name.clone(), at);
        registers.email.offer(&mut contact.email, saved.email.clone(), at);
        registers.phone.offer(&mut contact.phone, saved.phone.clone(), at);
        registers.do_not_contact.offer(&mut contact.do_not_contact, saved.do_not_contact, at);
        registers.marketing.offer(&mut contact.marketing, saved.marketing, at);
        if let Some(known) = known.filter(|known| known.contact != *contact) {
            contact.updated_at = known.later(now);
        }
        (known != Some(&applied)).then_some(applied)
    }

    /// Returns the contact after a change through the API. A set value counts from now on, even if it is the same.
    /// Confirming a value that the application set last is an update.
    pub fn change(&self, patch: &ContactPatch, now: Timestamp) -> Self {
        let mut changed = self.clone();
        let Self { contact, registers } = &mut changed;
        let at = self.write_time(now);
        let mut confirms = false;
        if let Some(name) = &patch.name {
            confirms |= registers.name.set(&mut contact.name, name.clone(), at);
        }
        if patch.do_not_contact {
            confirms |= registers.do_not_contact.set(&mut contact.do_not_contact, true, at);
        }
        if confirms || *contact != self.contact {
            contact.updated_at = self.later(now);
        }
        changed
    }

    /// Returns the time of the last write, of the application or the API. The application's clock may be ahead.
    pub fn last_written_at(&self) -> Timestamp {
        self.registers.last_write().max(self.contact.updated_at)
    }

    /// Returns the time of a write through the API in the order of writes: after every known write.
    pub fn write_time(&self, now: Timestamp) -> Timestamp {
        now.after(self.last_written_at())
    }

    /// Returns the time of a change that is shown, after the previous change.
    pub fn later(&self, now: Timestamp) -> Timestamp {
        now.after(self.contact.updated_at)
    }
}

#[cfg(test)]
mod tests;
