//! Streams as event-source mappings read them: oldest first behind a durable checkpoint for each consumer.
//!
//! Records are read from dynoxide's own table. They lack what only the template knows and name another region: what a function
//! sees is put together here.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Row};
use serde_json::{Value, json};

use super::DynamoDb;
use crate::REGION;
use crate::error::StoreError;
use crate::sqlite::Sqlite;

/// For dynoxide's file. Without it a write looks for its sequence number, and an idle poll for news, in the whole table.
pub(super) const INDEX: &str = "CREATE INDEX IF NOT EXISTS stream_positions \
    ON _stream_records(table_name, CAST(sequence_number AS INTEGER));";

pub(crate) const CHECKPOINTS_SCHEMA: &str = "CREATE TABLE IF NOT EXISTS checkpoints (table_name TEXT NOT NULL, \
    consumer TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (table_name, consumer)) WITHOUT ROWID;";

/// Deleting takes the write lock that dynoxide needs too, so it happens once for this many commits.
const TRIM_EVERY: usize = 64;

/// The public form of a sequence number is 21 digits wide.
const SEQUENCE_NUMBER_OFFSET: u128 = 100_000_000_000_000_000_000;

/// Records for one invocation.
#[derive(Debug, Clone)]
pub struct StreamBatch {
    /// As Lambda's `Records`.
    pub records: Vec<Value>,
    /// Behind the last of them: commit it when the records have been handled.
    pub position: StreamPosition,
}

/// A place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPosition(i64);

type Consumer = (String, String);

/// What is known of the streams without asking the files.
pub(super) struct Streams(Mutex<State>);

struct State {
    /// By table and consumer; also those of earlier runs.
    positions: HashMap<Consumer, i64>,
    /// Consumers that have read in this run: those that a trim has to wait for.
    active: HashSet<Consumer>,
    /// The view type of each table of the template.
    views: HashMap<String, String>,
    /// Commits since the last trim, by table. The first commit of a run trims.
    untrimmed: HashMap<String, usize>,
}

struct StoredRecord {
    event_name: String,
    keys: String,
    new_image: Option<String>,
    old_image: Option<String>,
    sequence: i64,
    user_identity: Option<String>,
    event_id: Option<String>,
}

impl Streams {
    pub(super) async fn open(services: &Sqlite) -> Result<Self, StoreError> {
        let positions = services
            .run(|connection| {
                connection
                    .prepare("SELECT table_name, consumer, position FROM checkpoints")?
                    .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?
                    .collect::<rusqlite::Result<_>>()
            })
            .await?;
        let (active, views, untrimmed) = Default::default();
        Ok(Self(Mutex::new(State { positions, active, views, untrimmed })))
    }

    pub(super) fn set_view(&self, table: &str, view: &str) {
        self.lock().views.insert(table.to_owned(), view.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DynamoDb {
    /// Up to `limit` records of the table's stream behind the consumer's checkpoint, oldest first. A new consumer begins with
    /// the oldest record that there is. Records of writes that changed nothing are left out, as AWS writes none.
    pub async fn stream_read(&self, table: &str, consumer: &str, limit: usize) -> Result<StreamBatch, StoreError> {
        let (start, view) = {
            let mut state = self.streams.lock();
            let key = (table.to_owned(), consumer.to_owned());
            let start = state.positions.get(&key).copied().unwrap_or(0);
            state.active.insert(key);
            (start, state.views.get(table).cloned().unwrap_or_else(|| "NEW_AND_OLD_IMAGES".to_owned()))
        };
        let now_s = self.time.now_ms() as f64 / 1_000.0;
        let table_arn = self.table_arn(table);
        let name = table.to_owned();
        let batch = self
            .file
            .run(move |connection| {
                let label: Option<String> = connection
                    .prepare_cached("SELECT stream_label FROM _tables WHERE table_name = ?1")?
                    .query_row([&name], |row| row.get(0))?;
                let source = format!("{table_arn}/stream/{}", label.unwrap_or_default());
                let (mut records, mut position) = (Vec::new(), start);
                while records.len() < limit {
                    let wanted = limit - records.len();
                    let page = read(connection, &name, position, wanted)?;
                    let Some(last) = page.last() else { break };
                    position = last.sequence;
                    let is_last = page.len() < wanted;
                    records.extend(page.into_iter().filter_map(|record| record.render(&source, &view, now_s)));
                    if is_last {
                        break;
                    }
                }
                Ok(StreamBatch { records, position: StreamPosition(position) })
            })
            .await
            .map_err(|error| match error {
                StoreError::Sqlite(rusqlite::Error::QueryReturnedNoRows) => {
                    StoreError::NoSuchResource(format!("table {table}"))
                }
                other => other,
            })?;
        if batch.records.is_empty() && batch.position.0 > start {
            self.stream_commit(table, consumer, &batch.position).await?;
        }
        Ok(batch)
    }

    /// Moves the consumer's checkpoint to `position`, durably. Never moves it back.
    pub async fn stream_commit(
        &self,
        table: &str,
        consumer: &str,
        position: &StreamPosition,
    ) -> Result<(), StoreError> {
        let (key, position) = ((table.to_owned(), consumer.to_owned()), position.0);
        let (name, by) = key.clone();
        self.services
            .run(move |connection| {
                connection
                    .prepare_cached(
                        "INSERT INTO checkpoints (table_name, consumer, position) VALUES (?1, ?2, ?3) \
                         ON CONFLICT DO UPDATE SET position = MAX(position, excluded.position)",
                    )?
                    .execute((name, by, position))
            })
            .await?;
        let slowest = {
            let mut state = self.streams.lock();
            let checkpoint = state.positions.entry(key).or_default();
            *checkpoint = position.max(*checkpoint);
            let untrimmed = state.untrimmed.entry(table.to_owned()).or_insert(TRIM_EVERY);
            *untrimmed += 1;
            if *untrimmed < TRIM_EVERY {
                return Ok(());
            }
            *untrimmed = 0;
            let consumers = state.active.iter().filter(|(of, _)| of == table);
            consumers.map(|consumer| state.positions.get(consumer).copied().unwrap_or(0)).min().unwrap_or(0)
        };
        let table = table.to_owned();
        self.file.run(move |connection| trim(connection, &table, slowest)).await
    }
}

impl StoredRecord {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            event_name: row.get(0)?,
            keys: row.get(1)?,
            new_image: row.get(2)?,
            old_image: row.get(3)?,
            sequence: row.get(4)?,
            user_identity: row.get(5)?,
            event_id: row.get(6)?,
        })
    }

    /// The record as Lambda gets it; `None` when nothing changed.
    fn render(self, source: &str, view: &str, now_s: f64) -> Option<Value> {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let size = [Some(&self.keys), self.new_image.as_ref(), self.old_image.as_ref()];
        let size_bytes: usize = size.into_iter().flatten().map(String::len).sum();
        let (new, old) = (self.new_image.as_deref().map(parse), self.old_image.as_deref().map(parse));
        if self.event_name == "MODIFY" && new.is_some() && new == old {
            return None;
        }
        let mut change = json!({
            "ApproximateCreationDateTime": now_s,
            "Keys": parse(&self.keys),
            "SequenceNumber": (SEQUENCE_NUMBER_OFFSET + u128::from(self.sequence.unsigned_abs())).to_string(),
            "SizeBytes": size_bytes,
            "StreamViewType": view,
        });
        for (name, image, shown_by) in [("NewImage", new, "NEW_IMAGE"), ("OldImage", old, "OLD_IMAGE")] {
            if let Some(image) = image
                && [shown_by, "NEW_AND_OLD_IMAGES"].contains(&view)
            {
                change[name] = image;
            }
        }
        let mut record = json!({
            "eventID": self.event_id.unwrap_or_else(|| self.sequence.to_string()),
            "eventName": self.event_name,
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": REGION,
            "eventSourceARN": source,
            "dynamodb": change,
        });
        if let Some(identity) = self.user_identity.as_deref() {
            record["userIdentity"] = parse(identity);
        }
        Some(record)
    }
}

fn read(connection: &Connection, table: &str, behind: i64, limit: usize) -> rusqlite::Result<Vec<StoredRecord>> {
    connection
        .prepare_cached(
            "SELECT event_name, keys_json, new_image, old_image, CAST(sequence_number AS INTEGER), user_identity, event_id \
             FROM _stream_records WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) > ?2 \
             ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?3",
        )?
        .query_map((table, behind, i64::try_from(limit).unwrap_or(i64::MAX)), StoredRecord::from_row)?
        .collect()
}

/// Deletes what lies behind everybody, all but the last: the next sequence number is counted from it.
fn trim(connection: &Connection, table: &str, slowest: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM _stream_records WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) <= ?2 \
             AND CAST(sequence_number AS INTEGER) < \
             (SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = ?1)",
        )?
        .execute((table, slowest))?;
    Ok(())
}
