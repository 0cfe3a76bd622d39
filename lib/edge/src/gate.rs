//! Authenticates callers: the key, its minute, its scope and what its workspace is entitled to, in one call to the
//! store.

use std::future::Future;
use std::sync::Arc;

use domain::api_key::{ApiKey, Permission, Scope};
use domain::country::Country;
use domain::event_access::EventAccess;
use domain::id::{CoachId, KeyId};
use domain::idempotency::Api;
use domain::mode::Mode;
use domain::time::Timestamp;
use domain::tz::ZoneName;
use domain::workspace::{CrmConfiguration, Entitlements};
use futures::future::{BoxFuture, join};
use http::HeaderMap;
use runtime::{BoxError, Clock, Environment, note};
use store::Db;
use store::key::{KeyRecord, Keys, Presented};

use crate::caller::{Admitted, Caller, Refused, Writer};
use crate::inbound::{Inbound, arrival};
use crate::problem::Problem;
use crate::routes::{Access, Route};

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

/// The caller of a route for any key.
#[derive(Debug, Clone)]
pub struct KeyHolder {
    pub key: KeyRecord,
    /// Time of the request's arrival.
    pub now: Timestamp,
}

/// The names of the notes of a known key: of the coach and of the key.
pub(crate) const NOTED_COACH: &str = "coach_id";
pub(crate) const NOTED_KEY: &str = "key_id";

/// Checks keys.
#[derive(Clone)]
pub struct Gate {
    keys: Keys,
    known: KnownKeys,
    clock: Arc<dyn Clock>,
    /// The address of the deployment of the other mode, if there is one.
    other_address: Option<String>,
}

/// A caller with an API key.
trait KeyCaller: Sized + Send + Sync + 'static {
    /// The caller of a key's record, if the key opens a route with this access.
    fn of(record: KeyRecord, access: Access, now: Timestamp) -> Result<Self, Problem>;
}

impl<C: KeyCaller> Caller for C {
    type Gate = Gate;

    fn gate(env: &Environment, db: &Db) -> Result<Gate, BoxError> {
        let other_address = env.config().find(Mode::OTHER_ADDRESS).map(str::to_owned);
        Ok(Gate { keys: Keys::new(env, db)?, known: KnownKeys::default(), clock: env.clock(), other_address })
    }

    async fn admit<T: Send>(
        gate: &Gate,
        inbound: &Inbound,
        early: impl Future<Output = T> + Send,
    ) -> Result<(Admitted<Self>, T), Refused> {
        let route = inbound.route.ok_or_else(|| Problem::internal("check a caller", "the request has no route"))?;
        let admission = gate.admit(inbound, route, early).await;
        match admission {
            // A write is to be repeated, whichever of its calls was not answered.
            Err(refused) if route.writes_to_crm() => Err(Refused { problem: refused.problem.unconfirmed(), ..refused }),
            other => other,
        }
    }
}

impl KeyCaller for Partner {
    fn of(record: KeyRecord, access: Access, now: Timestamp) -> Result<Self, Problem> {
        let Access::Partner(permission) = access else { return Err(misrouted("partner")) };
        in_scope(&record, Scope::Partner)?;
        permission.map_or(Ok(()), |permission| permitted(&record.permissions, permission))?;
        if !record.entitlements.partner_api {
            return Err(Problem::NotEntitled);
        }
        Ok(Self { coach: record.coach_id, country: record.country, time_zone: record.time_zone, now })
    }
}

impl KeyCaller for CrmCaller {
    fn of(record: KeyRecord, access: Access, now: Timestamp) -> Result<Self, Problem> {
        let Access::Crm(permission) = access else { return Err(misrouted("crm")) };
        in_scope(&record, Scope::Crm)?;
        let crm = crm_of(&record)?;
        permitted(&record.permissions, permission)?;
        Ok(Self { coach: record.coach_id, crm, time_zone: record.time_zone, now })
    }
}

impl KeyCaller for EventReader {
    fn of(record: KeyRecord, _: Access, now: Timestamp) -> Result<Self, Problem> {
        if record.scope == Scope::Crm {
            // Events need no pipeline.
            entitled_to_crm(&record)?;
        }
        let access = record.events.ok_or(Problem::EventsNotAllowed)?;
        if record.scope == Scope::Partner && !record.entitlements.partner_api {
            return Err(Problem::NotEntitled);
        }
        let since = record.events_since.unwrap_or(record.created_at);
        Ok(Self { coach: record.coach_id, access, since, now })
    }
}

impl KeyCaller for KeyHolder {
    fn of(record: KeyRecord, _: Access, now: Timestamp) -> Result<Self, Problem> {
        Ok(Self { key: record, now })
    }
}

impl Writer for Partner {
    const API: Api = Api::Partner;

    fn coach(&self) -> &CoachId {
        &self.coach
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Writer for KeyHolder {
    const API: Api = Api::Sandbox;

    fn coach(&self) -> &CoachId {
        &self.key.coach_id
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Writer for CrmCaller {
    const API: Api = Api::Crm;

    fn coach(&self) -> &CoachId {
        &self.coach
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Gate {
    /// Checks the key of a request, and makes its record a caller.
    async fn admit<C: KeyCaller, T>(
        &self,
        inbound: &Inbound,
        route: &Route,
        early: impl Future<Output = T>,
    ) -> Result<(Admitted<C>, T), Refused> {
        // The key is parsed before any read starts: without a well-formed key no table is called.
        let key = presented(&inbound.headers)?;
        let hash = key.hash();
        let check = self.check(&key, route);
        let admission = if self.known.contains(&hash) {
            let (admitted, read) = join(check, early).await;
            admitted.map(|admitted| (admitted, read))
        } else {
            match check.await {
                Ok(admitted) => Ok((admitted, early.await)),
                Err(refused) => Err(refused),
            }
        };
        match &admission {
            Ok(_) => self.known.insert(hash),
            Err(_) => self.known.remove(&hash),
        }
        admission
    }

    async fn check<C: KeyCaller>(&self, key: &ApiKey, route: &Route) -> Result<Admitted<C>, Refused> {
        let now = arrival(&*self.clock);
        let (record, quotas, stale_windows) = match self.keys.authenticate(key, route.limits(), now).await {
            Ok(Presented::Accepted { record, quotas, stale_windows }) => (*record, quotas, stale_windows),
            Ok(Presented::Limited { record, used_up, quotas }) => {
                note_key(&record);
                return Err(Refused { problem: Problem::RateLimited(used_up), quotas });
            }
            Ok(Presented::Ended { record }) => {
                note_key(&record);
                return Err(Problem::Unauthenticated(UNKNOWN).into());
            }
            Ok(Presented::OtherMode) => {
                let address = self.other_address.clone();
                return Err(Problem::OtherMode { mode: self.keys.mode(), address }.into());
            }
            Ok(Presented::Unknown) => return Err(Problem::Unauthenticated(UNKNOWN).into()),
            Err(error) => return Err(Problem::from(error).into()),
        };
        note_key(&record);
        if record.is_wiping && route.waits_for_wipe() {
            return Err(Refused { problem: Problem::TestDataWiping, quotas });
        }
        let key_id = record.key_id.clone();
        match C::of(record, route.access, now) {
            Ok(caller) => Ok(Admitted { caller, quotas, chore: self.tidy(key_id, stale_windows) }),
            Err(problem) => Err(Refused { problem, quotas }),
        }
    }

    /// Deletes old counters. A request does not fail over it.
    fn tidy(&self, key: KeyId, windows: Vec<String>) -> Option<BoxFuture<'static, ()>> {
        if windows.is_empty() {
            return None;
        }
        let keys = self.keys.clone();
        let tidy = async move {
            if let Err(error) = keys.drop_windows(&key, &windows).await {
                tracing::warn!(%error, "could not delete the past counters of a key");
            }
        };
        Some(Box::pin(tidy) as BoxFuture<'static, ()>)
    }
}

/// Notes whose request it is, for the log and for the request log.
fn note_key(record: &KeyRecord) {
    note(NOTED_COACH, record.coach_id.as_str());
    note(NOTED_KEY, record.key_id.as_str());
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

/// Returns the key that the headers present, in its form at least. An empty header is no header. `Bearer` without a key
/// is empty, too: templates make it of a variable that is not set.
pub fn presented(headers: &HeaderMap) -> Result<ApiKey, Problem> {
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
        let key = ApiKey::generate(Scope::Partner, Mode::Live, &[5; 128]);
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
        let other = ApiKey::generate(Scope::Partner, Mode::Test, &[6; 128]);
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
