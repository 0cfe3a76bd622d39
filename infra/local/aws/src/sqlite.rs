//! A SQLite connection. Jobs run one at a time in the order of their calls, so a job is also the unit of mutual
//! exclusion. They take less time than handing them to another thread would.
//!
//! With a write-ahead log and `synchronous = NORMAL`, a committed write survives a killed process, but not a power cut.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Transaction};
use tokio::sync::Mutex;

use crate::error::StoreError;

const PRAGMAS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -2000; \
                       PRAGMA busy_timeout = 10000;";

/// A handle to the connection, which is closed when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Sqlite(Arc<Mutex<Connection>>);

impl Sqlite {
    /// Opens the file and creates the tables of `schema`.
    pub(crate) fn open(path: &Path, schema: &str) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        connection.execute_batch(PRAGMAS)?;
        connection.execute_batch(schema)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Runs a job and returns its result.
    pub(crate) async fn run<T>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        Ok(job(&mut *self.0.lock().await)?)
    }

    /// Runs a job in a transaction, which an error rolls back.
    pub(crate) async fn run_transaction<T>(
        &self,
        job: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.run(|connection| {
            let transaction = connection.transaction()?;
            let result = job(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })
        .await
    }

    /// Writes the write-ahead log back to the file.
    pub(crate) async fn checkpoint(&self) -> Result<(), StoreError> {
        self.run(|connection| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))).await
    }
}
