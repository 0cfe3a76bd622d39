//! The state that the operations share.

use std::sync::Arc;

use domain::assertion::AssertionSigner;
use domain::mode::Mode;
use runtime::{BoxError, Clock, Environment};
use store::Db;
use store::client::ClientLookup;
use store::login_link::LoginLinks;
use store::vault::assertion_signer;
use store::workspace::Workspaces;

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) clients: ClientLookup,
    pub(crate) workspaces: Workspaces,
    pub(crate) links: LoginLinks,
    pub(crate) signer: Arc<AssertionSigner>,
    pub(crate) issuer: Arc<str>,
    /// True if the deployment makes no assertions: a used link shows whom it would have signed in.
    pub(crate) is_sandbox: bool,
    pub(crate) clock: Arc<dyn Clock>,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) async fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        let clients = ClientLookup::new(env, db)?;
        Ok(Self {
            workspaces: Workspaces::new(env, db)?,
            links: LoginLinks::new(env, db, &clients)?,
            clients,
            signer: assertion_signer(env).await?,
            issuer: env.config().get("ASSERTION_ISSUER")?.into(),
            is_sandbox: env.config().parse::<Mode>(Mode::SETTING)? == Mode::Test,
            clock: env.clock(),
        })
    }
}
