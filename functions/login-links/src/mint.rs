//! `POST /v1/clients/{clientId}/login-link`: a link for the caller to hand to the client.

use axum::extract::State;
use axum::response::Response;
use domain::id::ClientId;
use domain::login_link::{LoginGrant, LoginLink, LoginToken, NoLoginLink};
use domain::rate_limit::LOGIN_LINK_REQUEST;
use edge::{Inbound, Problem, Reply};
use futures::future::join;
use runtime::random_bytes;
use store::StoreError;
use store::client::StoredClient;

use crate::App;

pub(crate) async fn mint(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |partner: edge::Partner, found: Result<Option<StoredClient>, StoreError>| {
        inbound.check_size()?;
        let found = found?.filter(|found| found.client.coach_id == partner.coach);
        let found = found.ok_or(Problem::NotFound("client"))?;
        let grant = LoginGrant::new(&found.client, found.login_epoch, partner.now).map_err(refusal)?;
        let token = LoginToken::new(&random_bytes());
        let (workspace, kept) = join(app.workspaces.get(&partner.coach), app.links.put(&token, &grant)).await;
        kept?;
        let workspace =
            workspace?.ok_or_else(|| Problem::internal("mint a login link", "the key's workspace is missing"))?;
        Reply::ok(&LoginLink::new(grant.client_id, &token, &workspace.workspace.canonical_host))
    };
    app.gate.partner_within(&inbound, LOGIN_LINK_REQUEST, find(&app, inbound.parameter(0)), work).await
}

/// The client in the path. `None` if the path holds no client id.
async fn find(app: &App, id: &str) -> Result<Option<StoredClient>, StoreError> {
    match ClientId::parse(id) {
        Ok(id) => app.clients.get(&id).await,
        Err(_) => Ok(None),
    }
}

fn refusal(why: NoLoginLink) -> Problem {
    match why {
        NoLoginLink::Inactive => Problem::ClientInactive,
        NoLoginLink::NoEmail => Problem::NoLoginEmail,
    }
}
