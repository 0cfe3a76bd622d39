//! Pages of contacts: live ones by UUID, live and merged ones by their last update, those of either with a part of a
//! name, or those with an e-mail address.

use std::collections::HashMap;

use domain::contact::{ListedContact, MAX_NAMESAKES_FOUND, MergedContact};
use domain::crm_list::{PageRequest, Update, Walk};
use domain::email::EmailKey;
use domain::id::{CoachId, ContactId};
use domain::name_filter::NameFilter;
use futures::future::try_join_all;

use super::Contacts;
use super::item::{ContactItem, PREFIX, contact_of, contact_sk};
use super::state::{Chain, ContactState, MAX_FOLLOWED, end_of};
use crate::db::{Item, StoreError, query_up_to, s, sk_of, text};
use crate::page::{Listing, Page, Placed};
use crate::workspace::partition;

impl Contacts {
    /// Reads a page of a coach's contacts, or of those with the name. In the order of updates it has merged contacts,
    /// too, unless there is a name: they have none.
    pub async fn page(
        &self,
        coach: &CoachId,
        request: &PageRequest<Walk>,
        name: Option<&NameFilter>,
    ) -> Result<Page<ListedContact>, StoreError> {
        let listing = Listing { table: &self.table, index: Some("listed"), prefix: PREFIX };
        let listed = match name {
            Some(name) => listing.page_by_name(coach, request, |item| name.matches(text(item, "name"))).await?,
            None => listing.page(coach, request).await?,
        };
        let listed = listed.try_map(|item| read(item).map(Some))?;
        let mut known: HashMap<ContactId, ContactItem> =
            listed.records.iter().map(|placed| placed.record.clone()).collect();
        self.follow_merges(coach, &mut known).await?;
        listed.try_map(|(id, item)| {
            let ContactItem::Former(former) = &item else {
                return Ok(item.live().map(|live| ListedContact::Live(live.contact().clone())));
            };
            let end = match end_of(&chain_in(&known, id)) {
                (_, ContactState::Erased) => None,
                (end, _) => Some(end),
            };
            let merged = former.updated.as_ref().zip(end).map(|(updated, merged_into_id)| {
                ListedContact::Merged(MergedContact { id, merged_into_id, updated_at: updated.update().at })
            });
            Ok(merged)
        })
    }

    /// Reads a page of the live contacts with one of these addresses. At most [`MAX_NAMESAKES_FOUND`] contacts of an
    /// address are read, since the index has them in no order.
    pub async fn page_with_email(
        &self,
        coach: &CoachId,
        emails: &[EmailKey],
        request: &PageRequest<Walk>,
    ) -> Result<Page<ListedContact>, StoreError> {
        let found = try_join_all(emails.iter().map(|email| self.live_with_email(coach, email))).await?;
        let rest = request.walk.rest(found.into_iter().flatten()).into_iter();
        let placed = rest.map(|(position, record)| Placed { position, record });
        Ok(Page::first_of(placed.collect(), request.limit))
    }

    async fn live_with_email(
        &self,
        coach: &CoachId,
        email: &EmailKey,
    ) -> Result<Vec<(Update, ListedContact)>, StoreError> {
        let values = [(":pk", s(partition(coach))), (":email", s(email.as_str()))];
        let query = self.table.query("pk = :pk AND email_key = :email", values);
        let query = query.index_name("by_email").consistent_read(true);
        let mut live = Vec::new();
        for item in query_up_to(query, MAX_NAMESAKES_FOUND).await? {
            // The text of a request may be the key of a merged contact.
            let item = ContactItem::from_item(item)?;
            let found = item.live().map(|found| (found.updated.update(), ListedContact::Live(found.contact().clone())));
            live.extend(found);
        }
        Ok(live)
    }

    /// Reads the contacts to which the merges of known contacts lead.
    async fn follow_merges(
        &self,
        coach: &CoachId,
        known: &mut HashMap<ContactId, ContactItem>,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_FOLLOWED {
            let next = known.values().filter_map(ContactItem::merged_into);
            let mut unread: Vec<ContactId> = next.filter(|next| !known.contains_key(next)).collect();
            unread.sort_unstable();
            unread.dedup();
            if unread.is_empty() {
                break;
            }
            let items = self.read(coach, unread.iter().map(|id| contact_sk(*id)).collect()).await?;
            known.extend(unread.into_iter().map(|id| (id, ContactItem::Unseen)));
            for item in items {
                let (id, item) = read(item)?;
                known.insert(id, item);
            }
        }
        Ok(())
    }
}

/// The known contacts to which the merges of a contact lead, in order.
fn chain_in(known: &HashMap<ContactId, ContactItem>, first: ContactId) -> Chain {
    let mut chain = Chain::new();
    let mut next = known.get_key_value(&first);
    while let Some((id, item)) = next.filter(|(next, _)| chain.iter().all(|(id, _)| id != *next)) {
        chain.push((*id, item.clone()));
        next = item.merged_into().and_then(|into| known.get_key_value(&into));
    }
    chain
}

fn read(item: Item) -> Result<(ContactId, ContactItem), StoreError> {
    let id = contact_of(sk_of(&item)).ok_or_else(|| StoreError::corrupt("contact", "its key"))?;
    Ok((id, ContactItem::from_item(item)?))
}
