//! The state that the operations share.

use runtime::{BoxError, Environment};
use store::Db;
use store::booking::Bookings;
use store::calendar::Calendars;
use store::contact::Contacts;
use store::outbox::Outbox;
use store::vault::Vault;

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) calendars: Calendars,
    pub(crate) bookings: Bookings,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        let calendars = Calendars::new(env, db)?;
        let contacts = Contacts::new(env, db)?;
        let outbox = Outbox::new(env, db, vault)?;
        Ok(Self { bookings: Bookings::new(env, db, &calendars, &contacts, &outbox)?, calendars })
    }
}
