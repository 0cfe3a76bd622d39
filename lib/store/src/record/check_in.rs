//! Check-ins: submitted, reviewed, deleted, in any order of the facts. A review that arrives before its check-in waits
//! in the check-in's item. A deletion is permanent. The client's own item has the time of the latest check-in.

use domain::check_in::{CheckIn, Grades, SubmissionTimes};
use domain::client::Client;
use domain::fact_time::FactTime;
use domain::id::{CheckInId, ClientId};
use domain::register::Register;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{PARTITION, RecordReader, Records, key, partition, take_item};
use crate::db::{Item, Part, StoreError, Write, b, from_item, n, query_page, s, text, to_item};
use crate::vault::Vault;

const ENTITY: &str = "check-in";
pub(super) const PREFIX: &str = "CHECKIN#";
/// The sort key of the grades. They are compared at ingest, and only the latest are stored. Scores are not stored.
const GRADES: &str = "GRADES";
/// A check-in as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredCheckIn {
    pk: String,
    sk: String,
    check_in_id: CheckInId,
    listed_at: Option<String>,
    pub submitted_at: Option<Timestamp>,
    /// The original time of submission, if a later fact corrected it.
    first_submitted_at: Option<Timestamp>,
    reviewed_at: Option<Timestamp>,
    /// The last fact that the check-in was submitted.
    submission: Register,
    /// The last fact that the check-in was reviewed.
    review: Register,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    version: u64,
}

impl StoredCheckIn {
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
    pub fn times(&self, submitted_at: Timestamp) -> SubmissionTimes {
        let first_submitted_at = self.first_submitted_at.or(self.submitted_at).unwrap_or(submitted_at);
        SubmissionTimes { submitted_at, first_submitted_at }
    }

    /// The check-in after it was submitted. `None`: it is deleted, or the stored submission is newer.
    pub fn submitted(&self, at: Timestamp, occurred_at: FactTime) -> Option<Self> {
        let mut next = self.clone();
        let is_taken = next.submission.offer(&mut next.submitted_at, Some(at), occurred_at);
        let first = self.times(at).first_submitted_at;
        next.listed_at = Some(format!("{at}#{}", self.check_in_id));
        next.first_submitted_at = Some(first).filter(|first| *first != at);
        (is_taken && !self.deleted).then_some(next)
    }

    /// The check-in after its review. `None`: it is deleted, or the stored review is newer.
    pub fn reviewed(&self, at: Timestamp, occurred_at: FactTime) -> Option<Self> {
        let mut next = self.clone();
        let is_taken = next.review.offer(&mut next.reviewed_at, Some(at), occurred_at);
        (is_taken && !self.deleted).then_some(next)
    }

    /// The tombstone of the check-in.
    pub fn tombstone(&self, client: &ClientId) -> Self {
        Self { deleted: true, version: self.version, ..Self::new(client, &self.check_in_id) }
    }
}

/// A check-in with the client's grades.
pub struct FoundCheckIn {
    pub record: StoredCheckIn,
    pub grades: Grades,
    grades_version: u64,
}

impl FoundCheckIn {
    /// Returns true if grades are stored.
    pub fn has_grades(&self) -> bool {
        self.grades_version > 0
    }
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
    /// Reads a check-in, a new one if it is not stored, with the client's grades.
    pub async fn check_in(&self, client: &ClientId, check_in: &CheckInId) -> Result<FoundCheckIn, StoreError> {
        let own = sk(check_in);
        let keys = vec![key(client, &own), key(client, GRADES)];
        let mut items = self.table.read(keys).await?;
        let record = match take_item(&mut items, &own) {
            Some(item) => from_item(ENTITY, item)?,
            None => StoredCheckIn::new(client, check_in),
        };
        let (grades, grades_version) = match take_item(&mut items, GRADES) {
            Some(item) => self.open_grades(client, item)?,
            None => (Grades::default(), 0),
        };
        Ok(FoundCheckIn { record, grades, grades_version })
    }

    /// The time of the client's latest check-in after this check-in has `submitted_at`, or is deleted. The other
    /// check-ins are read only if the latest one moves back.
    pub async fn latest_check_in(
        &self,
        client: &Client,
        record: &StoredCheckIn,
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

    /// Part of a transaction: stores a check-in, if the item is as it was read.
    pub fn put_check_in(&self, record: StoredCheckIn) -> Write {
        let found = record.version;
        self.put_version(to_item(&StoredCheckIn { version: found + 1, ..record }), found)
    }

    /// Part of a transaction: stores the grades, if those that were found are unchanged.
    pub fn put_grades(&self, client: &ClientId, grades: &Grades, found: &FoundCheckIn) -> Write {
        let found = found.grades_version;
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

/// Opens a binary attribute of an item of the table, which `path` names. The counts of doses are bytes, a day each.
pub(crate) fn open_member(vault: &Vault, item: &Item, path: &str, bytes: &[u8]) -> Result<Option<Value>, StoreError> {
    if path != "sealed" {
        return Ok(Some(json!(bytes)));
    }
    let client = text(item, "pk").strip_prefix(PARTITION).and_then(|id| ClientId::parse(id).ok());
    let client = client.ok_or_else(|| StoreError::corrupt("grades", "their key has another form"))?;
    vault.unseal_json("grades", &grades_context(&client), bytes).map(Some)
}

fn sk(check_in: &CheckInId) -> String {
    format!("{PREFIX}{check_in}")
}

fn grades_context(client: &ClientId) -> String {
    format!("grades/{client}")
}
