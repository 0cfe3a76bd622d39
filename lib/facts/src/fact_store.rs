//! The tables that facts are stored in.

use domain::id::FactId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use store::booking::Bookings;
use store::calendar::Calendars;
use store::claim::ClaimEraser;
use store::client::Clients;
use store::contact::Contacts;
use store::delivery::Deliveries;
use store::event_feed::EventFeed;
use store::fact::SeenFacts;
use store::key::Keys;
use store::opportunity::Opportunities;
use store::outbox::Outbox;
use store::pipeline::Pipelines;
use store::record::Records;
use store::unit::Units;
use store::vault::Vault;
use store::watch::Watches;
use store::workflow::Workflows;
use store::workspace::Workspaces;
use store::{Db, StoreError};

/// Stores facts.
#[derive(Clone)]
pub struct FactStore {
    pub(crate) keys: Keys,
    pub(crate) workspaces: Workspaces,
    pub(crate) clients: Clients,
    pub(crate) contacts: Contacts,
    pub(crate) calendars: Calendars,
    pub(crate) bookings: Bookings,
    pub(crate) opportunities: Opportunities,
    pub(crate) pipelines: Pipelines,
    pub(crate) workflows: Workflows,
    pub(crate) records: Records,
    pub(crate) watches: Watches,
    pub(crate) units: Units,
    pub(crate) facts: SeenFacts,
    pub(crate) claims: ClaimEraser,
    pub(crate) deliveries: Deliveries,
    pub(crate) feed: EventFeed,
}

impl FactStore {
    /// Connects to every table of facts.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        let workspaces = Workspaces::new(env, db)?;
        let contacts = Contacts::new(env, db)?;
        let pipelines = Pipelines::new(env, db)?;
        let outbox = Outbox::new(env, db, vault)?;
        let clients = Clients::new(env, db, &workspaces, &contacts)?;
        let calendars = Calendars::new(env, db)?;
        Ok(Self {
            keys: Keys::new(env, db)?,
            bookings: Bookings::new(env, db, &calendars, &contacts, &outbox)?,
            calendars,
            opportunities: Opportunities::new(env, db, &contacts)?,
            pipelines,
            workflows: Workflows::new(env, db)?,
            records: Records::new(env, db, vault, &clients)?,
            watches: Watches::new(env, db)?,
            units: Units::new(env, db, vault)?,
            facts: SeenFacts::new(env, db)?,
            claims: ClaimEraser::new(env, db)?,
            feed: EventFeed::new(env, db, vault)?,
            deliveries: Deliveries::new(env, db, vault)?,
            clients,
            workspaces,
            contacts,
        })
    }

    /// Begins a round of a fact that has waited since then. Returns true if no other copy of the message has begun the
    /// round.
    pub async fn begin_round(
        &self,
        fact: &FactId,
        since: Timestamp,
        round: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.facts.begin_round(fact, since, round, now).await
    }
}
