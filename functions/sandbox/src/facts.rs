//! `POST /v1/test/facts`: stores facts as if the application had sent them. A fact that would wait on the bus is
//! refused here.

use domain::fact::{Fact, FactBody, known_fields};
use domain::id::new_uuid;
use domain::sandbox::{FACTS_PER_DAY, FactBatch, FactResult, FactResults, SandboxFact, StoreResult};
use edge::{Inbound, KeyHolder, Problem, Reply, Steps};
use facts::{Envelope, Next, Outcome, client_of};
use runtime::{BoxError, random_bytes};
use serde_json::json;
use sha2::{Digest, Sha256};
use store::client::ClientState;
use store::sandbox_quota::SandboxCount;

use crate::App;

/// Parts of a fact that one request stores. The queue brings the others.
const MAX_PARTS: usize = 10;

pub(crate) struct Store;

impl Steps for Store {
    type App = App;
    type Caller = KeyHolder;

    async fn run(app: &App, caller: &KeyHolder, inbound: &Inbound) -> Result<Reply, Problem> {
        let batch = FactBatch::parse(inbound.json()?)?;
        app.count(caller, SandboxCount::Facts, batch.facts.len(), FACTS_PER_DAY).await?;
        let mut data = Vec::new();
        for (index, fact) in batch.facts.into_iter().enumerate() {
            let fact = fact.of_coach(&caller.key.coach_id, missing_id(caller, inbound, index), caller.now);
            data.push(result(app, caller, fact).await?);
        }
        Reply::ok(&FactResults { data })
    }
}

/// The id of a fact that was sent without one: under an idempotency key the same for each repeat.
fn missing_id(caller: &KeyHolder, inbound: &Inbound, index: usize) -> String {
    match inbound.header("idempotency-key") {
        Some(key) => {
            let body = Sha256::digest(inbound.payload().to_string());
            let digest =
                Sha256::new().chain_update(key).chain_update(body).chain_update(index.to_be_bytes()).finalize();
            format!("fact_{}", &hex::encode(digest)[..32])
        }
        None => format!("fact_{}", new_uuid(caller.now.ms(), random_bytes()).simple()),
    }
}

async fn result(app: &App, caller: &KeyHolder, given: SandboxFact) -> Result<FactResult, Problem> {
    let SandboxFact { id, detail_type, detail, fact } = given;
    let outcome = match fact {
        Ok(fact) => {
            let mut detail = known_fields(&detail_type, &detail);
            detail["id"] = json!(fact.id);
            store(app, caller, &fact, Envelope { detail_type, detail, ..Envelope::default() }).await?
        }
        Err(reason) => Err(reason),
    };
    Ok(match outcome {
        Ok(result) => FactResult { id, result, reason: None },
        Err(reason) => FactResult { id, result: StoreResult::Refused, reason: Some(reason) },
    })
}

/// Stores a fact. `Err`: the reason of its refusal.
async fn store(
    app: &App,
    caller: &KeyHolder,
    fact: &Fact,
    mut envelope: Envelope,
) -> Result<Result<StoreResult, String>, Problem> {
    if let Some(reason) = foreign(app, caller, fact).await? {
        return Ok(Err(reason));
    }
    let queued = |error: BoxError| Problem::internal("enqueue the rest of a fact", error);
    for _ in 0..MAX_PARTS {
        match app.facts.store(fact, envelope.progress(), caller.now).await? {
            Outcome::Stored => return Ok(Ok(StoreResult::Stored)),
            Outcome::Unchanged => return Ok(Ok(StoreResult::Unchanged)),
            Outcome::Continues(Next::Rest(after)) => envelope.after = after,
            Outcome::Continues(Next::Pass) => {
                app.feed.send_next_pass(&envelope, caller.now).await.map_err(queued)?;
                return Ok(Ok(StoreResult::Stored));
            }
            Outcome::Unknown(field) => return Ok(Err(unknown(field, &envelope))),
            Outcome::Waits(reason) | Outcome::Refused(reason) => return Ok(Err(reason.to_owned())),
        }
    }
    app.feed.send_rest(&envelope, envelope.after.clone(), caller.now).await.map_err(queued)?;
    Ok(Ok(StoreResult::Stored))
}

/// The reason to refuse a fact about a client whom the workspace does not have.
async fn foreign(app: &App, caller: &KeyHolder, fact: &Fact) -> Result<Option<String>, Problem> {
    let Some(client) = client_of(&fact.body) else { return Ok(None) };
    Ok(match app.clients.state(client).await? {
        ClientState::Known(found) if found.client.coach_id != caller.key.coach_id => {
            Some(format!("client_id {client} is not of this workspace; ids are those of the whole sandbox"))
        }
        // A tombstone would keep the id from every other workspace.
        ClientState::Unknown if matches!(fact.body, FactBody::OfClient(..)) => {
            Some(format!("client_id {client} has not been seen"))
        }
        ClientState::Known(_) | ClientState::Unknown | ClientState::Erased => None,
    })
}

fn unknown(field: &str, envelope: &Envelope) -> String {
    let id = envelope.detail.get(field).and_then(|id| id.as_str()).unwrap_or_default();
    format!("{field} {id} has not been seen")
}
