//! The state of the function, and the check that both operations share.

use domain::event::EventType;
use domain::event_access::EventAccess;
use edge::{Gate, Problem};
use runtime::{BoxError, Environment};
use store::Db;
use store::event_feed::EventFeed;
use store::vault::Vault;

/// A started function.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) gate: Gate,
    pub(crate) feed: EventFeed,
}

impl App {
    pub(crate) async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        Ok(Self { gate: Gate::new(env, &db)?, feed: EventFeed::new(env, &db, &vault)? })
    }
}

/// Refuses types that the key may not read.
pub(crate) fn check_allowed(access: &EventAccess, types: &[EventType]) -> Result<(), Problem> {
    match types.iter().find(|named| !access.types.contains(named)) {
        Some(forbidden) => Err(Problem::EventTypeNotAllowed(*forbidden)),
        None => Ok(()),
    }
}
