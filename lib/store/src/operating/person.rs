//! A client with all that leads to items about the client: the coaches, present and former, and the contacts that the
//! client is or was.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::client::Client;
use domain::id::{ClientId, CoachId, ContactId};

use crate::client::StoredClient;
use crate::contact::Contacts;
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, Table, text};
use crate::event_feed::{MAX_ERASED_CONTACTS, query_naming};

pub(super) struct Person {
    pub(super) client: ClientId,
    pub(super) coaches: BTreeSet<CoachId>,
    pub(super) contacts: Vec<ContactRef>,
    /// The contacts as items refer to them.
    refs: BTreeSet<String>,
}

impl Person {
    /// Finds the coaches and contacts of a client.
    pub(super) async fn of(client: &StoredClient, contacts: &Contacts) -> Result<Self, StoreError> {
        let (Client { id, .. }, refs) = (&client.client, client.erasure_refs());
        let contacts = contacts.of_client(id, refs.creation_refs.lead.as_ref(), &refs.coaches).await?;
        Ok(Self::new(id.clone(), refs.coaches, contacts))
    }

    fn new(client: ClientId, coaches: BTreeSet<CoachId>, contacts: Vec<ContactRef>) -> Self {
        let refs = contacts.iter().map(ContactRef::to_string).collect();
        Self { client, coaches, contacts, refs }
    }

    /// The contacts of a coach.
    pub(super) fn contacts_of(&self, coach: &CoachId) -> Vec<ContactId> {
        let own = self.contacts.iter().filter(|contact| contact.coach_id == *coach);
        own.map(|contact| contact.contact_id).collect()
    }

    /// The queries of a coach's events that name the client or the contacts.
    pub(super) fn events_of(&self, coach: &CoachId, events: &Table) -> Vec<QueryFluentBuilder> {
        let contacts = self.contacts_of(coach);
        let (first, others) = contacts.split_at(contacts.len().min(MAX_ERASED_CONTACTS));
        let others = others.chunks(MAX_ERASED_CONTACTS).map(|others| query_naming(events, coach, None, others));
        std::iter::once(query_naming(events, coach, Some(&self.client), first)).chain(others).flatten().collect()
    }

    /// Returns true if an item names the client.
    pub(super) fn is_client_of(&self, item: &Item) -> bool {
        text(item, "client_id") == self.client.as_str()
    }

    /// Returns true if an item refers to one of the contacts.
    pub(super) fn is_contact_of(&self, item: &Item) -> bool {
        self.refs.contains(text(item, "contact_ref"))
    }

    /// Returns true if an item with a `coach_id` has the client or one of the contacts as its subject.
    pub(super) fn is_subject_of(&self, item: &Item) -> bool {
        let names = |member: &str| self.refs.contains(&format!("{}#{}", text(item, "coach_id"), text(item, member)));
        self.is_client_of(item) || ["contact_id", "merged_contact_id"].into_iter().any(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::s;

    #[test]
    fn a_contact_of_the_same_id_at_another_coach_is_another_person() {
        let coach = |id: &str| CoachId::parse(id).unwrap();
        let id = ContactId::parse("0197a6a0-5c3b-7000-8000-2f1d3c4b5a69").unwrap();
        let contacts = vec![ContactRef::new(&coach("ada"), id)];
        let person =
            Person::new(ClientId::parse("c1").unwrap(), BTreeSet::from([coach("ada"), coach("eve")]), contacts);
        let item = |members: &[(&str, &str)]| -> Item {
            members.iter().map(|(name, value)| ((*name).to_owned(), s(*value))).collect()
        };
        let contact = id.to_string();
        assert!(person.is_subject_of(&item(&[("coach_id", "eve"), ("client_id", "c1")])));
        for member in ["contact_id", "merged_contact_id"] {
            assert!(person.is_subject_of(&item(&[("coach_id", "ada"), (member, &contact)])));
            assert!(!person.is_subject_of(&item(&[("coach_id", "eve"), (member, &contact)])));
        }
        assert!(!person.is_subject_of(&item(&[("coach_id", "ada")])));
        assert_eq!((person.contacts_of(&coach("ada")), person.contacts_of(&coach("eve"))), (vec![id], Vec::new()));
    }
}
