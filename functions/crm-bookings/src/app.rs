//! The state that the operations share.

use edge::{Gate, Runner};
use runtime::{BoxError, Environment};
use store::Db;
use store::booking::Bookings;
use store::calendar::Calendars;
use store::contact::Contacts;
use store::outbox::Outbox;
use store::vault::Vault;

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) gate: Gate,
    pub(crate) runner: Runner,
    pub(crate) calendars: Calendars,
    pub(crate) bookings: Bookings,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        let calendars = Calendars::new(env, &db)?;
        let contacts = Contacts::new(env, &db)?;
        let outbox = Outbox::new(env, &db, &vault)?;
        Ok(Self {
            gate: Gate::new(env, &db)?,
            runner: Runner::new(env, &db, &vault)?,
            bookings: Bookings::new(env, &db, &calendars, &contacts, &outbox)?,
            calendars,
        })
    }
}
