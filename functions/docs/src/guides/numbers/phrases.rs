//! The phrases of the guides with numbers, from the constants of the code. A phrase without a constant states a fact of
//! somebody else, such as the number of an RFC.

mod operators;

use domain::automation::MAX_TRIGGERED;
use domain::availability::{MAX_CANDIDATES, MAX_SLOTS};
use domain::client::{
    MAX_CLIENT_EMAIL_CHARS, MAX_EXTERNAL_ID_CHARS, MAX_GOALS_CHARS, MAX_HEALTH_NOTES_CHARS, MAX_HEIGHT_IN,
    MAX_NAME_CHARS, MAX_PHONE_CHARS, MAX_WEIGHT_LBS,
};
use domain::compliance::WINDOW_DAYS;
use domain::contact::MAX_CONTACT_NAME_CHARS;
use domain::delivery::{
    ATTEMPT_TIMEOUT, CHAIN_RETENTION, DELIVERY_RETENTION, EXCERPT_BYTES, RECOVERY_LEASE, RECOVERY_PAUSE, RECOVERY_TIME,
};
use domain::email::MAX_EMAIL_CHARS;
use domain::endpoint::{MAX_DESCRIPTION_CHARS, MAX_ENDPOINTS, MAX_SECRETS, SECRET_OVERLAP};
use domain::endpoint_health::{LEAST_EVENTS, PATIENCE, WARN_AFTER};
use domain::idempotency::{
    DERIVED_PASSWORD_RETENTION, DERIVED_REFUSAL_RETENTION, IN_PROGRESS_RETRY_S, MAX_KEY_CHARS, RETENTION,
    SECRET_RETENTION,
};
use domain::key::{MAX_KEY_NAME_CHARS, MAX_LIVE_KEYS, ROTATION_OVERLAP};
use domain::list::{AUDIT_PAGE, CHECK_IN_PAGE, CLIENT_PAGE, CRM_PAGE, DAILY_LOG_PAGE, DELIVERY_PAGE, KEY_PAGE};
use domain::login_link::LOGIN_LINK_LIFE;
use domain::opportunity::{MAX_LOST_REASON_CHARS, MAX_OPPORTUNITY_NAME_CHARS, MAX_VALUE_CENTS};
use domain::pace::{LATE_AFTER, PERMITS};
use domain::rate_limit::{Limit, WINDOW_S};
use domain::receiver_url::MAX_URL_CHARS;
use domain::retry::{CHAIN_HOURS, GAPS_S, MAX_ATTEMPTS, MAX_JITTER_PERCENT};
use domain::wall_clock::TZ_DATABASE;
use edge::inbound::{MAX_BODY_BYTES, MAX_JSON_DEPTH};
use edge::resource::MAX_UNCOMPRESSED_BYTES;

pub(super) use operators::of_other_documents;
use operators::settings_api;

/// This file. The phrases of operators' guides are in its module `operators`.
pub(super) const PHRASES: &str = "functions/docs/src/guides/numbers/phrases.rs";

pub(super) fn read(file: &str) -> String {
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The number behind a name in a file, for constants of other crates and parameters of the template.
fn stated(file: &str, name: &str) -> u64 {
    let text = read(file);
    let found = text.split_once(name).unwrap_or_else(|| panic!("{file} has no `{name}` any more: correct {PHRASES}"));
    let rest = found.1.split_once(['=', ':', '(']).unwrap_or_else(|| panic!("{file}: {name} has no value")).1;
    let value = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    let value = value.split([';', ')', '\n']).next().unwrap().replace('_', "");
    // `64 * 1024`, `15 minutes`.
    let factors = value.split(" * ").map(|factor| factor.split(' ').next().unwrap().parse::<u64>());
    factors.map(|factor| factor.unwrap_or_else(|_| panic!("{file}: {name} is {value}, which is no number"))).product()
}

/// A length of time as the guides spell it: `5 s`, `30 min`, `9 h 30 min`.
fn spelled(time_s: u32) -> String {
    match (time_s / 3_600, time_s % 3_600 / 60) {
        (0, 0) => format!("{time_s} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// A number of thousands with a comma.
fn with_comma(number: impl Into<u64>) -> String {
    let number = number.into();
    format!("{},{:03}", number / 1_000, number % 1_000)
}

/// How long deliveries are kept. `condition` names the deliveries that are kept longer.
fn days_kept(condition: &str) -> String {
    format!("{} days, up to {} more {condition}", DELIVERY_RETENTION.num_days(), CHAIN_RETENTION.num_days())
}

/// How long a receiver keeps the ids of events.
fn days_to_keep() -> String {
    let [again, longer] = [DELIVERY_RETENTION, CHAIN_RETENTION].map(|retention| retention.num_days());
    format!(
        "Keep the ids for {} days: the coach can send an event again for {again} days, and its retries take up to {longer} \
         more days.",
        again + longer
    )
}

/// Guides of which every number has to be in a phrase, by file.
pub(super) fn guides() -> Vec<(String, Vec<String>)> {
    let page = |name: &str| format!("functions/docs/pages/{name}.md");
    vec![
        (page("crm"), crm()),
        (page("errors"), errors()),
        (page("events"), events()),
        (page("getting-started"), getting_started()),
        (page("idempotency"), idempotency()),
        (page("limits"), limits()),
        (page("verifying"), verifying()),
        ("infra/guides/settings-api.md".to_owned(), settings_api()),
    ]
}

fn crm() -> Vec<String> {
    vec![
        format!("| `limit` | {} by default, at most {} |", CRM_PAGE.default, CRM_PAGE.max),
        "contact's name, `valueCents` to 0.".to_owned(),
        "A calendar with a `priceCents` above 0 cannot be booked".to_owned(),
        format!("the same key replays it for {} hours.", RETENTION.num_hours()),
    ]
}

fn errors() -> Vec<String> {
    let hours = SECRET_OVERLAP.num_hours();
    vec![
        "(RFC 9457)".to_owned(),
        format!("the service replays a refusal for {} seconds.", DERIVED_REFUSAL_RETENTION.num_seconds()),
        format!("nests deeper than {MAX_JSON_DEPTH} levels, or has a number beyond 1.8e308."),
        format!("the file is larger than {} KB without compression", MAX_UNCOMPRESSED_BYTES / 1_000),
        format!("The body is larger than {} KiB.", MAX_BODY_BYTES / 1024),
        format!("The workspace has {MAX_LIVE_KEYS} live keys."),
        format!("The workspace has {MAX_ENDPOINTS} webhook endpoints."),
        format!("{MAX_SECRETS} secrets sign for the endpoint, because of rotations within {hours} hours."),
        "The body is larger than 10 MB.".to_owned(),
    ]
}

fn events() -> Vec<String> {
    let timeout_s = ATTEMPT_TIMEOUT.num_seconds();
    let gaps = GAPS_S.map(spelled);
    let (last, others) = gaps.split_last().expect("there is a retry");
    let webhook = |name| stated("lib/webhook/src/lib.rs", name);
    let hanging_s = stated("lib/domain/src/pace.rs", "const HANGING_FOR");
    let batch = stated(
        "template.yaml",
        "DeliveriesQueue.Arn\n            Enabled: !If [HoldsOutgoing, false, true]\n            BatchSize",
    );
    let drop_days = stated("lib/domain/src/sweep/state.rs", "const DROP_SPACING");
    vec![
        format!("Answer 2xx within {timeout_s} seconds."),
        format!("For {} hours after a rotation of the secret", SECRET_OVERLAP.num_hours()),
        "Standard Webhooks 1.0.0".to_owned(),
        format!("A 2xx status within {timeout_s} seconds means that you have the event."),
        format!(
            "waits up to {} seconds for the body and reads at most {} KiB. The first {} KiB goes into",
            webhook("const STATUS_GRACE"),
            webhook("const MAX_READ_BYTES") / 1024,
            EXCERPT_BYTES / 1024
        ),
        format!("counts for at most {} hour, or", stated("lib/domain/src/retry_after.rs", "const LEAST_CAP")),
        format!(
            "A delivery has {MAX_ATTEMPTS} attempts over {CHAIN_HOURS} hours. The first attempt is made at once. The waits \
             before the others are {} and {last}, each up to {MAX_JITTER_PERCENT} % longer.",
            others.join(", ")
        ),
        days_to_keep(),
        format!("delivers up to {} events to an endpoint at once", PERMITS.unsigned_abs() as u64 * batch),
        format!("answers after more than {} seconds gets", LATE_AFTER.as_secs()),
        format!("gets at most {batch} at once for {hanging_s} seconds"),
        format!("send one event again, for {} days |", DELIVERY_RETENTION.num_days()),
        format!("and {MAX_ATTEMPTS} new attempts."),
        format!("at most once in {} minutes.", RECOVERY_PAUSE.num_minutes()),
        format!("The limit is {} a minute.", Limit::TestEvents.per_minute()),
        format!("If an attempt fails {} days or more after the first failure", PATIENCE.num_days()),
        format!("fewer than {LEAST_EVENTS} events have failed"),
        format!("mails the coach after {} hours of failures", WARN_AFTER.num_hours()),
        format!("evaluates active clients every {} minutes", stated("template.yaml", "Schedule: rate")),
        format!("at least {drop_days} days after the last drop"),
        format!("neither the {drop_days} days between drops"),
        format!("the {MAX_TRIGGERED} with the first ids count"),
    ]
}

fn getting_started() -> Vec<String> {
    vec![
        "`compliance_pct` is `null`, not 0,".to_owned(),
        format!("The link works once, within {} minutes.", LOGIN_LINK_LIFE.num_minutes()),
        "OpenAPI 3.1. openapi-python-client".to_owned(),
        "openapi-generator supports 3.1 in beta".to_owned(),
    ]
}

fn idempotency() -> Vec<String> {
    let hours = RETENTION.num_hours();
    vec![
        format!("A key has 1 to {MAX_KEY_CHARS} characters."),
        format!("The service keeps keys for {hours} hours"),
        format!("| 409 `idempotency_in_progress` with `Retry-After: {IN_PROGRESS_RETRY_S}` |"),
        format!("| 4xx | {} seconds, so that", DERIVED_REFUSAL_RETENTION.num_seconds()),
        format!("| 201 with a `temp_password` | {} hour |", DERIVED_PASSWORD_RETENTION.num_hours()),
        format!("| any other 201 | {hours} hours |"),
        "Back off: 1 second, 2, 4.".to_owned(),
    ]
}

fn limits() -> Vec<String> {
    let sizes = [
        ("clients", CLIENT_PAGE),
        ("check-ins", CHECK_IN_PAGE),
        ("daily logs", DAILY_LOG_PAGE),
        ("the lists of the CRM", CRM_PAGE),
        ("keys", KEY_PAGE),
        ("deliveries", DELIVERY_PAGE),
        ("the audit trail", AUDIT_PAGE),
    ];
    let fields = [
        ("`email`", MAX_CLIENT_EMAIL_CHARS),
        ("`full_name`", MAX_NAME_CHARS),
        ("`phone`", MAX_PHONE_CHARS),
        ("`goals`", MAX_GOALS_CHARS),
        ("`health_notes`", MAX_HEALTH_NOTES_CHARS),
        ("`external_id`", MAX_EXTERNAL_ID_CHARS),
        ("`name` of a contact", MAX_CONTACT_NAME_CHARS),
        ("`email` of a contact", MAX_EMAIL_CHARS),
        ("`name` of an opportunity", MAX_OPPORTUNITY_NAME_CHARS),
        ("`lostReason`", MAX_LOST_REASON_CHARS),
        ("Name of a key", MAX_KEY_NAME_CHARS),
        ("URL of an endpoint", MAX_URL_CHARS),
        ("Description of an endpoint", MAX_DESCRIPTION_CHARS),
    ];
    let per_minute = Limit::Requests.per_minute();
    let in_a_minute = [
        ("All requests with a key", Limit::Requests, ""),
        ("`POST /v1/clients/{clientId}/login-link`", Limit::LoginLinks, ", within the limit above"),
        ("All requests of a coach to the settings", Limit::SettingsRequests, ""),
        ("Test events for a webhook endpoint", Limit::TestEvents, ", within the limit above"),
    ];
    let others = [
        format!("q={per_minute};w={WINDOW_S}"),
        format!("At {} requests a second you never get a 429.", per_minute / WINDOW_S - 1),
        "A calendar minute starts at second 0 UTC.".to_owned(),
        format!("The {}st request of a minute is 429", per_minute + 1),
        format!("A file larger than {} KB is sent with gzip only", MAX_UNCOMPRESSED_BYTES / 1_000),
        format!(
            "at most {} welcome mails a day",
            with_comma(stated("template.yaml", "WelcomeMailsPerDay:\n    Type: Number\n    Default"))
        ),
        format!("at most {} KiB and nests at most {MAX_JSON_DEPTH} levels deep", MAX_BODY_BYTES / 1024),
        format!("`Idempotency-Key` has 1 to {MAX_KEY_CHARS} characters"),
        format!("| `height_in` | above 0, at most {MAX_HEIGHT_IN} inches |"),
        format!("| `weight_lbs` | above 0, at most {MAX_WEIGHT_LBS} pounds |"),
        format!("| `valueCents` | 0 to {MAX_VALUE_CENTS}, whole |"),
        format!(
            "| `stage` | {} characters of",
            stated("lib/domain/src/opportunity/draft.rs", "const MAX_STAGE_CHARS: usize")
        ),
        format!("| `window_days` of compliance | {} | {} |", WINDOW_DAYS.default, WINDOW_DAYS.max),
        format!("| `email` filter | at most {MAX_CLIENT_EMAIL_CHARS} characters |"),
        format!("checks at most {} possible times", with_comma(MAX_CANDIDATES as u64)),
        format!("at most {} free times", with_comma(MAX_SLOTS as u64)),
        format!("release {TZ_DATABASE} of the IANA time zone database"),
        format!("| Live keys of a workspace | {MAX_LIVE_KEYS} |"),
        format!("| A replaced key still works for | {} hours |", ROTATION_OVERLAP.num_hours()),
        format!("| Webhook endpoints of a workspace | {MAX_ENDPOINTS} |"),
        format!("at once | {MAX_SECRETS}, a replaced one for {} hours |", SECRET_OVERLAP.num_hours()),
        format!("| 1, for at most {} seconds |", RECOVERY_LEASE.num_seconds()),
        format!("as many as start within {} seconds", RECOVERY_TIME.as_secs()),
        format!("sent in the last | {} minutes |", RECOVERY_PAUSE.num_minutes()),
        format!("| {MAX_TRIGGERED} of a coach and kind |"),
        format!("| A login link can be used | {} minutes, once |", LOGIN_LINK_LIFE.num_minutes()),
        format!("| Answers under an idempotency key are kept | {} hours |", RETENTION.num_hours()),
        format!("answer of the settings is kept | {} minutes |", SECRET_RETENTION.num_minutes()),
        format!("| A receiver has to answer within | {} seconds |", ATTEMPT_TIMEOUT.num_seconds()),
        format!("| Attempts of a delivery | {MAX_ATTEMPTS}, over {CHAIN_HOURS} hours |"),
        format!("| An event can be sent again by hand | {} days |", DELIVERY_RETENTION.num_days()),
        format!("| The delivery log is kept | {} |", days_kept("for deliveries that are sent again")),
        format!(
            "| the latest {}, and those that follow |",
            stated("lib/store/src/delivery/restart.rs", "const KEPT_ATTEMPTS: usize")
        ),
    ];
    let sizes = sizes.map(|(list, size)| format!("| `limit` of {list} | {} | {} |", size.default, size.max));
    let fields = fields.map(|(field, max)| format!("| {field} | {max} characters |"));
    let in_a_minute = in_a_minute
        .map(|(what, limit, note)| format!("| {what} | {} in a calendar minute{note} |", limit.per_minute()));
    sizes.into_iter().chain(fields).chain(in_a_minute).chain(others).collect()
}

fn verifying() -> Vec<String> {
    let hours = SECRET_OVERLAP.num_hours();
    vec![
        "Standard Webhooks 1.0.0".to_owned(),
        "a timestamp that is more than 5 minutes off".to_owned(),
        days_to_keep(),
        format!("Answer 2xx within {} seconds.", ATTEMPT_TIMEOUT.num_seconds()),
        format!("For {hours} hours after the coach rotates the secret"),
        format!("within these {hours} hours."),
        "(9000 by default)".to_owned(),
    ]
}
