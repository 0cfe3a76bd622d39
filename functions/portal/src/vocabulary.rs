//! The module `domain.js`: names and limits of the domain with words for coaches, and the beginning of titles.
//!
//! The page has no list of its own.

use domain::api_key::{Permission, Scope};
use domain::delivery::{ATTEMPT_TIMEOUT, DELIVERY_RETENTION, MAX_COUNTED_PENDING, MAX_READ_DELIVERIES};
use domain::endpoint::{MAX_DESCRIPTION_CHARS, SECRET_OVERLAP};
use domain::endpoint_health::PATIENCE;
use domain::key::{MAX_KEY_NAME_CHARS, ROTATION_OVERLAP};
use domain::receiver_url::MAX_URL_CHARS;
use domain::request_log::{MAX_READ_RECORDS, REQUEST_RETENTION};
use domain::retry::{CHAIN_HOURS, MAX_ATTEMPTS};
use edge::Code;
use serde_json::{Map, Value, json};

/// Codes that no route behind a key answers with, or that a request gets before its key is known.
const NOT_BEHIND_KEYS: [Code; 14] = [
    Code::UnknownPath,
    Code::MethodNotAllowed,
    Code::SessionWithoutCoach,
    Code::WorkspaceUnknown,
    Code::KeyLimitReached,
    Code::KeyNotLive,
    Code::KeyRevoked,
    Code::KeyNotActive,
    Code::EndpointLimitReached,
    Code::EndpointGone,
    Code::EndpointDisabled,
    Code::SecretLimitReached,
    Code::DeliveryErased,
    Code::RecoveryRunning,
];

/// Renders the module. `title_prefix` is the beginning of the page's title on every screen.
pub(crate) fn module(title_prefix: &str) -> String {
    let scopes = Scope::ALL.map(scope);
    let permissions = Permission::ALL.map(|permission| {
        json!({
            "name": permission,
            "title": permission.title(),
            "scope": permission.scope(),
            "writes": permission.is_write(),
        })
    });
    let limits = json!({
        "keyName": MAX_KEY_NAME_CHARS,
        "keyOverlapHours": ROTATION_OVERLAP.num_hours(),
        "endpointUrl": MAX_URL_CHARS,
        "endpointDescription": MAX_DESCRIPTION_CHARS,
        "secretOverlapHours": SECRET_OVERLAP.num_hours(),
        "deliveriesKeptDays": DELIVERY_RETENTION.num_days(),
        "attemptSeconds": ATTEMPT_TIMEOUT.num_seconds(),
        "retries": MAX_ATTEMPTS - 1,
        "retryHours": CHAIN_HOURS,
        "failingDays": PATIENCE.num_days(),
        "countedPending": MAX_COUNTED_PENDING,
        "lookedAt": MAX_READ_DELIVERIES,
        "requestsKeptDays": REQUEST_RETENTION.num_days(),
        "requestsLookedAt": MAX_READ_RECORDS,
    });
    format!(
        "export const SCOPES = {};\nexport const PERMISSIONS = {};\nexport const CODES = {};\n\
         export const LIMITS = {limits};\nexport const TITLE_PREFIX = {};\n",
        Value::from_iter(scopes),
        Value::from_iter(permissions),
        Value::Object(codes()),
        Value::from(title_prefix),
    )
}

/// The meaning of each code that a request with a key is refused with, as the documentation has it.
fn codes() -> Map<String, Value> {
    let codes = Code::ALL.iter().filter(|code| !NOT_BEHIND_KEYS.contains(code));
    codes.map(|code| (code.to_string(), code.meaning().into())).collect()
}

/// `shows`: what an assistant sees with a key that may read all.
fn scope(scope: Scope) -> Value {
    let (title, hint, shows) = match scope {
        Scope::Partner => (
            "Clients",
            "Work with clients and what they did, and sign them in, as far as you allow it.",
            "the names, e-mail addresses, goals, height and weight of your clients, and their compliance, check-ins \
             and daily logs",
        ),
        Scope::Crm => (
            "CRM",
            "Work with contacts, opportunities and appointments, as far as you allow it.",
            "your contacts, opportunities, calendars, bookings and workflows",
        ),
    };
    json!({ "name": scope, "title": title, "hint": hint, "shows": shows })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use domain::mode::Mode;
    use edge::routes::served;

    use super::*;

    /// The module with the words of the routes, one a line: `"GET /v1/ping": "Check the connection",`.
    const WORDS: &str = include_str!("../assets/request-words.js");

    #[test]
    fn every_route_behind_a_key_has_words_and_no_other() {
        // The requests of a sandbox are shown by their routes.
        let routes = served(Mode::Live).filter(|route| route.takes_key());
        let routes: BTreeSet<String> = routes.map(ToString::to_string).collect();
        let lines = WORDS.lines().filter_map(|line| line.strip_prefix("  \"")?.split_once("\": \""));
        let with_words: BTreeSet<String> = lines.map(|(route, _)| route.to_owned()).collect();
        assert_eq!(with_words, routes, "the words are in assets/request-words.js");
    }

    #[test]
    fn the_codes_with_a_meaning_are_those_of_keys() {
        let codes = codes();
        assert_eq!(codes.len() + NOT_BEHIND_KEYS.len(), Code::ALL.len());
        assert!(codes.contains_key("unauthorized") && !codes.contains_key("key_limit_reached"));
    }
}
