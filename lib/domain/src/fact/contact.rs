//! The fact that the application merged two contacts.

use serde::Deserialize;

use crate::id::{CoachId, ContactId};

/// The merge of a contact into another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Merge {
    pub coach_id: CoachId,
    /// The contact that no longer exists.
    pub contact_id: ContactId,
    /// The contact that stays.
    pub merged_into: ContactId,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::fact::tests::assert_every_field_counts;
    use crate::fact::{Fact, FactBody};
    use crate::id::ContactId;

    #[test]
    fn a_merge_names_both_contacts_and_their_coach() {
        let [one, other] = ["0197a6a0-5c3b-7000-8000-2f1d3c4b5a69", "0197A6A0-5C3B-7000-8000-2F1D3C4B5A70"];
        let whole = json!({
            "id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "coach_id": "ada", "contact_id": one, "merged_into": other,
        });
        assert_every_field_counts("contact.merged", &whole, &[json!(null), json!("not one/"), json!(7), json!([one])]);
        let FactBody::ContactMerged(merge) = Fact::parse("contact.merged", &whole).unwrap().body else {
            panic!("a merge")
        };
        assert_eq!(merge.coach_id.as_str(), "ada");
        assert_eq!([merge.contact_id, merge.merged_into], [one, other].map(|id| ContactId::parse(id).unwrap()));
    }
}
