//! The state that the operations share.

use edge::{Gate, Runner};
use runtime::{BoxError, Environment};
use store::Db;
use store::contact::Contacts;
use store::opportunity::Opportunities;
use store::pipeline::Pipelines;
use store::vault::Vault;

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) gate: Gate,
    pub(crate) runner: Runner,
    pub(crate) contacts: Contacts,
    pub(crate) opportunities: Opportunities,
    pub(crate) pipelines: Pipelines,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        let contacts = Contacts::new(env, &db)?;
        let pipelines = Pipelines::new(env, &db)?;
        Ok(Self {
            gate: Gate::new(env, &db)?,
            runner: Runner::new(env, &db, &vault)?,
            opportunities: Opportunities::new(env, &db, &contacts, &pipelines)?,
            contacts,
            pipelines,
        })
    }
}
