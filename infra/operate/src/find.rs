//! `find`: whose an id is.

use domain::id::ClientId;
use serde::Serialize;
use store::client::ClientState;
use store::operating::Overview;
use store::operating::find::Found;

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;
use crate::progress::Said;

#[derive(Serialize)]
struct Matches {
    matches: Vec<Found>,
}

pub(crate) async fn find(operator: &Operator, wanted: &options::Find) -> Result<Answer, Failure> {
    let overview = Overview::new(&operator.env, &operator.db)?;
    let matches = overview.find(&wanted.text, &Said::default()).await?;
    if matches.is_empty() {
        let client = ClientId::parse(&wanted.text).ok();
        let state = match &client {
            Some(client) => overview.clients.state(client).await?,
            None => ClientState::Unknown,
        };
        return Err(Failure::not_found(match state {
            ClientState::Erased => "this client is erased",
            ClientState::Known(_) | ClientState::Unknown => "nothing has this id or this end of a key",
        }));
    }
    Answer::of(&Matches { matches })
}
