//! Merges of contacts. A merge leaves an alias. The order of merges, erasures and clients' links is settled by reading
//! along the aliases.

use domain::event::Event;
use domain::fact::Merge;
use domain::fact_time::FactTime;
use domain::id::ClientId;
use store::StoreError;
use store::contact::{
    AddressHolders, Chain, ContactItem, ContactState, ErasedContacts, FormerContact, MAX_FOLLOWED, Merged,
    StoredContact, end_of,
};
use store::contact_ref::ContactRef;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};
use crate::erase;
use crate::outcome::Outcome;

/// Writes and checks per transaction, besides the outbox entry of the merge's event and the fact's mark.
const MAX_WRITES: usize = 98;

/// Stores that a contact was merged into another, as an alias. The surviving contact shows the contact's client, unless
/// it is a client itself. A merge with another contact than before is an event.
///
/// A contact that is merged into an erased one is erased too. So is the contact that an erased client's contact had
/// been merged into, unless that is another client. Both wait until the merge is applied again (`is_settled`): merges
/// that are still on their way may lead elsewhere.
pub(crate) struct Store<'a> {
    pub(crate) merge: &'a Merge,
    pub(crate) is_settled: bool,
    /// The progress of the erasure.
    pub(crate) after: Option<&'a str>,
}

pub(crate) enum Snapshot {
    /// The contact is erased.
    Erased(FactTime),
    Present(Box<Present>),
}

pub(crate) struct Present {
    found: ContactItem,
    /// The contact that it is merged into, and those which that was merged into.
    chain: Chain,
    client: Option<ClientId>,
    former_end: Option<StoredContact>,
    holders: AddressHolders,
}

/// The work that is left once a merge is stored.
pub(crate) enum Rest {
    Nothing,
    /// The merge is applied again later.
    Repeats,
    /// The contact was merged into an erased one, and is erased too.
    ErasesAlias,
    /// The contact that the erased contact was merged into is erased too.
    ErasesTarget(FactTime),
}

impl Store<'_> {
    fn own(&self) -> ContactRef {
        ContactRef::new(&self.merge.coach_id, self.merge.contact_id)
    }
}

impl FactCommand for Store<'_> {
    type Snapshot = Snapshot;
    type Rest = Rest;

    async fn read(&self, app: &FactStore, fact: Context<'_>) -> Result<Snapshot, Stop> {
        let (coach, id) = (&self.merge.coach_id, self.merge.contact_id);
        let found = app.contacts.find(coach, id).await?;
        let is_after = |at: Option<FactTime>| at.is_some_and(|at| at < fact.occurred_at);
        if found.merged_at() > Some(fact.occurred_at) || is_after(found.erased_at()) {
            return Err(Stop::Nothing);
        }
        if let Some(erased_at) = found.erased_at() {
            return Ok(Snapshot::Erased(erased_at));
        }
        let chain = app.contacts.chain(coach, self.merge.merged_into, MAX_FOLLOWED).await?;
        let client = app.contacts.client_of(coach, id, &found).await?;
        let holders = app.contacts.holders(coach, &found.addresses(), &[None, None]).await?;
        let former_end = match &client {
            Some(client) => app.contacts.former_end(coach, &found, &chain, client).await?,
            None => None,
        };
        Ok(Snapshot::Present(Box::new(Present { found, chain, client, former_end, holders })))
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, snapshot: Snapshot) -> Decision<Rest> {
        let (merge, coach, now) = (self.merge, &self.merge.coach_id, fact.now);
        if merge.merged_into == merge.contact_id {
            return Decision::Refused("merged_into must be another contact than contact_id");
        }
        let merged = Merged::new(coach, merge.merged_into, fact.occurred_at);
        let Present { found, chain, client, former_end, holders } = match snapshot {
            Snapshot::Present(present) => *present,
            Snapshot::Erased(erased_at) => {
                let rest = if self.is_settled { Rest::ErasesTarget(erased_at) } else { Rest::Repeats };
                return Decision::Commit(Unit::new().write([app.contacts.keep_merge(&self.own(), &merged)]), rest);
            }
        };
        if chain.iter().any(|(id, _)| *id == merge.contact_id) {
            // The merge that moves the target on may still arrive.
            return Decision::Waits("the contact that merged_into names was merged into this one");
        }
        let alias = FormerContact::alias(&self.own(), &found, merged, now);
        let mut writes = app.contacts.move_addresses(&self.own(), &found.addresses(), &[None, None], &holders);
        writes.push(app.contacts.put_alias(&alias, &found));
        writes.extend(app.contacts.extend_chain(coach, &chain, client.as_ref(), now));
        writes.extend(former_end.map(|end| app.contacts.link_merged(&end, None, now)));
        if writes.len() > MAX_WRITES {
            return Decision::Refused(
                "merged_into was itself merged through some hundred contacts: name the last of them",
            );
        }
        let (end, state) = end_of(&chain);
        let is_new = found.merged_into() != Some(merge.merged_into);
        let event = fact.crm_event(|| {
            let stays = state.person(end).filter(|_| is_new)?;
            Some(Event::contact_merged(coach, stays, merge.contact_id, alias.merge_stored_at()?))
        });
        let rest = match state {
            ContactState::Erased if self.is_settled => Rest::ErasesAlias,
            ContactState::Erased => Rest::Repeats,
            ContactState::Unknown if client.is_some() => Rest::Repeats,
            ContactState::Unknown | ContactState::Live(_) | ContactState::Merged { .. } => Rest::Nothing,
        };
        Decision::Commit(Unit::new().write(writes).events(event), rest)
    }

    async fn after(&self, app: &FactStore, fact: Context<'_>, rest: Rest) -> Result<Outcome, StoreError> {
        let (coach, id, now) = (&self.merge.coach_id, self.merge.contact_id, fact.now);
        let erased = match rest {
            Rest::Nothing => return Ok(Outcome::Stored),
            Rest::Repeats => ErasedContacts::default(),
            Rest::ErasesAlias => app.contacts.erase_all(coach, vec![id], fact.occurred_at, now).await?,
            Rest::ErasesTarget(erased_at) => app.contacts.erase(&self.own(), erased_at, now).await?,
        };
        erase::merged_contacts(app, &erased, now, self.after).await
    }
}
