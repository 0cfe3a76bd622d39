//! Locks of external ids: one item for each external id of a coach. Attribute beside the key: `holder`, the client.
//!
//! A lock is taken, moved and released in the transaction that changes the client. So no two clients of a coach share
//! an external id.

use domain::client::Client;
use domain::external_id::ExternalId;
use domain::id::{ClientId, CoachId};

use super::Clients;
use crate::db::{self, Item, Part, StoreError, Write, s, text};

impl Clients {
    /// Reads the coach's client with that external id: the lock, then its holder.
    pub async fn with_external_id(&self, coach: &CoachId, id: &ExternalId) -> Result<Option<Client>, StoreError> {
        let lock = self.table.item(db::pk(lock_pk(coach, id))).await?;
        let Some(holder) = lock.and_then(|lock| ClientId::parse(text(&lock, "holder")).ok()) else { return Ok(None) };
        let client = self.get(&holder).await?.map(|found| found.client);
        // The holder may have changed between the two reads.
        Ok(client.filter(|client| client.coach_id == *coach && client.profile.external_id.as_ref() == Some(id)))
    }

    /// Parts of a transaction: move the lock with a client's external id and coach. `None`: the client does not exist.
    /// [`Part::ExternalId`] is refused if another client has the id.
    pub(super) fn move_external_id(&self, before: Option<&Client>, after: Option<&Client>) -> Vec<Write> {
        let key = |client: &Client| Some(lock_pk(&client.coach_id, client.profile.external_id.as_ref()?));
        let (old, new) = (before.and_then(key), after.and_then(key));
        if old == new {
            return Vec::new();
        }
        // A client that holds the lock already, or whose lock is lost, is not held up.
        let lock = |client: &Client, lock: Item| {
            let holder = [(":holder", s(client.id.as_str()))];
            self.table.write(lock).when("attribute_not_exists(pk) OR holder = :holder", holder)
        };
        let release = before.zip(old).map(|(client, old)| lock(client, db::pk(old)).delete(Part::FormerExternalId));
        let take = after.zip(new).map(|(client, new)| {
            let mut item = db::pk(new);
            item.insert("holder".to_owned(), s(client.id.as_str()));
            lock(client, item).put(Part::ExternalId)
        });
        release.into_iter().chain(take).collect()
    }
}

/// The key of a lock. A coach's id has no `#`, so no other coach and id have the same key.
pub(super) fn lock_pk(coach: &CoachId, id: &ExternalId) -> String {
    format!("EXTERNAL_ID#{coach}#{}", id.as_str())
}
