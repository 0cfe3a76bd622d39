//! One SQLite connection on a thread of its own. Jobs run in the order in which they are handed in, one at a time, so a job is
//! also the unit of mutual exclusion.
//!
//! Write-ahead log and `synchronous = NORMAL`: a committed write outlives a killed process, not a power cut.

use std::path::Path;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::StoreError;

/// Jobs that wait for the thread; more than this and the caller waits to hand one in.
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
    /// Opens the file, makes what `schema` names, and starts the thread.
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

    /// Runs a job and waits for what it returns. A caller that stops waiting does not stop the job.
    pub(crate) async fn run<T, F>(&self, job: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Nobody may be waiting any more.
            let _ = answer.send(job(connection));
        });
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        Ok(answered.await.map_err(|_| StoreError::Closed)??)
    }

    /// Moves the write-ahead log into the file.
    pub(crate) async fn checkpoint(&self) -> Result<(), StoreError> {
        self.run(|connection| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))).await
    }
}
