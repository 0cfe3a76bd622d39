//! The state that the operations share.

use runtime::{BoxError, Environment};
use store::Db;
use store::contact::Contacts;

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) contacts: Contacts,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { contacts: Contacts::new(env, db)? })
    }
}
