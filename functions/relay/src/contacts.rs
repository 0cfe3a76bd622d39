//! The contacts that events name. An event whose contact is not stored yet waits for it: the application's facts arrive
//! in any order.
//!
//! The entry of such an event stays in the outbox. A message in the queue where orders wait brings the entry back: the
//! deliverer touches the entry, so the stream carries it again. The id of the event and the time of the entry stay, so
//! a repeated step finds its work done. If the message is lost, the schedule finds the entry.

use std::borrow::Cow;

use domain::event::{Event, Person, next_look_s};
use domain::id::ContactId;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt};
use runtime::BoxError;
use store::outbox::{Content, Entry};

use crate::App;
use crate::publish::Outcomes;

/// Contacts that are looked up at once.
const CONCURRENT_LOOKS: usize = 20;

/// The entries of a batch after their contacts were looked up.
pub(crate) struct Named<'a> {
    /// All entries, each with its contact as far as the contact is stored.
    pub(crate) entries: Cow<'a, [Entry]>,
    /// Entries that still wait for their contacts.
    pub(crate) waiting: Vec<usize>,
    /// Entries that are not published: those of erased contacts, and those whose look-up failed.
    pub(crate) ended: Outcomes,
}

impl Named<'_> {
    /// Returns true for an entry that is to be published.
    pub(crate) fn is_ready(&self, index: usize) -> bool {
        !self.waiting.contains(&index) && self.ended.iter().all(|(other, _)| *other != index)
    }
}

/// The result of a look for the contact of an event.
enum Look {
    /// The person that the event names.
    Named(Person),
    Waits,
    Erased,
}

impl App {
    /// Names the contacts of events that were written before their contacts were stored.
    pub(crate) async fn name_contacts<'a>(&self, entries: &'a [Entry]) -> Named<'a> {
        let nameless = entries.iter().enumerate().filter_map(|(index, entry)| {
            let Content::Event(event) = &entry.content else { return None };
            Some((index, event, event.person.unseen_contact()?, entry.send_after))
        });
        let looks: Vec<_> = nameless
            .map(async |(index, event, contact, since)| (index, self.look_for(event, contact, since).await))
            .collect();
        let looks: Vec<_> = stream::iter(looks).buffered(CONCURRENT_LOOKS).collect().await;
        let mut named = Named { entries: Cow::Borrowed(entries), waiting: Vec::new(), ended: Outcomes::new() };
        for (index, look) in looks {
            match look {
                Ok(Look::Named(person)) => {
                    if let Content::Event(event) = &mut named.entries.to_mut()[index].content {
                        event.person = person;
                    }
                }
                Ok(Look::Waits) => named.waiting.push(index),
                Ok(Look::Erased) => named.ended.push((index, Ok(()))),
                Err(error) => named.ended.push((index, Err(error))),
            }
        }
        named
    }

    /// Looks for the contact of an event that was written at `since`. If it is not stored, sends the message that
    /// brings the entry back, until the event has waited long enough.
    async fn look_for(&self, event: &Event, contact: ContactId, since: Timestamp) -> Result<Look, BoxError> {
        let state = self.contacts.state(&event.coach_id, contact).await?;
        let Some(person) = state.person(contact) else {
            tracing::info!(entry_id = event.id.as_str(), "dropped an outbox entry of an erased contact");
            return Ok(Look::Erased);
        };
        match next_look_s(since, self.now()).filter(|_| person.unseen_contact().is_some()) {
            None => Ok(Look::Named(person)),
            Some(delay_s) => {
                self.retries.send_look(&event.id, delay_s).await?;
                Ok(Look::Waits)
            }
        }
    }
}
