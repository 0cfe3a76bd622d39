//! The state that the operations share.

use std::fmt::Display;

use domain::audit::{AuditAction, AuditDetail};
use domain::receiver_url::Reach;
use edge::Runner;
use runtime::{BoxError, Environment};
use store::delivery::Deliveries;
use store::endpoint::Endpoints;
use store::key::Keys;
use store::vault::Vault;
use store::workspace::Workspaces;
use store::{Db, Write};

use crate::session::{Session, Sessions};

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) sessions: Sessions,
    pub(crate) keys: Keys,
    pub(crate) workspaces: Workspaces,
    pub(crate) endpoints: Endpoints,
    pub(crate) deliveries: Deliveries,
    pub(crate) reach: Reach,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        let workspaces = Workspaces::new(env, &db)?;
        Ok(Self {
            sessions: Sessions::new(env, &workspaces, Runner::new(env, &db, &vault)?)?,
            keys: Keys::new(env, &db)?,
            endpoints: Endpoints::new(env, &db, &vault)?,
            deliveries: Deliveries::new(env, &db, &vault)?,
            workspaces,
            reach: Reach::by_setting(env.config().find(Reach::SETTING)),
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
