//! `/v1/clients/{clientId}/...`: a client's compliance, check-ins and daily logs, as dates and figures only. One file
//! per operation.
//!
//! The client and its records are read while the key is checked, so a request waits for one round trip. The records are
//! used only if the key's coach owns the client.

mod check_ins;
mod compliance;
mod daily_logs;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use domain::client::Client;
use domain::id::ClientId;
use edge::{Gate, Partner, Problem};
use runtime::{BoxError, Clock, Environment};
use store::client::{ClientLookup, StoredClient};
use store::record::RecordReader;
use store::{Db, StoreError};

#[derive(Clone)]
struct App {
    gate: Gate,
    clients: ClientLookup,
    records: RecordReader,
    clock: Arc<dyn Clock>,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let app = App {
        gate: Gate::new(env, &db)?,
        clients: ClientLookup::new(env, &db)?,
        records: RecordReader::new(env, &db)?,
        clock: env.clock(),
    };
    let router = Router::new()
        .route("/v1/clients/{clientId}/compliance", get(compliance::compliance))
        .route("/v1/clients/{clientId}/check-ins", get(check_ins::check_ins))
        .route("/v1/clients/{clientId}/daily-logs", get(daily_logs::daily_logs));
    Ok(router.with_state(app))
}

/// A client and some of its records, as read before the caller is known.
struct ClientRead<T> {
    client: Result<Option<StoredClient>, StoreError>,
    records: Result<T, StoreError>,
}

impl App {
    /// Reads the client in the path and, concurrently, its records with `read`. `None` if the path holds no client id.
    async fn find<T>(
        &self,
        id: &str,
        read: impl AsyncFnOnce(ClientId) -> Result<T, StoreError>,
    ) -> Option<ClientRead<T>> {
        let id = ClientId::parse(id).ok()?;
        let (client, records) = futures::future::join(self.clients.get(&id), read(id.clone())).await;
        Some(ClientRead { client, records })
    }
}

/// The client and its records, if the caller's coach owns the client.
fn owned<T>(partner: &Partner, found: Option<ClientRead<T>>) -> Result<(Client, T), Problem> {
    const CLIENT: &str = "client";
    let found = found.ok_or(Problem::NotFound(CLIENT))?;
    let client = found.client?.map(|stored| stored.client).filter(|client| client.coach_id == partner.coach);
    Ok((client.ok_or(Problem::NotFound(CLIENT))?, found.records?))
}
