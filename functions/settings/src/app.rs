//! The state that the operations share.

use std::fmt::Display;

use domain::audit::{AuditAction, AuditDetail};
use domain::mode::Mode;
use domain::receiver_url::Reach;
use edge::Session;
use runtime::{BoxError, Environment};
use store::delivery::Deliveries;
use store::endpoint::Endpoints;
use store::key::Keys;
use store::request_log::Requests;
use store::vault::Vault;
use store::workspace::Workspaces;
use store::{Db, Write};

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) keys: Keys,
    pub(crate) workspaces: Workspaces,
    pub(crate) endpoints: Endpoints,
    pub(crate) deliveries: Deliveries,
    pub(crate) requests: Requests,
    pub(crate) reach: Reach,
    pub(crate) mode: Mode,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self {
            keys: Keys::new(env, db)?,
            workspaces: Workspaces::new(env, db)?,
            endpoints: Endpoints::new(env, db, vault)?,
            deliveries: Deliveries::new(env, db, vault)?,
            requests: Requests::new(env, db)?,
            reach: Reach::by_setting(env.config().find(Reach::SETTING)),
            mode: env.config().parse::<Mode>(Mode::SETTING)?,
        })
    }

    /// Part of a transaction: the audit line of a change that the coach makes.
    pub(crate) fn audit(
        &self,
        session: &Session,
        action: AuditAction,
        target: impl Display,
        detail: AuditDetail,
    ) -> Write {
        self.workspaces.audit(session.context(), action, &target.to_string(), detail)
    }
}
