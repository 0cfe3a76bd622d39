//! The state of the function.

use std::sync::Arc;

use facts::FactStore;
use runtime::{BoxError, Clock, Environment, Observer};
use store::Db;
use store::vault::Vault;

use crate::queues::Queues;

/// A started ingest.
pub struct App {
    pub(crate) facts: FactStore,
    pub(crate) queues: Queues,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Observer,
}

impl App {
    /// Connects to everything that the ingest uses.
    pub async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        Ok(Self {
            facts: FactStore::new(env, &db, &vault)?,
            queues: Queues::new(env)?,
            clock: env.clock(),
            observer: env.observer(),
        })
    }
}
