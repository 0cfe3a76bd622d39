//! `GET /v1/clients/{clientId}`: the details of one client.

use domain::id::ClientId;
use domain::id_kind::IdKind;
use edge::{Inbound, Partner, Problem, Reply};
use store::StoreError;
use store::client::StoredClient;

use crate::App;

/// The client in the path, of any coach. `None` if there is none.
pub(crate) type Found = Result<Option<StoredClient>, StoreError>;

pub(crate) async fn find(app: App, inbound: Inbound) -> Found {
    match ClientId::parse(inbound.parameter(0)) {
        Ok(id) => app.clients.get(&id).await,
        Err(_) => Ok(None),
    }
}

pub(crate) async fn read(_: App, partner: Partner, _: Inbound, found: Found) -> Result<Reply, Problem> {
    let found = found?.filter(|found| found.client.coach_id == partner.coach);
    let found = found.ok_or(Problem::not_found(IdKind::Client))?;
    Reply::ok(&found.client.to_detail())
}
