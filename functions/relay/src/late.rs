//! Entries that come late, of whoever was erased while they waited.
//!
//! An erasure takes back what it knows of, and goes over what the relay has made of the rest until a quarter of an hour
//! later. What the relay carries later than that it would not find.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use chrono::TimeDelta;
use domain::id::ClientId;
use domain::subject::Subject;
use domain::time::Timestamp;
use futures::future::try_join;
use store::contact_ref::ContactRef;
use store::outbox::Entry;

use crate::App;
use crate::carry::{Outcomes, Placed};

/// What is carried sooner after it was made is stored before an erasure's second pass, two minutes after its first: the
/// relay has a minute.
const LATE_AFTER: TimeDelta = TimeDelta::seconds(60);

impl App {
    /// Splits the entries into those to carry on and the results of the others. Entries of erased clients and contacts
    /// are done. If the store does not answer who was erased, late entries fail.
    pub(crate) async fn told<'a>(&self, entries: &'a [Entry]) -> (Vec<Placed<'a>>, Outcomes) {
        let now = self.now();
        let late = || entries.iter().filter(|entry| is_late(entry, now));
        let clients: BTreeSet<ClientId> = late().filter_map(client_of).collect();
        let contacts: HashSet<ContactRef> = late().filter_map(contact_of).collect();
        let erased = try_join(self.clients.erased_among(&clients), self.contacts.erased_among(&contacts)).await;
        let erased = erased.map_err(Arc::new);
        let (mut told, mut outcomes) = (Vec::new(), Outcomes::new());
        for (place, entry) in entries.iter().enumerate() {
            match &erased {
                _ if !is_late(entry, now) => told.push((place, entry)),
                Err(error) => outcomes.push((place, Err(Arc::clone(error).into()))),
                Ok((clients, contacts))
                    if client_of(entry).is_some_and(|client| clients.contains(&client))
                        || contact_of(entry).is_some_and(|contact| contacts.contains(&contact)) =>
                {
                    tracing::info!(entry_id = &*entry.content.id(), "nobody is told of whoever was erased");
                    outcomes.push((place, Ok(())));
                }
                Ok(_) => told.push((place, entry)),
            }
        }
        (told, outcomes)
    }
}

/// Returns true for an entry about somebody that is not carried in time.
fn is_late(entry: &Entry, now: Timestamp) -> bool {
    entry.send_after + LATE_AFTER <= now && entry.content.subject() != Subject::default()
}

fn client_of(entry: &Entry) -> Option<ClientId> {
    entry.content.subject().client_id
}

fn contact_of(entry: &Entry) -> Option<ContactRef> {
    let content = &entry.content;
    content.subject().contact_id.map(|contact| ContactRef::new(content.coach_id(), contact))
}
