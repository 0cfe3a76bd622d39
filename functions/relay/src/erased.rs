//! Entries about clients and contacts that were erased while the entries waited. They are not published.
//!
//! An erasure deletes the deliveries that it finds, and looks again two and fifteen minutes later. What the relay
//! publishes after the erasure would be attempted before that.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::id::ClientId;
use futures::future::try_join;
use store::contact_ref::ContactRef;
use store::outbox::Entry;

use crate::App;
use crate::carry::{Outcomes, Placed};

impl App {
    /// Splits the entries into those to publish and the results of the others. Entries of erased clients and contacts
    /// are done. If the store does not answer who was erased, the entries with a subject fail.
    pub(crate) async fn without_erased<'a>(&self, entries: &'a [Entry]) -> (Vec<Placed<'a>>, Outcomes) {
        let clients: BTreeSet<ClientId> = entries.iter().filter_map(client_of).collect();
        let contacts: HashSet<ContactRef> = entries.iter().filter_map(contact_of).collect();
        let erased = try_join(self.clients.erased_among(&clients), self.contacts.erased_among(&contacts)).await;
        let erased = erased.map_err(Arc::new);
        let (mut kept, mut outcomes) = (Vec::new(), Outcomes::new());
        for (place, entry) in entries.iter().enumerate() {
            let (client, contact) = (client_of(entry), contact_of(entry));
            match &erased {
                _ if client.is_none() && contact.is_none() => kept.push((place, entry)),
                Err(error) => outcomes.push((place, Err(Arc::clone(error).into()))),
                Ok((clients, contacts))
                    if client.is_some_and(|client| clients.contains(&client))
                        || contact.is_some_and(|contact| contacts.contains(&contact)) =>
                {
                    tracing::info!(entry_id = &*entry.content.id(), "dropped an outbox entry of an erased subject");
                    outcomes.push((place, Ok(())));
                }
                Ok(_) => kept.push((place, entry)),
            }
        }
        (kept, outcomes)
    }
}

fn client_of(entry: &Entry) -> Option<ClientId> {
    entry.content.subject().client_id
}

fn contact_of(entry: &Entry) -> Option<ContactRef> {
    let content = &entry.content;
    content.subject().contact_id.map(|contact| ContactRef::new(content.coach_id(), contact))
}
