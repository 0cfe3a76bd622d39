//! `PATCH /v1/clients/{clientId}`: activates or deactivates a client. The client keeps its seat.

use axum::extract::State;
use axum::response::Response;
use domain::client_draft::parse_activation;
use edge::{Inbound, Problem, Reply};
use store::StoreError;
use store::client::StoredClient;

use crate::App;
use crate::read::{CLIENT, find};

pub(crate) async fn update(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |partner: edge::Partner, found: Result<Option<StoredClient>, StoreError>| {
        inbound.check_size()?;
        let is_active = parse_activation(inbound.json()?)?;
        let changed = app.clients.set_active(&partner.coach, found?, is_active, partner.now).await?;
        Reply::ok(&changed.ok_or(Problem::NotFound(CLIENT))?.to_profile())
    };
    app.gate.partner(&inbound, find(&app, inbound.parameter(0)), work).await
}
