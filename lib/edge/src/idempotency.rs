//! Runs work under an idempotency key: once, however often the request comes.

use std::borrow::Cow;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use domain::id::{CoachId, parse_uuid};
use domain::idempotency::{Api, Fingerprint, IdempotencyKey, Mismatch, ReplyKind};
use domain::time::Timestamp;
use futures::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::StoreError;
use store::claim::{Claim, ClaimRequest, ClaimState, Claims, Recorded};
use tokio::time::timeout_at;

use crate::caller::Writer;
use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::routes::{Idempotency, Route};

/// Time from the request's arrival to the end of the work. The time that is left afterwards suffices to release the
/// claim before the request is answered without the work.
const WORK_WITHIN: Duration = Duration::from_secs(19);

/// A request whose key is claimed.
pub struct Claimed {
    pub claim: Claim,
    pub key: IdempotencyKey,
    /// The stage that an earlier request reached.
    pub stage: Option<Stage>,
}

/// A stage of work, which its claim records. A takeover continues from it.
#[derive(Clone)]
pub struct Stage(pub(crate) Value);

impl Stage {
    pub fn of(stage: &impl Serialize) -> Result<Self, Problem> {
        serde_json::to_value(stage).map(Self).map_err(|error| Problem::internal("record a stage", error))
    }

    pub fn parse<S: DeserializeOwned>(self) -> Result<S, Problem> {
        serde_json::from_value(self.0).map_err(|error| Problem::internal("read a stage", error))
    }
}

/// The idempotency of a request: its key, and the payload that a repeat must have.
pub struct IdempotentRequest<'a> {
    pub key: IdempotencyKey,
    pub mismatch: Mismatch,
    /// The payload of the fingerprint.
    pub payload: Cow<'a, Value>,
}

/// The request's key, by the rule of its route. The body's size and type are checked in between, in the order of
/// checks.
pub fn key_of<C: Writer>(inbound: &Inbound, caller: &C) -> Result<Option<IdempotencyKey>, Problem> {
    let rule = inbound.route.map_or(Idempotency::None, Route::idempotency);
    let named = || named_key(inbound, caller.coach(), C::API);
    let key = match rule {
        Idempotency::None => None,
        Idempotency::Optional => named()?,
        Idempotency::Required => Some(named()?.ok_or(Problem::IdempotencyKeyRequired)?),
        Idempotency::HeaderOrEmail => {
            let named = named()?;
            check_envelope(inbound)?;
            named.or_else(|| {
                let email = inbound.json_if_any()?.get("email")?.as_str()?;
                Some(IdempotencyKey::derived(caller.coach(), C::API, email))
            })
        }
    };
    if key.is_some() {
        check_envelope(inbound)?
    } else {
        inbound.check_size()?
    }
    Ok(key)
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
/// The work records its answer itself. A refusal (4xx) is recorded here, except one whose cause may be gone for the
/// next request. A fault (5xx) releases the claim, so the next request runs.
pub async fn once<T>(
    claims: &Claims,
    inbound: &Inbound,
    IdempotentRequest { key, mismatch, payload }: IdempotentRequest<'_>,
    now: Timestamp,
    read: impl Future<Output = T>,
    work: impl AsyncFnOnce(Claimed, T) -> Result<Reply, Problem>,
) -> Result<Reply, Problem> {
    let until = inbound.received_at + WORK_WITHIN;
    let fingerprint = Fingerprint::new(inbound.method.as_str(), &parsed_path(inbound), &payload);
    let asked = ClaimRequest { fingerprint, mismatch };
    let (begun, read) = futures::future::join(claims.begin(&key, asked, now), read).await;
    let (claim, stage, same_payload) = match begun? {
        ClaimState::Fresh(claim) => (claim, None, true),
        ClaimState::Staged { claim, stage, same_payload } => (claim, Some(Stage(stage)), same_payload),
        ClaimState::InProgress { same_payload: false } | ClaimState::Finished { same_payload: false, .. }
            if mismatch == Mismatch::Refused =>
        {
            return Err(Problem::IdempotencyPayloadMismatch);
        }
        ClaimState::InProgress { .. } => return Err(Problem::IdempotencyInProgress),
        ClaimState::Erased => return Err(Problem::PersonErased),
        ClaimState::Finished { reply, same_payload } => {
            let reply = Reply::recorded(reply)?.header("idempotent-replay", true);
            return Ok(mark_mismatch(reply, same_payload));
        }
    };
    let claimed = Claimed { claim: claim.clone(), key: key.clone(), stage };
    let worked = match timeout_at(until, AssertUnwindSafe(work(claimed, read)).catch_unwind()).await {
        Ok(worked) => worked.unwrap_or_else(|_| Err(Problem::internal("do the work", "it panicked"))),
        Err(elapsed) => Err(Problem::timed_out(&inbound.method, &inbound.path, elapsed)),
    };
    match worked {
        Ok(reply) => Ok(mark_mismatch(reply, same_payload)),
        // Another request has taken over the claim, and its answer counts.
        Err(Problem::IdempotencyInProgress) => Err(Problem::IdempotencyInProgress),
        Err(
            problem @ (Problem::RateLimited(_)
            | Problem::TestQuota { .. }
            | Problem::TestDataWiping
            | Problem::CrmNotConfigured),
        ) => {
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
    let refusal = Recorded::reply(reply.to_recorded(), key.retention(ReplyKind::Refusal));
    match claims.record_alone(claim, &refusal, now).await {
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
    let Some(route) = inbound.route else { return inbound.path.clone() };
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
