//! Check-ins: submitted, reviewed, deleted, in any order of the facts. A review that arrives before its check-in waits
//! in the check-in's item. A deletion is permanent. The client's own item has the time of the latest check-in.

use domain::automation::check_in_events;
use domain::check_in::{CheckIn, CheckInSubmitted, Grades, SubmissionTimes};
use domain::client::Client;
use domain::event::EventType;
use domain::id::{CheckInId, ClientId};
use domain::register::Register;
use domain::time::Timestamp;
use futures::future::try_join;
use serde::{Deserialize, Serialize};

use super::{RecordReader, Records, key, partition, take_item};
use crate::client::StoredClient;
use crate::db::{Item, Part, StoreError, Write, b, from_item, n, query_page, s, to_item};
use crate::fact::{FactContext, Halt};
use crate::unit::Unit;
use crate::watch::WatchUpdate;

const ENTITY: &str = "check-in";
/// The sort key of the grades. They are compared at ingest, and only the latest are stored. Scores are not stored.
const GRADES: &str = "GRADES";
/// The events that a check-in may emit.
const CHECK_IN_EVENTS: [EventType; 3] =
    [EventType::CheckInSubmitted, EventType::LowCheckInScore, EventType::SystemGradeDrop];

#[derive(Debug, Clone, Serialize, Deserialize)]
struct CheckInItem {
    pk: String,
    sk: String,
    check_in_id: CheckInId,
    listed_at: Option<String>,
    submitted_at: Option<Timestamp>,
    /// The original time of submission, if a later fact corrected it.
    first_submitted_at: Option<Timestamp>,
    reviewed_at: Option<Timestamp>,
    /// The last fact that the check-in was submitted.
    submission: Register,
    /// The last fact that the check-in was reviewed.
    review: Register,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    version: u64,
}

impl CheckInItem {
    fn new(client: &ClientId, check_in: &CheckInId) -> Self {
        Self {
            pk: partition(client),
            sk: sk(check_in),
            check_in_id: check_in.clone(),
            listed_at: None,
            submitted_at: None,
            first_submitted_at: None,
            reviewed_at: None,
            submission: Register::default(),
            review: Register::default(),
            deleted: false,
            version: 0,
        }
    }

    /// The times of the check-in after a fact with this time of submission.
    fn times(&self, submitted_at: Timestamp) -> SubmissionTimes {
        let first_submitted_at = self.first_submitted_at.or(self.submitted_at).unwrap_or(submitted_at);
        SubmissionTimes { submitted_at, first_submitted_at }
    }

    /// The tombstone of the check-in.
    fn tombstone(&self, client: &ClientId) -> Self {
        Self { deleted: true, version: self.version, ..Self::new(client, &self.check_in_id) }
    }
}

/// The state that a change of a check-in starts from.
struct FoundCheckIn {
    record: CheckInItem,
    grades: Grades,
    grades_version: u64,
}

impl RecordReader {
    /// Reads a client's check-ins, newest first, at most `limit`.
    pub async fn check_ins(&self, client: &ClientId, limit: u32) -> Result<Vec<CheckIn>, StoreError> {
        // The largest page is far below the megabyte at which a query stops.
        let query = self.table.query("pk = :pk", [(":pk", s(partition(client)))]).index_name("by_time");
        let query = query
            .projection_expression("check_in_id, submitted_at, reviewed_at")
            .scan_index_forward(false)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX));
        query_page(query).await?.items.into_iter().map(listed).collect()
    }
}

/// Parses a list item from the index.
fn listed(item: Item) -> Result<CheckIn, StoreError> {
    #[derive(Deserialize)]
    struct Projected {
        check_in_id: CheckInId,
        submitted_at: Timestamp,
        reviewed_at: Option<Timestamp>,
    }
    let Projected { check_in_id: id, submitted_at, reviewed_at } = from_item(ENTITY, item)?;
    Ok(CheckIn { id, submitted_at, reviewed: reviewed_at.is_some(), reviewed_at })
}

impl Records {
    /// Stores a check-in. Emits its events the first time, unless it is part of a backfill.
    pub async fn submit_check_in(
        &self,
        client_id: &ClientId,
        check_in: &CheckInSubmitted,
        fact: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        let (stored, found) = self.with_client(client_id, self.find(client_id, &check_in.check_in)).await?;
        let FoundCheckIn { record, mut grades, grades_version } = found;
        let client = &stored.client;
        let (mut next, submitted_at) = (record.clone(), check_in.submitted_at);
        let is_taken = next.submission.offer(&mut next.submitted_at, Some(submitted_at), fact.occurred_at);
        if record.deleted || !is_taken {
            return Err(Halt::Done);
        }
        let is_emitted = record.submitted_at.is_none() && !fact.backfill;
        let automations = self.automations(client, &CHECK_IN_EVENTS, !is_emitted);
        let latest = self.latest_with(client, &record, Some(submitted_at));
        let (latest, automations) = try_join(latest, automations).await?;
        let times = record.times(submitted_at);
        let drops = grades.apply(&check_in.check_in, times, &check_in.grades, fact.backfill);
        next.listed_at = Some(format!("{submitted_at}#{}", check_in.check_in));
        next.first_submitted_at = Some(times.first_submitted_at).filter(|first| *first != submitted_at);
        let put_grades = || self.put_grades(client_id, &grades, grades_version);
        let events = is_emitted.then(|| check_in_events(client, check_in, &drops, &automations));
        Ok(Unit::new()
            .write([self.put_check_in(next)])
            .write(self.set_latest(&stored, latest, fact))
            .write((!check_in.grades.is_empty()).then(put_grades))
            .events(events.into_iter().flatten()))
    }

    /// Stores the review of a check-in, even before the check-in itself.
    pub async fn review_check_in(
        &self,
        client_id: &ClientId,
        check_in: &CheckInId,
        reviewed_at: Timestamp,
        fact: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        let (_, FoundCheckIn { mut record, .. }) = self.with_client(client_id, self.find(client_id, check_in)).await?;
        if record.deleted || !record.review.offer(&mut record.reviewed_at, Some(reviewed_at), fact.occurred_at) {
            return Err(Halt::Done);
        }
        Ok(Unit::new().write([self.put_check_in(record), self.clients.lookup.check_not_erased(client_id)]))
    }

    /// Deletes a check-in for good, even before the check-in itself.
    pub async fn delete_check_in(
        &self,
        client_id: &ClientId,
        check_in: &CheckInId,
        fact: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        let (stored, found) = self.with_client(client_id, self.find(client_id, check_in)).await?;
        let FoundCheckIn { record, mut grades, grades_version } = found;
        if record.deleted {
            return Err(Halt::Done);
        }
        let latest = self.latest_with(&stored.client, &record, None).await?;
        grades.forget(check_in);
        let put_grades = || self.put_grades(client_id, &grades, grades_version);
        Ok(Unit::new()
            .write([self.put_check_in(record.tombstone(client_id))])
            .write(self.set_latest(&stored, latest, fact))
            .write((grades_version > 0).then(put_grades)))
    }

    /// Parts of a transaction: set the time of the client's latest check-in, in the record and in the watch.
    fn set_latest(
        &self,
        stored: &StoredClient,
        latest: Option<Timestamp>,
        fact: FactContext<'_>,
    ) -> impl Iterator<Item = Write> {
        let client = &stored.client;
        let change = WatchUpdate::between(client, &Client { latest_check_in_at: latest, ..client.clone() });
        let watch = change.map(|change| self.watches.change(&client.id, change, fact.due_mark()));
        std::iter::once(self.clients.set_latest_check_in(stored, latest)).chain(watch)
    }

    async fn find(&self, client: &ClientId, check_in: &CheckInId) -> Result<FoundCheckIn, StoreError> {
        let own = sk(check_in);
        let keys = vec![key(client, &own), key(client, GRADES)];
        let mut items = self.table.read(keys).await?;
        let record = match take_item(&mut items, &own) {
            Some(item) => from_item(ENTITY, item)?,
            None => CheckInItem::new(client, check_in),
        };
        let (grades, grades_version) = match take_item(&mut items, GRADES) {
            Some(item) => self.open_grades(client, item)?,
            None => (Grades::default(), 0),
        };
        Ok(FoundCheckIn { record, grades, grades_version })
    }

    /// The time of the client's latest check-in after this check-in has `submitted_at`, or is deleted. The other
    /// check-ins are read only if the latest one moves back.
    async fn latest_with(
        &self,
        client: &Client,
        record: &CheckInItem,
        submitted_at: Option<Timestamp>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let was_latest = record.submitted_at.is_some() && record.submitted_at == client.latest_check_in_at;
        if !was_latest || submitted_at >= record.submitted_at {
            return Ok(client.latest_check_in_at.max(submitted_at));
        }
        let query = self.table.query("pk = :pk", [(":pk", s(partition(&client.id)))]).index_name("by_time");
        let newest = query_page(query.consistent_read(true).scan_index_forward(false).limit(2)).await?.items;
        let newest = newest.into_iter().map(listed).collect::<Result<Vec<_>, _>>()?;
        let others = newest.into_iter().filter(|other| other.id != record.check_in_id);
        Ok(others.map(|other| other.submitted_at).max().max(submitted_at))
    }

    fn put_check_in(&self, record: CheckInItem) -> Write {
        let found = record.version;
        self.put_version(to_item(&CheckInItem { version: found + 1, ..record }), found)
    }

    fn put_grades(&self, client: &ClientId, grades: &Grades, found: u64) -> Write {
        let mut item = key(client, GRADES);
        item.insert("sealed".to_owned(), b(self.vault.seal_json(&grades_context(client), grades)));
        item.insert("version".to_owned(), n(found + 1));
        self.put_version(item, found)
    }

    fn open_grades(&self, client: &ClientId, item: Item) -> Result<(Grades, u64), StoreError> {
        #[derive(Deserialize)]
        struct SealedGrades {
            #[serde(with = "crate::binary")]
            sealed: Vec<u8>,
            version: u64,
        }
        let stored: SealedGrades = from_item("grades", item)?;
        Ok((self.vault.unseal_json("grades", &grades_context(client), &stored.sealed)?, stored.version))
    }

    /// Stores an item on condition that it has the version that was found, 0 for none.
    pub(super) fn put_version(&self, item: Item, found: u64) -> Write {
        self.table.write(item).when_version((found > 0).then_some(found)).put(Part::Record)
    }
}

fn sk(check_in: &CheckInId) -> String {
    format!("CHECKIN#{check_in}")
}

fn grades_context(client: &ClientId) -> String {
    format!("grades/{client}")
}
