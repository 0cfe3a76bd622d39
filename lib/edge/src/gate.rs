//! Authenticates callers: the key, its minute, its scope and what its workspace is entitled to, in one call to the
//! store.

use std::future::Future;
use std::sync::Arc;

use axum::response::Response;
use domain::api_key::{ApiKey, Permission, Scope};
use domain::country::Country;
use domain::event_access::EventAccess;
use domain::id::{CoachId, KeyId};
use domain::idempotency::Api;
use domain::rate_limit::{Limit, Quota, REQUEST};
use domain::time::Timestamp;
use domain::tz::ZoneName;
use domain::workspace::{CrmConfiguration, Entitlements};
use http::{HeaderMap, Method};
use runtime::{BoxError, Clock, Environment, note};
use store::Db;
use store::key::{KeyRecord, Keys, Presented};

use crate::inbound::{Inbound, arrival};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::routes::{Access, Routed, find};

mod known_keys;

use known_keys::KnownKeys;

/// The caller of a partner route.
#[derive(Debug, Clone)]
pub struct Partner {
    pub coach: CoachId,
    /// Default region of phone numbers.
    pub country: Country,
    /// The time zone of the workspace's days.
    pub time_zone: ZoneName,
    /// Time of the request's arrival.
    pub now: Timestamp,
}

/// The caller of a CRM route.
#[derive(Debug, Clone)]
pub struct CrmCaller {
    pub coach: CoachId,
    /// Pipeline and stage of the key's opportunities.
    pub crm: CrmConfiguration,
    /// The time zone of the workspace's days.
    pub time_zone: ZoneName,
    /// Time of the request's arrival.
    pub now: Timestamp,
}

/// The caller of the event feed.
#[derive(Debug, Clone)]
pub struct EventReader {
    pub coach: CoachId,
    /// The events that the key may read.
    pub access: EventAccess,
    /// Since when events have been stored without a break.
    pub since: Timestamp,
    /// Time of the request's arrival.
    pub now: Timestamp,
}

/// The caller of a route that may write.
pub trait Caller: Send + Sync {
    /// The API that the caller uses.
    const API: Api;
    /// True: a command reads while its key is claimed, so that a write waits less. False: a repeat reads nothing.
    const READS_EARLY: bool = true;
    fn coach(&self) -> &CoachId;
    /// Time of the request's arrival.
    fn now(&self) -> Timestamp;
}

impl Caller for CrmCaller {
    const API: Api = Api::Crm;

    fn coach(&self) -> &CoachId {
        &self.coach
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Caller for Partner {
    const API: Api = Api::Partner;

    fn coach(&self) -> &CoachId {
        &self.coach
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

/// A caller that was let in.
struct Admitted<C> {
    caller: C,
    key_id: KeyId,
    quotas: Vec<Quota>,
    stale_windows: Vec<String>,
}

/// The refusal of a caller.
struct Refused {
    problem: Problem,
    /// Empty while nobody knows whose key it is.
    quotas: Vec<Quota>,
}

/// Lets callers in and answers them.
#[derive(Clone)]
pub struct Gate {
    keys: Keys,
    known: KnownKeys,
    clock: Arc<dyn Clock>,
}

impl Gate {
    /// A gate over the keys table.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { keys: Keys::new(env, db)?, known: KnownKeys::default(), clock: env.clock() })
    }

    /// Checks the caller of a partner route, whose key needs the permission of the route, if there is one. Runs `read`
    /// and answers with the result of `work`.
    ///
    /// If this environment has admitted the key before, `read` runs in parallel with the check, otherwise after it. So
    /// a forged key costs its check alone, and a malformed key no call. `work` has to check who owns what was read.
    pub async fn partner<T>(
        &self,
        inbound: &Inbound,
        read: impl Future<Output = T>,
        work: impl AsyncFnOnce(Partner, T) -> Result<Reply, Problem>,
    ) -> Response {
        self.partner_within(inbound, REQUEST, read, work).await
    }

    /// Like [`Gate::partner`], for a route with limits of its own.
    pub async fn partner_within<T>(
        &self,
        inbound: &Inbound,
        limits: &[Limit],
        read: impl Future<Output = T>,
        work: impl AsyncFnOnce(Partner, T) -> Result<Reply, Problem>,
    ) -> Response {
        let admission = self.admit(inbound, limits, read).await;
        self.answer(inbound, admission, work).await
    }

    async fn admit<T>(
        &self,
        inbound: &Inbound,
        limits: &[Limit],
        read: impl Future<Output = T>,
    ) -> Result<(Admitted<Partner>, T), Refused> {
        let Some(Access::Partner(permission)) = access_of(inbound) else { return Err(unknown(misrouted("partner"))) };
        // The key is parsed before any read starts: without a well-formed key no table is called.
        let key = presented(&inbound.headers).map_err(unknown)?;
        let hash = key.hash();
        let check = self.check(&key, limits, |record, now| partner(record, permission, now));
        let admission = if self.known.contains(&hash) {
            let (admitted, read) = futures::future::join(check, read).await;
            admitted.map(|admitted| (admitted, read))
        } else {
            match check.await {
                Ok(admitted) => Ok((admitted, read.await)),
                Err(refused) => Err(refused),
            }
        };
        match &admission {
            Ok(_) => self.known.insert(hash),
            Err(_) => self.known.remove(&hash),
        }
        admission
    }

    /// Checks the caller of a CRM route, whose key needs the permission of the route. Then `work` answers.
    pub async fn crm(
        &self,
        inbound: &Inbound,
        work: impl AsyncFnOnce(CrmCaller) -> Result<Reply, Problem>,
    ) -> Response {
        let check = async {
            let Some(Access::Crm(permission)) = access_of(inbound) else { return Err(unknown(misrouted("crm"))) };
            let key = presented(&inbound.headers).map_err(unknown)?;
            let admitted = self.check(&key, REQUEST, |record, now| crm_caller(record, permission, now)).await;
            match admitted {
                Ok(admitted) => Ok((admitted, ())),
                // A write is to be repeated, whichever of its calls was not answered.
                Err(refused) if permission.is_write() => {
                    Err(Refused { problem: refused.problem.unconfirmed(), ..refused })
                }
                Err(refused) => Err(refused),
            }
        };
        let admission = check.await;
        self.answer(inbound, admission, async |caller, ()| work(caller).await).await
    }

    /// Checks the caller of the event feed, whose key of either scope may read events. Then `work` answers.
    pub async fn events(
        &self,
        inbound: &Inbound,
        work: impl AsyncFnOnce(EventReader) -> Result<Reply, Problem>,
    ) -> Response {
        let admission = match presented(&inbound.headers) {
            Ok(key) => self.check(&key, REQUEST, event_reader).await.map(|admitted| (admitted, ())),
            Err(problem) => Err(unknown(problem)),
        };
        self.answer(inbound, admission, async |reader, ()| work(reader).await).await
    }

    async fn check<C>(
        &self,
        key: &ApiKey,
        limits: &[Limit],
        caller: impl FnOnce(KeyRecord, Timestamp) -> Result<C, Problem>,
    ) -> Result<Admitted<C>, Refused> {
        let now = arrival(&*self.clock);
        let (record, quotas, stale_windows) = match self.keys.authenticate(key, limits, now).await {
            Ok(Presented::Accepted { record, quotas, stale_windows }) => (*record, quotas, stale_windows),
            Ok(Presented::Rejected) => return Err(unknown(Problem::Unauthenticated(UNKNOWN))),
            Ok(Presented::Limited { used_up, quotas }) => {
                return Err(Refused { problem: Problem::RateLimited(used_up), quotas });
            }
            Err(error) => return Err(unknown(error.into())),
        };
        note("coach_id", record.coach_id.as_str());
        let key_id = record.key_id.clone();
        match caller(record, now) {
            Ok(caller) => Ok(Admitted { caller, key_id, quotas, stale_windows }),
            Err(problem) => Err(Refused { problem, quotas }),
        }
    }

    /// Does an admitted caller's work and answers it. A refused caller gets the reason.
    async fn answer<C, T>(
        &self,
        inbound: &Inbound,
        admission: Result<(Admitted<C>, T), Refused>,
        work: impl AsyncFnOnce(C, T) -> Result<Reply, Problem>,
    ) -> Response {
        let (result, quotas) = match admission {
            Err(Refused { problem, quotas }) => (Err(problem), quotas),
            Ok((admitted, read)) => {
                let tidy = self.tidy(&admitted.key_id, &admitted.stale_windows);
                let work = async {
                    // Writes check the size of the body later, after the idempotency key.
                    if inbound.method == Method::GET {
                        inbound.check_size()?;
                    }
                    work(admitted.caller, read).await
                };
                let (result, ()) = futures::future::join(work, tidy).await;
                (result, admitted.quotas)
            }
        };
        let reply = result.unwrap_or_else(|problem| Reply::problem(&problem, inbound));
        reply.with_quotas(&quotas).into_response_for(inbound)
    }

    /// Deletes old counters. Nothing depends on it, and a request does not fail over it.
    async fn tidy(&self, key_id: &KeyId, windows: &[String]) {
        if !windows.is_empty()
            && let Err(error) = self.keys.drop_windows(key_id, windows).await
        {
            tracing::warn!(%error, "could not delete the past counters of a key");
        }
    }
}

/// A refusal before the key is known, so without quotas.
fn unknown(problem: Problem) -> Refused {
    Refused { problem, quotas: Vec::new() }
}

fn partner(record: KeyRecord, permission: Option<Permission>, now: Timestamp) -> Result<Partner, Problem> {
    in_scope(&record, Scope::Partner)?;
    permission.map_or(Ok(()), |permission| permitted(&record.permissions, permission))?;
    if !record.entitlements.partner_api {
        return Err(Problem::NotEntitled);
    }
    Ok(Partner { coach: record.coach_id, country: record.country, time_zone: record.time_zone, now })
}

fn crm_caller(record: KeyRecord, permission: Permission, now: Timestamp) -> Result<CrmCaller, Problem> {
    in_scope(&record, Scope::Crm)?;
    let crm = crm_of(&record)?;
    permitted(&record.permissions, permission)?;
    Ok(CrmCaller { coach: record.coach_id, crm, time_zone: record.time_zone, now })
}

fn event_reader(record: KeyRecord, now: Timestamp) -> Result<EventReader, Problem> {
    if record.scope == Scope::Crm {
        // Events need no pipeline.
        entitled_to_crm(&record)?;
    }
    let access = record.events.ok_or(Problem::EventsNotAllowed)?;
    if record.scope == Scope::Partner && !record.entitlements.partner_api {
        return Err(Problem::NotEntitled);
    }
    let since = record.events_since.unwrap_or(record.created_at);
    Ok(EventReader { coach: record.coach_id, access, since, now })
}

/// The configuration of the CRM, if the workspace is entitled to the CRM.
fn crm_of(record: &KeyRecord) -> Result<CrmConfiguration, Problem> {
    entitled_to_crm(record)?;
    record.crm.clone().ok_or(Problem::CrmNotConfigured)
}

fn entitled_to_crm(record: &KeyRecord) -> Result<(), Problem> {
    match record.entitlements {
        Entitlements { pro_crm: false, .. } => Err(Problem::CrmNotEntitled),
        Entitlements { gym: false, .. } => Err(Problem::GymNotEnabled),
        Entitlements { .. } => Ok(()),
    }
}

/// The credential and permission that the table of routes asks for.
fn access_of(inbound: &Inbound) -> Option<Access> {
    match find(&inbound.method, &inbound.path) {
        Routed::Known(route) => Some(route.access),
        Routed::OtherMethods(_) | Routed::UnknownPath => None,
    }
}

/// The fault of a route whose function expects another key than the table of routes.
fn misrouted(expected: &'static str) -> Problem {
    Problem::internal("find the permission of a route", format!("the route takes no {expected} key"))
}

fn permitted(permissions: &[Permission], permission: Permission) -> Result<(), Problem> {
    if permissions.contains(&permission) { Ok(()) } else { Err(Problem::PermissionMissing(permission)) }
}

fn in_scope(record: &KeyRecord, needed: Scope) -> Result<(), Problem> {
    if record.scope == needed { Ok(()) } else { Err(Problem::WrongScope { needed: needed.as_str() }) }
}

const MISSING: &str = "No API key. Send it as `Authorization: Bearer <key>` or as `X-Api-Key: <key>`.";
const MALFORMED: &str = "This is not an API key: it was cut off, mistyped, or has something added, such as a space.";
const UNKNOWN: &str = "This API key is unknown, revoked or expired.";
const DIFFERENT: &str = "Authorization and X-Api-Key hold different keys. Send one of them.";
const NOT_BEARER: &str = "Authorization must be `Bearer <key>`.";

/// The key that the headers present, in its form at least. An empty header is no header. `Bearer` without a key is
/// empty, too: templates make it of a variable that is not set.
fn presented(headers: &HeaderMap) -> Result<ApiKey, Problem> {
    let refused = |why| Err(Problem::Unauthenticated(why));
    let sent = |name| headers.get(name).map(http::HeaderValue::as_bytes).filter(|value| !value.trim_ascii().is_empty());
    let is_bare = |value: &&[u8]| value.trim_ascii().eq_ignore_ascii_case(b"bearer");
    let bearer = match sent("authorization").filter(|value| !is_bare(value)) {
        None => None,
        Some(value) => match value.split_at_checked(7) {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(key),
            _ => return refused(NOT_BEARER),
        },
    };
    let key = match (bearer, sent("x-api-key")) {
        (None, None) => return refused(MISSING),
        (Some(one), Some(other)) if one != other => return refused(DIFFERENT),
        (Some(key), _) | (None, Some(key)) => key,
    };
    match std::str::from_utf8(key).ok().and_then(ApiKey::parse) {
        Some(key) => Ok(key),
        None => refused(MALFORMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_key_comes_in_either_header_or_the_same_in_both() {
        let key = ApiKey::generate(Scope::Partner, &[5; 128]);
        let (text, bearer) = (key.expose(), format!("Bearer {}", key.expose()));
        for good in [
            headers(&[("authorization", &bearer)]),
            headers(&[("authorization", &bearer.replace("Bearer", "bearer"))]),
            headers(&[("x-api-key", text)]),
            headers(&[("authorization", &bearer), ("x-api-key", text)]),
            headers(&[("authorization", &bearer), ("x-api-key", "")]),
            headers(&[("authorization", &bearer), ("x-api-key", " ")]),
            headers(&[("authorization", ""), ("x-api-key", text)]),
            headers(&[("authorization", "Bearer "), ("x-api-key", text)]),
            headers(&[("authorization", "bearer"), ("x-api-key", text)]),
        ] {
            assert_eq!(presented(&good).unwrap().id(), key.id());
        }
        let other = ApiKey::generate(Scope::Partner, &[6; 128]);
        for (bad, why) in [
            (headers(&[]), MISSING),
            (headers(&[("authorization", ""), ("x-api-key", "")]), MISSING),
            (headers(&[("authorization", "Bearer ")]), MISSING),
            (headers(&[("authorization", "Bearer "), ("x-api-key", "")]), MISSING),
            (headers(&[("authorization", "Basic"), ("x-api-key", text)]), NOT_BEARER),
            (headers(&[("authorization", "Bearers"), ("x-api-key", text)]), NOT_BEARER),
            (headers(&[("authorization", text)]), NOT_BEARER),
            (headers(&[("authorization", "Basic abc"), ("x-api-key", text)]), NOT_BEARER),
            (headers(&[("authorization", &format!("Bearer  {text}"))]), MALFORMED),
            (headers(&[("x-api-key", &format!("{text},{text}"))]), MALFORMED),
            (headers(&[("authorization", &bearer), ("x-api-key", other.expose())]), DIFFERENT),
        ] {
            let Err(Problem::Unauthenticated(said)) = presented(&bad) else { panic!("refused") };
            assert_eq!(said, why);
        }
    }
}
