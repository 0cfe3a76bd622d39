//! `GET /v1/clients/{clientId}`: the details of one client.

use axum::extract::State;
use axum::response::Response;
use domain::id::ClientId;
use edge::{Inbound, Problem, Reply};
use store::StoreError;
use store::client::StoredClient;

use crate::App;

pub(crate) const CLIENT: &str = "client";

pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |partner: edge::Partner, found: Result<Option<StoredClient>, StoreError>| {
        let found = found?.filter(|found| found.client.coach_id == partner.coach);
        let found = found.ok_or(Problem::NotFound(CLIENT))?;
        Reply::ok(&found.client.to_detail())
    };
    app.gate.partner(&inbound, find(&app, inbound.parameter(0)), work).await
}

/// The client in the path. `None` if the path holds no client id.
pub(crate) async fn find(app: &App, id: &str) -> Result<Option<StoredClient>, StoreError> {
    match ClientId::parse(id) {
        Ok(id) => app.clients.get(&id).await,
        Err(_) => Ok(None),
    }
}
