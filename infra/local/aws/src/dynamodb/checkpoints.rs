//! The checkpoints of the streams' consumers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::error::StoreError;
use crate::sqlite::Sqlite;

/// An index for dynoxide's file. Without it, each write and each idle poll would scan the whole table.
pub(super) const INDEX: &str = "CREATE INDEX IF NOT EXISTS stream_positions \
    ON _stream_records(table_name, CAST(sequence_number AS INTEGER));";

pub(crate) const CHECKPOINTS_SCHEMA: &str = "CREATE TABLE IF NOT EXISTS checkpoints (table_name TEXT NOT NULL, \
    consumer TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (table_name, consumer)) WITHOUT ROWID;";

type Consumer = (String, String);

/// In-memory state of the streams.
pub(super) struct Streams(Mutex<StreamsState>);

pub(super) struct StreamsState {
    /// Checkpoints by table and consumer, those of earlier runs included.
    pub(super) positions: HashMap<Consumer, i64>,
    /// The view type of each table of the template.
    pub(super) views: HashMap<String, String>,
}

impl Streams {
    /// Reads the checkpoints, and deletes the records that every consumer has passed.
    pub(super) async fn open(services: &Sqlite, file: &Sqlite) -> Result<Self, StoreError> {
        let positions: HashMap<Consumer, i64> = services
            .run(|connection| {
                connection
                    .prepare("SELECT table_name, consumer, position FROM checkpoints")?
                    .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?
                    .collect::<rusqlite::Result<_>>()
            })
            .await?;
        let mut slowest: HashMap<&str, i64> = HashMap::new();
        for ((table, _), position) in &positions {
            slowest.entry(table).and_modify(|slowest| *slowest = (*slowest).min(*position)).or_insert(*position);
        }
        for (table, slowest) in slowest {
            file.run(|connection| trim(connection, table, slowest)).await?;
        }
        Ok(Self(Mutex::new(StreamsState { positions, views: HashMap::new() })))
    }

    pub(super) fn set_view(&self, table: &str, view: &str) {
        self.lock().views.insert(table.to_owned(), view.to_owned());
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, StreamsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes the records that every consumer has passed. The last record stays, since dynoxide derives the next sequence
/// number from it.
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
