//! Table `crm`, contacts. pk `COACH#<coach_id>`, sk `CONTACT#<uuid>`: a live contact, an alias or a tombstone. sk
//! `EMAIL#<compared form>`, `PHONE#<last digits>`: the live contacts with that address (`address`). The index finds a
//! match in one call. The item is the lock that lets one of many parallel creations win.
//! LSI `listed`: live contacts by UUID. LSI `by_update`: live and merged contacts by `updated` (module `updated`).
//! LSI `by_email`: contacts by `email_key`: live ones, then merged ones that had it. GSI
//! `by_contact`: items about a contact, and contacts merged into it.
//! 1. `page` Query of `listed` or `by_update`, consistent; with a name up to four; with an address of `by_email`
//!    (module `list`). Reads along the aliases of a page.
//! 2. `with_email` Query of `by_email`, consistent; without a live contact, reads along the aliases.
//! 3. `state`, `survivor` Reads along the aliases.
//! 4. `create`, `change` Parts of a transaction: record, address.
//! 5. `find`, `holders`, `client_of`, `chain`, `former_end` Reads of a fact, along the aliases.
//! 6. `put_live`, `put_alias`, `keep_merge`, `move_addresses`, `extend_chain`, `link_merged` Parts of its transaction
//!    on the versions read.
//! 7. `find_lead` BatchGetItem of the addresses, then of the contacts. `link` Part of a client's creation.
//! 8. `erase` Reads along the aliases, then a transaction per contact, then writes of the items about it.
//! 9. `of_client`, `keys_of` Query of a coach's contacts, reads along the aliases: for operators (module `linked`).

mod erase;
mod item;
mod linked;
mod list;
mod merge;
mod state;
mod write;

use std::collections::BTreeMap;

use domain::contact::Contact;
use domain::country::Country;
use domain::email::EmailKey;
use domain::id::{ClientId, CoachId, ContactId};
use domain::phone::PhoneKey;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::Serialize;

pub use erase::ErasedContacts;
pub use item::{Addresses, ContactItem, FormerContact, Merged, StoredContact};
pub(crate) use item::{contact_key, contact_sk};
pub use state::{Chain, ContactState, MAX_FOLLOWED, end_of};

use crate::contact_ref::ContactRef;
use crate::db::{Db, Item, Part, StoreError, Table, Write, query_page, s, sk_of, to_attribute, to_item};
use crate::holders::{Address, Holders};
use crate::updated::UPDATED;
use crate::workspace::{key_of, partition};
use item::{PREFIX, email_sk, merged_email_key, phone_sk};

/// Contacts of one address that a request reads.
const MAX_NAMESAKES: usize = 100;

/// Merged contacts of one address whose surviving contacts a request reads.
const MAX_MERGED: usize = 10;

/// The holders of addresses, by sort key.
pub type AddressHolders = BTreeMap<String, Holders>;

/// The contacts in the CRM table.
#[derive(Clone)]
pub struct Contacts {
    table: Table,
}

impl Contacts {
    /// The table that `CRM_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "CRM_TABLE")? })
    }

    /// Finds the live contact with that address. Of several, the contact that was known first counts, and of those the
    /// smallest id. If no live contact has the address, finds the surviving contact of one that had it. At most
    /// `MAX_NAMESAKES` contacts of an address are read.
    pub async fn with_email(&self, coach: &CoachId, email: &EmailKey) -> Result<Option<StoredContact>, StoreError> {
        let merged_key = merged_email_key(email.as_str());
        let values = [(":pk", s(partition(coach))), (":email", s(email.as_str())), (":merged", s(merged_key))];
        let query = self.table.query("pk = :pk AND email_key BETWEEN :email AND :merged", values);
        let query = query.index_name("by_email").consistent_read(true).limit(MAX_NAMESAKES as i32);
        let (mut live, mut merged) = (Vec::new(), Vec::new());
        for item in query_page(query).await?.items {
            match ContactItem::from_item(item)? {
                ContactItem::Live(contact) if contact.has_email(email) => live.push(*contact),
                ContactItem::Former(alias) if alias.had_email(email) => merged.extend(alias.merged_into()),
                // Another key that sorts between the two.
                ContactItem::Unseen | ContactItem::Live(_) | ContactItem::Former(_) => {}
            }
        }
        if live.is_empty() {
            for into in merged.into_iter().take(MAX_MERGED) {
                live.extend(self.live_survivor(coach, into).await?);
            }
        }
        Ok(live.into_iter().min_by_key(known_first))
    }

    /// Finds the contact that becomes a new client, by its e-mail, else by its phone. Of several contacts, the one that
    /// was known first counts. A contact that is a client already does not count. At most `MAX_NAMESAKES` holders of an
    /// address are read.
    ///
    /// Phones are compared as E.164 in `country`, the workspace's present one, because numbers with different prefixes
    /// can share an ending.
    pub async fn find_lead(
        &self,
        coach: &CoachId,
        email: &EmailKey,
        phone: Option<&PhoneKey>,
        country: Country,
    ) -> Result<Option<StoredContact>, StoreError> {
        let email_sk = email_sk(email.as_str());
        let endings = phone.map(PhoneKey::endings).unwrap_or_default();
        let phone_sks = endings.iter().map(|ending| phone_sk(ending.as_str()));
        let wanted = std::iter::once(email_sk.clone()).chain(phone_sks).collect();
        let mut found = self.read(coach, wanted).await?;
        found.sort_by_key(|item| sk_of(item) != email_sk);
        for address in found {
            let by_email = sk_of(&address) == email_sk;
            let free = self.non_client_holders(coach, &Holders::from_item(address)?).await?.into_iter();
            let has_phone =
                |contact: &Contact| contact.phone.as_ref().and_then(|own| own.key(country)).as_ref() == phone;
            let lead = free.filter(|free| by_email || has_phone(free.contact())).min_by_key(known_first);
            if lead.is_some() {
                return Ok(lead);
            }
        }
        Ok(None)
    }

    /// Reads the contacts with this address that are not clients.
    async fn non_client_holders(&self, coach: &CoachId, holders: &Holders) -> Result<Vec<StoredContact>, StoreError> {
        let mut free = Vec::new();
        let some = holders.all().take(MAX_NAMESAKES).map(|id| format!("{PREFIX}{id}")).collect();
        for item in self.read(coach, some).await? {
            let item = ContactItem::from_item(item)?;
            free.extend(item.live().filter(|live| live.contact().client_id.is_none()).cloned());
        }
        Ok(free)
    }

    /// Part of a transaction: the contact becomes the client, if it is as it was read.
    pub(crate) fn link(&self, coach: &CoachId, found: &StoredContact, client: &ClientId, now: Timestamp) -> Write {
        let update = self.table.write(contact_key(coach, found.contact().id)).set("clientId", s(client.as_str()));
        let update = update.set("updatedAt", s(found.known.later(now).to_string())).count("version");
        let update = update.set(UPDATED, to_attribute(&found.updated.next(now)));
        update.when_version(Some(found.version)).update(Part::Contact)
    }

    /// Part of a transaction: stores a contact's item in the place of the item with that version, or for `None` where
    /// there is none.
    fn put<R: Serialize>(&self, record: &R, version: Option<u64>) -> Write {
        self.table.write(to_item(record)).when_version(version).put(Part::Contact)
    }

    /// Part of a transaction: stores a live contact in the place of what was found.
    pub fn put_live(&self, contact: &StoredContact, found: &ContactItem) -> Write {
        self.put(contact, found.version())
    }

    /// Reads the holders of the addresses that a contact leaves or joins.
    pub async fn holders(
        &self,
        coach: &CoachId,
        old: &Addresses,
        new: &Addresses,
    ) -> Result<AddressHolders, StoreError> {
        let sks: Vec<String> = moves(old, new).map(|(sk, _)| sk.clone()).collect();
        let mut holders = AddressHolders::new();
        if !sks.is_empty() {
            for item in self.read(coach, sks).await? {
                holders.insert(sk_of(&item).to_owned(), Holders::from_item(item)?);
            }
        }
        Ok(holders)
    }

    /// Parts of a transaction: move a contact from its old addresses to its new ones, if their holders are as they were
    /// read.
    pub fn move_addresses(
        &self,
        contact: &ContactRef,
        old: &Addresses,
        new: &Addresses,
        holders: &AddressHolders,
    ) -> Vec<Write> {
        let id = contact.contact_id.to_string();
        let writes = moves(old, new).filter_map(|(sk, is_joined)| {
            let (address, found) = (self.address(&contact.coach_id, sk), holders.get(sk));
            if is_joined { address.join(found, &id) } else { address.leave(found, &id) }
        });
        writes.collect()
    }

    fn address(&self, coach: &CoachId, sk: &str) -> Address<'_> {
        Address { table: &self.table, key: key_of(coach, sk) }
    }

    /// Reads items of the coach's partition, in no order.
    async fn read(&self, coach: &CoachId, sks: Vec<String>) -> Result<Vec<Item>, StoreError> {
        self.table.read(sks.iter().map(|sk| key_of(coach, sk)).collect()).await
    }
}

/// The addresses that `new` lacks of `old`, and those (true) that it adds.
fn moves<'a>(old: &'a Addresses, new: &'a Addresses) -> impl Iterator<Item = (&'a String, bool)> {
    let left = old.iter().filter(|sk| !new.contains(sk)).flatten().map(|sk| (sk, false));
    left.chain(new.iter().filter(|sk| !old.contains(sk)).flatten().map(|sk| (sk, true)))
}

/// The order of contacts that share an address: the one that was known first.
fn known_first(stored: &StoredContact) -> (Timestamp, ContactId) {
    (stored.contact().created_at, stored.contact().id)
}
