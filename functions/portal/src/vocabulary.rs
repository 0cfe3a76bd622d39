//! The module `domain.js`: names and limits of the domain with words for coaches.
//!
//! The page has no list of its own.

use domain::api_key::{Permission, Scope};
use domain::delivery::{ATTEMPT_TIMEOUT, DELIVERY_RETENTION, MAX_COUNTED_PENDING, MAX_READ_DELIVERIES};
use domain::endpoint::{MAX_DESCRIPTION_CHARS, SECRET_OVERLAP};
use domain::endpoint_health::PATIENCE;
use domain::key::{MAX_KEY_NAME_CHARS, ROTATION_OVERLAP};
use domain::receiver_url::MAX_URL_CHARS;
use domain::retry::{CHAIN_HOURS, MAX_ATTEMPTS};
use serde_json::{Value, json};

/// Renders the module.
pub(crate) fn module() -> String {
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
    });
    format!(
        "export const SCOPES = {};\nexport const PERMISSIONS = {};\nexport const LIMITS = {limits};\n",
        Value::from_iter(scopes),
        Value::from_iter(permissions),
    )
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
