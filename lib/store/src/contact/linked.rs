//! The contacts that a client is or was, with the items about them: what an erasure reaches, for operators who read it.

use domain::id::{ClientId, CoachId};

use super::Contacts;
use super::erase::is_another_client;
use super::item::{PREFIX, contact_of};
use super::state::MAX_FOLLOWED;
use crate::about_contact::{EVENT_PREFIX, OPPORTUNITY_PREFIX};
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, query_all, s, sk_of};
use crate::workspace::{key_of, partition};

/// Keys of the items about a contact.
pub(crate) struct ContactKeys {
    /// The contact itself and its addresses.
    pub(crate) own: Vec<Item>,
    /// The opportunities and events of the contact. The index may lag.
    pub(crate) about: Vec<Item>,
}

impl Contacts {
    /// Finds the contacts of a client: the contact that became the client, the coaches' contacts that name the client,
    /// the contacts that these were merged into, and the contacts that were merged into any of them. A contact that is
    /// another client is left out, with what it was merged into. Reads all contacts of the coaches.
    pub(crate) async fn of_client<'c>(
        &self,
        client: &ClientId,
        lead: Option<&ContactRef>,
        coaches: impl IntoIterator<Item = &'c CoachId>,
    ) -> Result<Vec<ContactRef>, StoreError> {
        let mut named: Vec<ContactRef> = lead.cloned().into_iter().collect();
        for coach in coaches {
            named.extend(self.naming(coach, client).await?);
        }
        let mut found: Vec<ContactRef> = Vec::new();
        let add = |found: &mut Vec<ContactRef>, contact: ContactRef| {
            if !found.contains(&contact) {
                found.push(contact);
            }
        };
        for ContactRef { coach_id, contact_id } in named {
            let mut chain = self.chain(&coach_id, contact_id, MAX_FOLLOWED).await?;
            if chain.last().is_some_and(|(_, end)| is_another_client(end, Some(client))) {
                chain.truncate(1);
            }
            chain.iter().for_each(|(id, _)| add(&mut found, ContactRef::new(&coach_id, *id)));
        }
        let mut next = 0;
        while let Some(contact) = found.get(next).cloned() {
            next += 1;
            let aliases = self.about(&contact).await?.aliases.into_iter();
            let own = aliases.filter(|(_, alias)| !is_another_client(alias, Some(client)));
            own.for_each(|(id, _)| add(&mut found, ContactRef::new(&contact.coach_id, id)));
        }
        Ok(found)
    }

    /// Finds a coach's contacts whose record names the client.
    async fn naming(&self, coach: &CoachId, client: &ClientId) -> Result<Vec<ContactRef>, StoreError> {
        let values = [(":pk", s(partition(coach))), (":prefix", s(PREFIX)), (":client", s(client.as_str()))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :prefix)", values).consistent_read(true);
        // A live contact names its client as the API shows it, a former contact by an attribute of the store.
        let query = query.filter_expression("clientId = :client OR client_id = :client").projection_expression("sk");
        let contacts = query_all(query).await?.into_iter().filter_map(|item| contact_of(sk_of(&item)));
        Ok(contacts.map(|id| ContactRef::new(coach, id)).collect())
    }

    /// Finds the keys of the items about a contact.
    pub(crate) async fn keys_of(&self, contact: &ContactRef) -> Result<ContactKeys, StoreError> {
        let ContactRef { coach_id: coach, contact_id } = contact;
        let addresses = self.find(coach, *contact_id).await?.addresses();
        let own = addresses.into_iter().flatten().map(|sk| key_of(coach, &sk));
        let others = self.about(contact).await?.others.into_iter();
        let about = others.filter(|sk| sk.starts_with(OPPORTUNITY_PREFIX) || sk.starts_with(EVENT_PREFIX));
        Ok(ContactKeys {
            own: own.chain([super::contact_key(coach, *contact_id)]).collect(),
            about: about.map(|sk| key_of(coach, &sk)).collect(),
        })
    }
}
