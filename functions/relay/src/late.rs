//! Entries that come late, of whoever was erased while they waited.
//!
//! An erasure takes back what it knows of, and goes over what the relay has made of the rest until a quarter of an hour later. What the relay
//! carries later than that it would not find.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::TimeDelta;
use domain::id::ClientId;
use domain::time::Timestamp;
use store::outbox::Entry;

use crate::App;
use crate::carry::{Outcomes, Placed};

/// What is carried sooner after it was made is stored before an erasure's second pass, two minutes after its first: the relay has a minute.
const LATE_AFTER: TimeDelta = TimeDelta::seconds(60);

impl App {
    /// The entries that are to be told, and what came of the others: those of erased clients are done with, and of whom it cannot be known
    /// whether they were erased the store has to answer first.
    pub(crate) async fn told<'a>(&self, entries: &'a [Entry]) -> (Vec<Placed<'a>>, Outcomes) {
        let now = self.now();
        let late: BTreeSet<ClientId> = entries.iter().filter_map(|entry| late_client(entry, now)).collect();
        let erased = self.clients.erased_among(&late).await.map_err(Arc::new);
        let (mut told, mut outcomes) = (Vec::new(), Outcomes::new());
        for (place, entry) in entries.iter().enumerate() {
            match (late_client(entry, now), &erased) {
                (Some(client), Ok(erased)) if erased.contains(&client) => {
                    let (entry_id, client_id) = (&*entry.content.id(), client.as_str());
                    tracing::info!(entry_id, client_id, "nobody is told of a client who was erased");
                    outcomes.push((place, Ok(())));
                }
                (Some(_), Err(error)) => outcomes.push((place, Err(Arc::clone(error).into()))),
                (Some(_), Ok(_)) | (None, _) => told.push((place, entry)),
            }
        }
        (told, outcomes)
    }
}

fn late_client(entry: &Entry, now: Timestamp) -> Option<ClientId> {
    if entry.send_after + LATE_AFTER > now {
        return None;
    }
    entry.content.client_id()
}
