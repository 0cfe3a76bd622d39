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

/// The client and the contact that an entry is about.
struct Person {
    client: Option<ClientId>,
    contact: Option<ContactRef>,
}

/// The erased ones among clients and contacts.
struct Erased {
    clients: BTreeSet<ClientId>,
    contacts: HashSet<ContactRef>,
}

impl Erased {
    fn includes(&self, person: &Person) -> bool {
        person.client.as_ref().is_some_and(|client| self.clients.contains(client))
            || person.contact.as_ref().is_some_and(|contact| self.contacts.contains(contact))
    }
}

impl App {
    /// The entries that are to be told, and what came of the others: those of erased clients and contacts are done
    /// with, and of whom it cannot be known whether they were erased the store has to answer first.
    pub(crate) async fn told<'a>(&self, entries: &'a [Entry]) -> (Vec<Placed<'a>>, Outcomes) {
        let now = self.now();
        let late: Vec<Option<Person>> = entries.iter().map(|entry| late_person(entry, now)).collect();
        let clients: BTreeSet<ClientId> = late.iter().flatten().filter_map(|person| person.client.clone()).collect();
        let contacts: HashSet<ContactRef> = late.iter().flatten().filter_map(|person| person.contact.clone()).collect();
        let erased = try_join(self.clients.erased_among(&clients), self.contacts.erased_among(&contacts)).await;
        let erased = erased.map(|(clients, contacts)| Erased { clients, contacts }).map_err(Arc::new);
        let (mut told, mut outcomes) = (Vec::new(), Outcomes::new());
        for (place, (entry, person)) in entries.iter().zip(&late).enumerate() {
            match (person, &erased) {
                (Some(person), Ok(erased)) if erased.includes(person) => {
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

/// `None` for an entry that is carried in time, or is about nobody.
fn late_person(entry: &Entry, now: Timestamp) -> Option<Person> {
    if entry.send_after + LATE_AFTER > now {
        return None;
    }
    let (subject, coach) = (entry.content.subject(), entry.content.coach_id());
    let contact = subject.contact().map(|contact| ContactRef::new(coach, contact));
    (subject != Subject::None).then(|| Person { client: subject.client().cloned(), contact })
}
