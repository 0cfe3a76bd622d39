//! `client ID`: whose client it is, and what is stored about the client by time.

use domain::client::Client;
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use serde::Serialize;
use store::client::{ClientLookup, ClientState, StoredClient};
use store::operating::timeline::{TimelineLine, Timelines};

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;

#[derive(Serialize)]
struct ShownClient {
    client_id: ClientId,
    coach_id: CoachId,
    is_active: bool,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Vec<TimelineLine>>,
}

/// Shows a client.
pub(crate) async fn client(operator: &Operator, command: &options::Client) -> Result<Answer, Failure> {
    let id = command.id.as_ref().ok_or_else(|| Failure::usage("which client? give its id"))?;
    let found = known(operator, id).await?;
    let timeline = match command.timeline {
        true => Some(Timelines::new(&operator.env, &operator.db)?.read(&found).await?),
        false => None,
    };
    let Client { id, coach_id, is_active, created_at, .. } = found.client;
    Answer::of(&ShownClient { client_id: id, coach_id, is_active, created_at, timeline })
}

/// Reads a client that is stored and not erased.
pub(crate) async fn known(operator: &Operator, id: &ClientId) -> Result<StoredClient, Failure> {
    match ClientLookup::new(&operator.env, &operator.db)?.state(id).await? {
        ClientState::Known(client) => Ok(*client),
        ClientState::Erased => Err(Failure::not_found(format!("client {id} is erased"))),
        ClientState::Unknown => Err(Failure::not_found(format!("no client {id}"))),
    }
}
