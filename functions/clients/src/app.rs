//! The state that the operations share.

use outbound::mail::Mailer;
use runtime::{BoxError, Environment};
use store::Db;
use store::client::Clients;
use store::contact::Contacts;
use store::outbox::Outbox;
use store::vault::Vault;
use store::workspace::Workspaces;

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) clients: Clients,
    pub(crate) contacts: Contacts,
    pub(crate) workspaces: Workspaces,
    pub(crate) outbox: Outbox,
    pub(crate) mailer: Mailer,
    /// Most welcome mails of a coach and UTC day.
    pub(crate) mails_per_day: u32,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        let workspaces = Workspaces::new(env, db)?;
        let contacts = Contacts::new(env, db)?;
        let outbox = Outbox::new(env, db, vault)?;
        Ok(Self {
            clients: Clients::new(env, db, &workspaces, &contacts)?,
            contacts,
            workspaces,
            outbox,
            mailer: Mailer::new(env, db, vault)?,
            mails_per_day: env.config().parse("WELCOME_MAILS_PER_DAY")?,
        })
    }
}
