//! The state that the operations share.

use runtime::{BoxError, Environment};
use store::Db;
use store::contact::Contacts;
use store::opportunity::Opportunities;
use store::pipeline::Pipelines;

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) contacts: Contacts,
    pub(crate) opportunities: Opportunities,
    pub(crate) pipelines: Pipelines,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        let contacts = Contacts::new(env, db)?;
        let pipelines = Pipelines::new(env, db)?;
        Ok(Self { opportunities: Opportunities::new(env, db, &contacts)?, contacts, pipelines })
    }
}
