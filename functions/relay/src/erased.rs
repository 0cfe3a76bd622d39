//! Outbox entries about erased clients and contacts, which are not published.
//!
//! An erasure deletes the deliveries that it finds, and looks again 2 and 17 minutes later. If the relay published an
//! entry after the erasure, its delivery would be sent before the next look.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::id::ClientId;
use domain::subject::Subject;
use futures::future::try_join;
use store::contact_ref::ContactRef;
use store::outbox::Entry;

use crate::App;
use crate::publish::{Indexed, Outcomes};

impl App {
    /// Splits the entries into those to publish and the results of the others. An entry of an erased subject is done.
    /// If the store does not answer, all entries with a subject fail.
    pub(crate) async fn without_erased<'a>(&self, entries: Vec<Indexed<'a>>) -> (Vec<Indexed<'a>>, Outcomes) {
        let clients: BTreeSet<ClientId> = entries.iter().filter_map(|(_, entry)| client_of(entry)).collect();
        let contacts: HashSet<ContactRef> = entries.iter().flat_map(|(_, entry)| contacts_of(entry)).collect();
        let erased = try_join(self.clients.erased_among(&clients), self.contacts.erased_among(&contacts)).await;
        let erased = erased.map_err(Arc::new);
        let (mut kept, mut outcomes) = (Vec::new(), Outcomes::new());
        for (index, entry) in entries {
            let (client, of_entry) = (client_of(entry), contacts_of(entry));
            match &erased {
                _ if client.is_none() && of_entry.is_empty() => kept.push((index, entry)),
                Err(error) => outcomes.push((index, Err(Arc::clone(error).into()))),
                Ok((clients, contacts))
                    if client.is_some_and(|client| clients.contains(&client))
                        || of_entry.iter().any(|contact| contacts.contains(contact)) =>
                {
                    tracing::info!(entry_id = &*entry.content.id(), "dropped an outbox entry of an erased subject");
                    outcomes.push((index, Ok(())));
                }
                Ok(_) => kept.push((index, entry)),
            }
        }
        (kept, outcomes)
    }
}

fn client_of(entry: &Entry) -> Option<ClientId> {
    entry.content.subject().client_id
}

/// The contact that an entry names, and the merged contact whose record it is about.
fn contacts_of(entry: &Entry) -> Vec<ContactRef> {
    let Subject { contact_id, merged_contact_id, .. } = entry.content.subject();
    let of_coach = |contact| ContactRef::new(entry.content.coach_id(), contact);
    contact_id.into_iter().chain(merged_contact_id).map(of_coach).collect()
}
