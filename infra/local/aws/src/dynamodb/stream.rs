//! Streams for event-source mappings: records after each consumer's durable checkpoint, oldest first.
//!
//! Records are read from dynoxide's table. They have another region and lack the template's view type, so this module
//! builds the records that a function receives.

use rusqlite::{Connection, Row};
use serde_json::{Value, json};

use super::DynamoDb;
use crate::account::REGION;
use crate::error::StoreError;

/// Added to sequence numbers, which have 21 digits in AWS.
const SEQUENCE_NUMBER_OFFSET: u128 = 100_000_000_000_000_000_000;

/// Records for one invocation.
#[derive(Debug, Clone)]
pub struct StreamBatch {
    /// The records in the shape of Lambda's `Records`.
    pub records: Vec<Value>,
    /// The position after the last record, to be committed once the records are handled.
    pub position: StreamPosition,
}

/// A position in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPosition(i64);

struct StoredRecord {
    event_name: String,
    keys: String,
    new_image: Option<String>,
    old_image: Option<String>,
    sequence: i64,
    user_identity: Option<String>,
    event_id: Option<String>,
}

impl DynamoDb {
    /// Reads up to `limit` records after the consumer's checkpoint, oldest first. A new consumer starts at the oldest
    /// record. Writes that changed nothing have no record, as in AWS.
    pub async fn stream_read(&self, table: &str, consumer: &str, limit: usize) -> Result<StreamBatch, StoreError> {
        let (start, view) = {
            let state = self.streams.lock();
            let start = state.positions.get(&(table.to_owned(), consumer.to_owned())).copied().unwrap_or(0);
            (start, state.views.get(table).cloned().unwrap_or_else(|| "NEW_AND_OLD_IMAGES".to_owned()))
        };
        let now_s = self.time.now_ms() as f64 / 1_000.0;
        let table_arn = self.table_arn(table);
        let batch = self
            .file
            .run(|connection| {
                let label: Option<String> = connection
                    .prepare_cached("SELECT stream_label FROM _tables WHERE table_name = ?1")?
                    .query_row([table], |row| row.get(0))?;
                let source = format!("{table_arn}/stream/{}", label.unwrap_or_default());
                let (mut records, mut position) = (Vec::new(), start);
                while records.len() < limit {
                    let wanted = limit - records.len();
                    let page = read(connection, table, position, wanted)?;
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

    /// Durably moves the consumer's checkpoint forward to `position`, never back.
    pub async fn stream_commit(
        &self,
        table: &str,
        consumer: &str,
        position: &StreamPosition,
    ) -> Result<(), StoreError> {
        let (key, position) = ((table.to_owned(), consumer.to_owned()), position.0);
        self.services
            .run(|connection| {
                connection
                    .prepare_cached(
                        "INSERT INTO checkpoints (table_name, consumer, position) VALUES (?1, ?2, ?3) \
                         ON CONFLICT DO UPDATE SET position = MAX(position, excluded.position)",
                    )?
                    .execute((table, consumer, position))
            })
            .await?;
        let mut state = self.streams.lock();
        let checkpoint = state.positions.entry(key).or_default();
        *checkpoint = position.max(*checkpoint);
        Ok(())
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

    /// Renders the record as Lambda receives it. Returns `None` when the write changed nothing.
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
        for (name, image, view_type) in [("NewImage", new, "NEW_IMAGE"), ("OldImage", old, "OLD_IMAGE")] {
            if let Some(image) = image
                && [view_type, "NEW_AND_OLD_IMAGES"].contains(&view)
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
