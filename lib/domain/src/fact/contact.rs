//! The application's whole record of a contact.

use super::{MAX_NAME_CHARS, email, nullable};
use crate::contact::Marketing;
use crate::email::Email;
use crate::fields::{Fields, Invalid};
use crate::id::{CoachId, ContactId, MAX_ID_CHARS};
use crate::phone::Phone;

/// The whole record of a contact, as the application has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ContactSaved {
    pub contact_id: ContactId,
    pub coach_id: CoachId,
    pub name: String,
    pub email: Option<Email>,
    pub phone: Option<Phone>,
    pub do_not_contact: bool,
    pub marketing: Marketing,
}

pub(super) fn contact(fields: Fields<'_>) -> Result<ContactSaved, Invalid> {
    let marketing = fields.required_object("marketing", "marketing.")?;
    Ok(ContactSaved {
        contact_id: fields
            .required("contact_id", MAX_ID_CHARS, |text| text.parse().map(ContactId).map_err(|_| "must be a UUID"))?,
        coach_id: fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?,
        name: fields.required_text("name", MAX_NAME_CHARS)?.to_owned(),
        email: email(fields)?,
        phone: nullable(fields, "phone", MAX_NAME_CHARS)?.map(Phone::as_given),
        do_not_contact: fields.required_boolean("do_not_contact")?,
        marketing: Marketing { email: marketing.required_boolean("email")?, sms: marketing.required_boolean("sms")? },
    })
}
