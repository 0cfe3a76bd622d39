//! `POST /v1/clients/{clientId}/login-link`: a link for the caller to hand to the client.
//!
//! The operation writes one item that nothing else depends on, so it is no command: the item is written while the
//! workspace is read.

use domain::id::ClientId;
use domain::id_kind::IdKind;
use domain::login_link::{LoginGrant, LoginLink, LoginToken, NoLoginLink};
use edge::{Inbound, Partner, Problem, Reply};
use futures::future::join;
use runtime::random_bytes;
use store::StoreError;
use store::client::StoredClient;

use crate::App;

/// The client in the path, of any coach. `None` if there is none.
type Found = Result<Option<StoredClient>, StoreError>;

pub(crate) async fn find(app: App, inbound: Inbound) -> Found {
    match ClientId::parse(inbound.parameter(0)) {
        Ok(id) => app.clients.get(&id).await,
        Err(_) => Ok(None),
    }
}

pub(crate) async fn mint(app: App, partner: Partner, _: Inbound, found: Found) -> Result<Reply, Problem> {
    let found = found?.filter(|found| found.client.coach_id == partner.coach);
    let found = found.ok_or(Problem::not_found(IdKind::Client))?;
    let grant = LoginGrant::new(&found.client, found.login_epoch, partner.now).map_err(refusal)?;
    let token = LoginToken::new(&random_bytes());
    let (workspace, kept) = join(app.workspaces.get(&partner.coach), app.links.put(&token, &grant)).await;
    kept?;
    let workspace =
        workspace?.ok_or_else(|| Problem::internal("mint a login link", "the key's workspace is missing"))?;
    Reply::ok(&LoginLink::new(grant.client_id, &token, &workspace.workspace.canonical_host))
}

fn refusal(why: NoLoginLink) -> Problem {
    match why {
        NoLoginLink::Inactive => Problem::ClientInactive,
        NoLoginLink::NoEmail => Problem::NoLoginEmail,
    }
}
