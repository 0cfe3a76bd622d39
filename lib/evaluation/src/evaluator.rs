//! The tables that evaluations read and write.

use std::sync::Arc;

use domain::id::CoachId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use store::client::ClientLookup;
use store::record::RecordReader;
use store::unit::Units;
use store::vault::Vault;
use store::watch::{CoachWatch, Watches};
use store::workspace::Workspaces;
use store::{Db, StoreError};
use tokio::sync::Semaphore;

use crate::rulebook::Rulebook;

/// Clients that are evaluated at once.
pub const CONCURRENT: usize = 32;

/// Evaluates clients.
#[derive(Clone)]
pub struct Evaluator {
    pub(crate) watches: Watches,
    pub(crate) workspaces: Workspaces,
    pub(crate) clients: ClientLookup,
    pub(crate) records: RecordReader,
    pub(crate) units: Units,
    /// One permit for each client that is being evaluated.
    pub(crate) evaluating: Arc<Semaphore>,
}

impl Evaluator {
    /// Connects to everything that an evaluation reads and writes.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self {
            watches: Watches::new(env, db)?,
            workspaces: Workspaces::new(env, db)?,
            clients: ClientLookup::new(env, db)?,
            records: RecordReader::new(env, db)?,
            units: Units::new(env, db, vault)?,
            evaluating: Arc::new(Semaphore::new(CONCURRENT)),
        })
    }

    /// Reads the rules of a coach for evaluations at `now`.
    pub async fn rulebook(&self, coach: &CoachId, now: Timestamp) -> Result<Rulebook, StoreError> {
        self.rulebook_of(&self.watches.coach(coach).await?, now).await
    }

    /// Reads the rules of a coach whose watch is read.
    pub async fn rulebook_of(&self, watch: &CoachWatch, now: Timestamp) -> Result<Rulebook, StoreError> {
        Rulebook::read(&self.workspaces, watch, now).await
    }
}
