//! Runs work under an idempotency key: once, however often the request comes.

use std::borrow::Cow;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use domain::id::{CoachId, parse_uuid};
use domain::idempotency::{AnswerKind, Api, Fingerprint, IdempotencyKey, Mismatch};
use domain::time::Timestamp;
use futures::FutureExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::StoreError;
use store::claim::{Claim, ClaimRequest, ClaimState, Claims};
use tokio::time::timeout_at;

use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::routes::{Routed, find};

/// Time from the request's arrival to the end of the work. The time that is left afterwards suffices to release the
/// claim before the request is answered without the work.
const WORK_WITHIN: Duration = Duration::from_secs(19);

/// A request whose key is claimed, with the stage that an earlier request reached.
#[derive(Debug)]
pub struct ClaimedRequest<S> {
    pub claim: Claim,
    pub key: IdempotencyKey,
    pub stage: Option<S>,
}

/// The idempotency of a request: its key, and the payload that a repeat must have.
pub struct IdempotentRequest<'a> {
    pub key: IdempotencyKey,
    pub mismatch: Mismatch,
    /// The payload of the fingerprint.
    pub payload: Cow<'a, Value>,
}

/// The result of work under a claim. A refusal is a [`Problem`], which is recorded.
pub enum Outcome {
    /// The work is done and has recorded this answer.
    Answered(Reply),
    /// A refusal that is not recorded. Once its cause is fixed, any request may use the key.
    Withdrawn(Problem),
    /// Another request has taken over the claim, and its answer counts.
    ClaimLost,
}

/// The key in the request's header, or else the key derived from the body's `email`. `None` without either. The body's
/// size and type are checked in between, in the order of checks.
pub fn key_of(inbound: &Inbound, coach: &CoachId, api: Api) -> Result<Option<IdempotencyKey>, Problem> {
    let named = named_key(inbound, coach, api)?;
    check_envelope(inbound)?;
    Ok(named.or_else(|| {
        let email = inbound.json_if_any()?.get("email")?.as_str()?;
        Some(IdempotencyKey::derived(coach, api, email))
    }))
}

/// The required key in the request's header. The body's size and type are checked afterwards.
pub fn required_key_of(inbound: &Inbound, coach: &CoachId, api: Api) -> Result<IdempotencyKey, Problem> {
    let named = named_key(inbound, coach, api)?.ok_or(Problem::IdempotencyKeyRequired)?;
    check_envelope(inbound)?;
    Ok(named)
}

/// The key in the request's header, if there is one. The body's size and type are checked afterwards.
pub fn optional_key_of(inbound: &Inbound, coach: &CoachId, api: Api) -> Result<Option<IdempotencyKey>, Problem> {
    let named = named_key(inbound, coach, api)?;
    if named.is_some() {
        check_envelope(inbound)?;
    }
    Ok(named)
}

fn named_key(inbound: &Inbound, coach: &CoachId, api: Api) -> Result<Option<IdempotencyKey>, Problem> {
    let named = inbound.header("idempotency-key").map(|header| IdempotencyKey::explicit(coach, api, header));
    named.transpose().map_err(|_| Problem::IdempotencyKeyInvalid)
}

/// Checks the body's size, coding and type before the key is claimed. A repeat that fixes them has the same payload,
/// and would get the recorded refusal.
fn check_envelope(inbound: &Inbound) -> Result<(), Problem> {
    inbound.check_size()?;
    inbound.check_media_type()
}

/// Claims the key and runs the work, or answers for an earlier request. `read` runs while the key is claimed, and its
/// result goes to the work.
///
/// A refusal (4xx) is recorded like any answer. A fault (5xx) releases the claim, so the next request runs.
pub async fn once<S: DeserializeOwned, T>(
    claims: &Claims,
    inbound: &Inbound,
    IdempotentRequest { key, mismatch, payload }: IdempotentRequest<'_>,
    now: Timestamp,
    read: impl Future<Output = T>,
    work: impl AsyncFnOnce(ClaimedRequest<S>, T) -> Result<Outcome, Problem>,
) -> Result<Reply, Problem> {
    let until = inbound.received_at + WORK_WITHIN;
    let fingerprint = Fingerprint::new(inbound.method.as_str(), &parsed_path(inbound), &payload);
    let asked = ClaimRequest { fingerprint, mismatch };
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
            return Ok(mark_mismatch(reply, same_payload));
        }
    };
    let claimed = ClaimedRequest { claim: claim.clone(), key: key.clone(), stage };
    let worked = match timeout_at(until, AssertUnwindSafe(work(claimed, read)).catch_unwind()).await {
        Ok(worked) => worked.unwrap_or_else(|_| Err(Problem::internal("do the work", "it panicked"))),
        Err(elapsed) => Err(Problem::timed_out(&inbound.method, &inbound.path, elapsed)),
    };
    match worked {
        Ok(Outcome::Answered(reply)) => Ok(mark_mismatch(reply, same_payload)),
        Ok(Outcome::ClaimLost) => Err(Problem::IdempotencyInProgress),
        Ok(Outcome::Withdrawn(problem)) => {
            log_failed_release(claims.withdraw(&claim, now).await);
            Err(problem)
        }
        Err(problem) => refuse(claims, &claim, &key, Reply::problem(&problem, inbound), now).await,
    }
}

/// Records a refusal (4xx), or releases the claim after a fault (5xx).
async fn refuse(
    claims: &Claims,
    claim: &Claim,
    key: &IdempotencyKey,
    reply: Reply,
    now: Timestamp,
) -> Result<Reply, Problem> {
    if reply.status.is_server_error() {
        log_failed_release(claims.release(claim).await);
        return Ok(reply);
    }
    match claims.finish(claim, &reply.to_answer(), None, key.retention(AnswerKind::Refusal), now).await {
        Ok(true) => Ok(reply),
        Ok(false) => Err(Problem::IdempotencyInProgress),
        Err(error) => {
            log_failed_release(claims.release(claim).await);
            Err(error.into())
        }
    }
}

/// The request's path with its UUIDs in canonical form.
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

/// Marks an answer that belongs to an earlier request with another payload.
fn mark_mismatch(reply: Reply, same_payload: bool) -> Reply {
    if same_payload { reply } else { reply.header("idempotency-payload-mismatch", true) }
}

/// Logs a failed release. The claim's lease expires by itself, and the caller gets the fault anyway.
fn log_failed_release(released: Result<(), StoreError>) {
    if let Err(error) = released {
        tracing::warn!(%error, "could not release an idempotency claim; its lease expires");
    }
}
