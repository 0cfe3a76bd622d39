//! Facts about contacts: the application's whole record, and merges.

use super::values::{MAX_NAME_CHARS, email, name, nullable};
use crate::contact::{ContactSaved, Marketing};
use crate::fields::{Fields, Invalid};
use crate::id::{CoachId, ContactId, MAX_ID_CHARS};
use crate::phone::Phone;

/// The merge of a contact into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    /// The contact that no longer exists.
    pub contact_id: ContactId,
    /// The contact that stays.
    pub merged_into: ContactId,
}

pub(super) fn contact(fields: Fields<'_>) -> Result<ContactSaved, Invalid> {
    let marketing = fields.required_object("marketing", "marketing.")?;
    Ok(ContactSaved {
        contact_id: fields.required("contact_id", usize::MAX, ContactId::parse)?,
        coach_id: fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?,
        name: name(fields, "name")?,
        email: email(fields)?,
        phone: nullable(fields, "phone", MAX_NAME_CHARS)?.map(Phone::as_given),
        do_not_contact: fields.required_boolean("do_not_contact")?,
        marketing: Marketing { email: marketing.required_boolean("email")?, sms: marketing.required_boolean("sms")? },
    })
}

pub(super) fn merge(fields: Fields<'_>) -> Result<(CoachId, Merge), Invalid> {
    let coach = fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?;
    let contact_id = fields.required("contact_id", usize::MAX, ContactId::parse)?;
    Ok((coach, Merge { contact_id, merged_into: fields.required("merged_into", usize::MAX, ContactId::parse)? }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::fact::{Fact, FactBody, cleaned};
    use crate::id::ContactId;

    #[test]
    fn a_merge_names_both_contacts_and_their_coach() {
        let [one, other] = ["0197a6a0-5c3b-7000-8000-2f1d3c4b5a69", "0197A6A0-5C3B-7000-8000-2F1D3C4B5A70"];
        let whole = json!({
            "id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "coach_id": "ada", "contact_id": one, "merged_into": other,
        });
        assert_eq!(cleaned("contact.merged", &whole), whole);
        let FactBody::ContactMerged(coach, merge) = Fact::parse("contact.merged", &whole).unwrap().body else {
            panic!("a merge")
        };
        assert_eq!(coach.as_str(), "ada");
        assert_eq!([merge.contact_id, merge.merged_into], [one, other].map(|id| ContactId::parse(id).unwrap()));
        for name in ["coach_id", "contact_id", "merged_into"] {
            for bad in [json!(null), json!("not one/"), json!(7), json!([one])] {
                let mut fact = whole.clone();
                fact[name] = bad;
                assert_eq!(Fact::parse("contact.merged", &fact).unwrap_err().field.as_deref(), Some(name));
            }
        }
    }
}
