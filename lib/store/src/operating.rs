//! Reads for the operators of the service, over all coaches. Only the
//! export needs the vault: what is sealed stays so elsewhere.
//!
//! Endpoints, deliveries and contacts lie under their coach or endpoint. Without these they are found by a Scan of
//! their table, which only an operator's policy allows: module `scan`.

mod audit;
pub mod coach;
pub mod counts;
pub mod export;
pub mod find;
pub mod outbox;
mod person;
mod scan;
pub mod timeline;

use runtime::{BoxError, Environment};

use crate::client::ClientLookup;
use crate::db::{Db, Table};
use crate::key::Keys;
use crate::workspace::Workspaces;

pub use scan::Progress;

/// The tables that operators look at.
#[derive(Clone)]
pub struct Overview {
    pub keys: Keys,
    pub workspaces: Workspaces,
    pub clients: ClientLookup,
    key_items: Table,
    client_items: Table,
    crm: Table,
    deliveries: Table,
    outbox: Table,
    requests: Table,
}

impl Overview {
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self {
            keys: Keys::new(env, db)?,
            workspaces: Workspaces::new(env, db)?,
            clients: ClientLookup::new(env, db)?,
            key_items: Table::new(env, db, "KEYS_TABLE")?,
            client_items: Table::new(env, db, "CLIENTS_TABLE")?,
            crm: Table::new(env, db, "CRM_TABLE")?,
            deliveries: Table::new(env, db, "DELIVERIES_TABLE")?,
            outbox: Table::new(env, db, "OUTBOX_TABLE")?,
            requests: Table::new(env, db, "REQUESTS_TABLE")?,
        })
    }
}
