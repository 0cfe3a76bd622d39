//! One SQLite connection on its own thread. Jobs run one at a time in the order of submission, so a job is also the
//! unit of mutual exclusion.
//!
//! With a write-ahead log and `synchronous = NORMAL`, a committed write survives a killed process, but not a power cut.

use std::path::Path;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::StoreError;

/// Maximum number of queued jobs. Submitting more blocks the caller.
const QUEUE_LENGTH: usize = 256;

const PRAGMAS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -2000; \
                       PRAGMA busy_timeout = 10000;";

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A handle to the connection. The thread ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Sqlite {
    jobs: mpsc::Sender<Job>,
}

impl Sqlite {
    /// Opens the file, creates the tables of `schema`, and starts the thread.
    pub(crate) fn open(path: &Path, schema: &str) -> Result<(Self, JoinHandle<()>), StoreError> {
        let mut connection = Connection::open(path)?;
        connection.execute_batch(PRAGMAS)?;
        connection.execute_batch(schema)?;
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE_LENGTH);
        let thread = std::thread::spawn(move || {
            while let Some(job) = queue.blocking_recv() {
                job(&mut connection);
            }
        });
        Ok((Self { jobs }, thread))
    }

    /// Runs a job and returns its result. The job runs even if the caller stops waiting.
    pub(crate) async fn run<T, F>(&self, job: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // The caller may have stopped waiting.
            let _ = answer.send(job(connection));
        });
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        Ok(answered.await.map_err(|_| StoreError::Closed)??)
    }

    /// Writes the write-ahead log back to the file.
    pub(crate) async fn checkpoint(&self) -> Result<(), StoreError> {
        self.run(|connection| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))).await
    }
}
