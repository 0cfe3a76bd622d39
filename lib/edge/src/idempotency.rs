//! Runs work under an idempotency key: once, however often the request comes.

use std::borrow::Cow;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use domain::api_key::Scope;
use domain::id::{CoachId, parse_uuid};
use domain::idempotency::{AnswerKind, Fingerprint, IdempotencyKey, Mismatch, Payload};
use domain::time::Timestamp;
use futures::FutureExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::StoreError;
use store::claim::{Claim, ClaimRequest, ClaimState, Claims};
use tokio::time::{Instant, timeout_at};

use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::routes::{Routed, find};

/// Time for the work. After it the work is given up, which leaves time to end its claim before the request is answered
/// for it.
const WORK_WITHIN: Duration = Duration::from_secs(19);

/// A request whose key is claimed, and the stage that an earlier attempt came to.
#[derive(Debug)]
pub struct Ticket<S> {
    pub claim: Claim,
    pub key: IdempotencyKey,
    pub stage: Option<S>,
}

/// The idempotency of a request: its key, and the payload that a repeat has to have.
pub struct Repeat<'a> {
    pub key: IdempotencyKey,
    pub mismatch: Mismatch,
    /// The payload of the fingerprint.
    pub payload: Cow<'a, Value>,
}

/// The end of work under a claim. A refusal of the work is a [`Problem`], which is recorded.
pub enum Outcome {
    /// The work was done, and recorded this answer itself.
    Answered(Reply),
    /// A refusal that is not recorded: once its cause is mended, any request may come under the key.
    Withdrawn(Problem),
    /// Another request has taken over the claim. Its answer is the one that counts.
    ClaimLost,
}

/// The key that the request names, or else the one that its body's `email` stands for; `None` when it has neither.
/// Checks the body's size and type between the two.
pub fn key_of(inbound: &Inbound, coach: &CoachId, scope: Scope) -> Result<Option<IdempotencyKey>, Problem> {
    let named = named_key(inbound, coach, scope)?;
    check_envelope(inbound)?;
    Ok(named.or_else(|| {
        let email = inbound.json_if_any()?.get("email")?.as_str()?;
        Some(IdempotencyKey::derived(coach, scope, email))
    }))
}

/// The key that a request names which has to name one. Checks the body's size and type after it.
pub fn required_key_of(inbound: &Inbound, coach: &CoachId, scope: Scope) -> Result<IdempotencyKey, Problem> {
    let named = named_key(inbound, coach, scope)?.ok_or(Problem::IdempotencyKeyRequired)?;
    check_envelope(inbound)?;
    Ok(named)
}

fn named_key(inbound: &Inbound, coach: &CoachId, scope: Scope) -> Result<Option<IdempotencyKey>, Problem> {
    let named = inbound.header("idempotency-key").map(|header| IdempotencyKey::explicit(coach, scope, header));
    named.transpose().map_err(|_| Problem::IdempotencyKeyInvalid)
}

/// Checks size and type of the body before its key is claimed: repeats that mend them have the same payload, and would
/// get the recorded refusal.
fn check_envelope(inbound: &Inbound) -> Result<(), Problem> {
    inbound.check_size()?;
    inbound.check_media_type()
}

/// Claims the key and runs the work, or answers for the work that has run or is running. `read` runs beside the
/// claiming; the work is given what it read.
///
/// A refusal (4xx) is recorded as any answer is. A fault (5xx) ends the claim, so that the next request runs.
pub async fn once<S: DeserializeOwned, T>(
    claims: &Claims,
    inbound: &Inbound,
    Repeat { key, mismatch, payload }: Repeat<'_>,
    now: Timestamp,
    read: impl Future<Output = T>,
    work: impl AsyncFnOnce(Ticket<S>, T) -> Result<Outcome, Problem>,
) -> Result<Reply, Problem> {
    let until = Instant::now() + WORK_WITHIN;
    let asked = ClaimRequest { fingerprint: fingerprint(inbound, &payload), mismatch };
    let (begun, read) = futures::future::join(claims.begin(&key, asked, now), read).await;
    let (claim, stage, same_payload) = match begun? {
        ClaimState::Fresh(claim) => (claim, None, true),
        ClaimState::Staged { claim, stage, same_payload } => (claim, Some(stage), same_payload),
        ClaimState::InProgress { same_payload: false } | ClaimState::Answered { same_payload: false, .. }
            if mismatch == Mismatch::Refused =>
        {
            return Err(Problem::IdempotencyPayloadMismatch);
        }
        ClaimState::InProgress { .. } => return Err(Problem::IdempotencyInProgress),
        ClaimState::Answered { answer, same_payload } => {
            let reply = Reply::recorded(answer)?.header("idempotent-replay", true);
            return Ok(marked(reply, same_payload));
        }
    };
    let ticket = Ticket { claim: claim.clone(), key: key.clone(), stage };
    let worked = match timeout_at(until, AssertUnwindSafe(work(ticket, read)).catch_unwind()).await {
        Ok(worked) => worked.unwrap_or_else(|_| Err(Problem::internal("do the work", "it panicked"))),
        Err(elapsed) => Err(Problem::late(&inbound.method, &inbound.path, elapsed)),
    };
    match worked {
        Ok(Outcome::Answered(reply)) => Ok(marked(reply, same_payload)),
        Ok(Outcome::ClaimLost) => Err(Problem::IdempotencyInProgress),
        Ok(Outcome::Withdrawn(problem)) => {
            left_to_lapse(claims.withdraw(&claim, now).await);
            Err(problem)
        }
        Err(problem) => refuse(claims, &claim, &key, Reply::problem(&problem, inbound), now).await,
    }
}

/// Records a refusal, or ends the claim of a fault.
async fn refuse(
    claims: &Claims,
    claim: &Claim,
    key: &IdempotencyKey,
    reply: Reply,
    now: Timestamp,
) -> Result<Reply, Problem> {
    if reply.status.is_server_error() {
        left_to_lapse(claims.release(claim).await);
        return Ok(reply);
    }
    match claims.finish(claim, &reply.to_answer(), None, key.retention(AnswerKind::Refusal), now).await {
        Ok(true) => Ok(reply),
        Ok(false) => Err(Problem::IdempotencyInProgress),
        Err(error) => {
            left_to_lapse(claims.release(claim).await);
            Err(error.into())
        }
    }
}

/// The fingerprint of a request with this payload.
fn fingerprint(inbound: &Inbound, payload: &Value) -> Fingerprint {
    let (path, sent) = (parsed_path(inbound), inbound.payload_with_mark());
    let as_sent = Payload { path: &inbound.path, body: &sent };
    Fingerprint::new(inbound.method.as_str(), Payload { path: &path, body: payload }, as_sent)
}

/// The request's path with its UUIDs as they are parsed.
fn parsed_path(inbound: &Inbound) -> String {
    let Routed::Known(route) = find(&inbound.method, &inbound.path) else { return inbound.path.clone() };
    let mut parameters = inbound.parameters.iter();
    let segments = route.path.split('/').zip(inbound.path.split('/')).map(|(wanted, given)| {
        let parameter = if wanted.starts_with('{') { parameters.next() } else { None };
        let id = parameter.and_then(|text| parse_uuid(text).ok());
        id.map_or_else(|| given.to_owned(), |id| id.to_string())
    });
    segments.collect::<Vec<_>>().join("/")
}

/// An answer to what an earlier request asked for says so, where this one asks for something else.
fn marked(reply: Reply, same_payload: bool) -> Reply {
    if same_payload { reply } else { reply.header("idempotency-payload-mismatch", true) }
}

/// Logs a release that failed: the lease lapses by itself. The caller gets the fault all the same.
fn left_to_lapse(released: Result<(), StoreError>) {
    if let Err(error) = released {
        tracing::warn!(%error, "a claim is left to lapse");
    }
}
