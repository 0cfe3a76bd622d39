//! The state that the operations share.

use std::sync::Arc;

use domain::client::Client;
use domain::id::ClientId;
use domain::id_kind::IdKind;
use edge::{Partner, Problem};
use runtime::{BoxError, Clock, Environment};
use store::client::{ClientLookup, StoredClient};
use store::record::RecordReader;
use store::{Db, StoreError};

/// A client and some of its records, as read before the caller is known.
pub(crate) struct ClientRead<T> {
    client: Result<Option<StoredClient>, StoreError>,
    records: Result<T, StoreError>,
}

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) clients: ClientLookup,
    pub(crate) records: RecordReader,
    pub(crate) clock: Arc<dyn Clock>,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { clients: ClientLookup::new(env, db)?, records: RecordReader::new(env, db)?, clock: env.clock() })
    }

    /// Reads the client in the path and, concurrently, its records with `read`. `None` if the path holds no client id.
    pub(crate) async fn find<T>(
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
pub(crate) fn owned<T>(partner: &Partner, found: Option<ClientRead<T>>) -> Result<(Client, T), Problem> {
    let found = found.ok_or(Problem::not_found(IdKind::Client))?;
    let client = found.client?.map(|stored| stored.client).filter(|client| client.coach_id == partner.coach);
    Ok((client.ok_or(Problem::not_found(IdKind::Client))?, found.records?))
}
