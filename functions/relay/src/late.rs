//! Entries that come late, of whoever was erased while they waited.
//!
//! An erasure takes back what it knows of, and goes over what the relay has made of the rest until a quarter of an hour later. What the relay
//! carries later than that it would not find.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use chrono::TimeDelta;
use domain::id::ClientId;
use domain::time::Timestamp;
use futures::future::try_join;
use store::contact_ref::ContactRef;
use store::outbox::Entry;

use crate::App;
use crate::carry::{Outcomes, Placed};

/// What is carried sooner after it was made is stored before an erasure's second pass, two minutes after its first: the relay has a minute.
const LATE_AFTER: TimeDelta = TimeDelta::seconds(60);

/// Whom an entry is about: a client, a contact, a contact that is a client.
type Subject = (Option<ClientId>, Option<ContactRef>);

impl App {
    /// The entries that are to be told, and what came of the others: those of erased clients and contacts are done with, and of whom it
    /// cannot be known whether they were erased the store has to answer first.
    pub(crate) async fn told<'a>(&self, entries: &'a [Entry]) -> (Vec<Placed<'a>>, Outcomes) {
        let now = self.now();
        let late: Vec<Option<Subject>> = entries.iter().map(|entry| late_subject(entry, now)).collect();
        let clients: BTreeSet<ClientId> = late.iter().flatten().filter_map(|(client, _)| client.clone()).collect();
        let contacts: HashSet<ContactRef> = late.iter().flatten().filter_map(|(_, contact)| contact.clone()).collect();
        let erased = try_join(self.clients.erased_among(&clients), self.contacts.erased_among(&contacts)).await;
        let erased = erased.map_err(Arc::new);
        let (mut told, mut outcomes) = (Vec::new(), Outcomes::new());
        for (place, (entry, subject)) in entries.iter().zip(&late).enumerate() {
            match (subject, &erased) {
                (Some(subject), Ok(erased)) if is_among(subject, erased) => {
                    tracing::info!(entry_id = &*entry.content.id(), "nobody is told of whoever was erased");
                    outcomes.push((place, Ok(())));
                }
                (Some(_), Err(error)) => outcomes.push((place, Err(Arc::clone(error).into()))),
                (Some(_), Ok(_)) | (None, _) => told.push((place, entry)),
            }
        }
        (told, outcomes)
    }
}

fn late_subject(entry: &Entry, now: Timestamp) -> Option<Subject> {
    if entry.send_after + LATE_AFTER > now {
        return None;
    }
    let subject = (entry.content.client_id(), entry.content.contact());
    (subject != (None, None)).then_some(subject)
}

fn is_among((client, contact): &Subject, (clients, contacts): &(BTreeSet<ClientId>, HashSet<ContactRef>)) -> bool {
    client.as_ref().is_some_and(|client| clients.contains(client))
        || contact.as_ref().is_some_and(|contact| contacts.contains(contact))
}
