//! Whole records of contacts.

use domain::contact::{ContactSaved, KnownContact};
use domain::event::{ContactSource, Event};
use domain::id::ClientId;
use domain::phone::Phone;
use store::contact::{AddressHolders, ContactItem, StoredContact};
use store::contact_ref::ContactRef;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};

/// Stores a contact, unless the stored state is newer or the contact is erased. A merged contact takes only the address
/// that it had when it was merged.
pub(crate) struct Save<'a>(pub(crate) &'a ContactSaved);

pub(crate) struct Snapshot {
    found: ContactItem,
    /// The client that a contact gets which is not stored yet, from a contact that was merged into it.
    client: Option<ClientId>,
    holders: AddressHolders,
}

impl Save<'_> {
    /// The key of the phone's ending.
    fn phone_key(&self) -> Option<String> {
        self.0.phone.as_ref().and_then(Phone::ending).map(|ending| ending.as_str().to_owned())
    }
}

impl FactCommand for Save<'_> {
    type Snapshot = Snapshot;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<Snapshot, Stop> {
        let (coach, id) = (&self.0.coach_id, self.0.contact_id);
        let found = app.contacts.find(coach, id).await?;
        let client = match &found {
            ContactItem::Unseen => app.contacts.client_of(coach, id, &found).await?,
            ContactItem::Live(_) | ContactItem::Former(_) => None,
        };
        let holders = match &found {
            ContactItem::Former(_) => AddressHolders::default(),
            _ => {
                let new = StoredContact::addresses_of(self.0.email.as_ref(), self.phone_key().as_deref());
                app.contacts.holders(coach, &found.addresses(), &new).await?
            }
        };
        Ok(Snapshot { found, client, holders })
    }

    fn decide(
        &self,
        app: &FactStore,
        fact: Context<'_>,
        Snapshot { found, client, holders }: Snapshot,
    ) -> Decision<()> {
        let (coach, saved, at) = (&self.0.coach_id, self.0, fact.occurred_at);
        if let ContactItem::Former(former) = &found {
            return match former.with_late_email(saved.email.as_ref(), at) {
                Some(alias) => Decision::Commit(Unit::new().write([app.contacts.put_alias(&alias, &found)]), ()),
                None => Decision::Nothing,
            };
        }
        let known = found.live().map(|live| &live.known);
        let Some(mut next) = KnownContact::apply_fact(known, saved, at, fact.now) else { return Decision::Nothing };
        let record = match found.live() {
            None => {
                next.contact.client_id = client;
                StoredContact::first(coach, next, self.phone_key())
            }
            Some(live) => live.next(next, self.phone_key(), fact.now),
        };
        let event = fact.crm_event(|| match found.live() {
            None => Some(Event::contact_created(coach, record.contact(), ContactSource::Application)),
            Some(live) => Event::contact_updated(coach, live.contact(), record.contact()),
        });
        let own = ContactRef::new(coach, saved.contact_id);
        let moves = app.contacts.move_addresses(&own, &found.addresses(), &record.addresses(), &holders);
        let unit = Unit::new().write([app.contacts.put_live(&record, &found)]).write(moves).events(event);
        Decision::Commit(unit, ())
    }
}
