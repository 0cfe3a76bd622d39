//! Phrases of the guides for operators and for the application's developers, and of the README.

use domain::assertion::ASSERTION_LIFE;
use domain::audit::MAX_SUBJECT_CHARS;
use domain::automation::MAX_TRIGGERED;
use domain::compliance::WINDOW_DAYS;
use domain::delivery::{
    CHAIN_RETENTION, COUNTING_TIME, DELIVERY_RETENTION, EXCERPT_BYTES, RECOVERY_LEASE, RECOVERY_PAUSE, RECOVERY_TIME,
};
use domain::email::MAX_EMAIL_CHARS;
use domain::endpoint::{MAX_DESCRIPTION_CHARS, MAX_ENDPOINTS, MAX_SECRETS, SECRET_OVERLAP};
use domain::endpoint_health::{LEAST_EVENTS, PATIENCE, WARN_AFTER};
use domain::id::MAX_ID_CHARS;
use domain::idempotency::{LEASE, MAX_KEY_CHARS, RETENTION, SECRET_RETENTION};
use domain::key::{MAX_KEY_NAME_CHARS, MAX_LIVE_KEYS, ROTATION_OVERLAP};
use domain::list::KEY_PAGE;
use domain::rate_limit::Limit;
use domain::receiver_url::MAX_URL_CHARS;
use domain::retry::{CHAIN_HOURS, MAX_ATTEMPTS};
use domain::signature::SECRET_BYTES;
use edge::inbound::MAX_BODY_BYTES;

use super::{days_kept, stated, with_comma};

pub(super) fn settings_api() -> Vec<String> {
    let kib = MAX_BODY_BYTES / 1024;
    let (kept_h, secret_h) = (RETENTION.num_hours(), SECRET_OVERLAP.num_hours());
    let shown_min = SECRET_RETENTION.num_minutes();
    let lease_s = RECOVERY_LEASE.num_seconds();
    let digits = stated("lib/domain/src/id.rs", "const DIGITS: usize");
    let newest_mb = stated("lib/store/src/delivery/counts.rs", "const MAX_PAGES: usize");
    let mut phrases =
        ["key_", "we_", "evt_", "dlv_"].map(|id| format!("`{id}` and {digits} hexadecimal digits.")).to_vec();
    phrases.extend(
        ["RS256,", "a key set for two hours.", "are RFC 3339 in UTC", "as RFC 9457 problem details"].map(str::to_owned),
    );
    phrases.extend(["Prefix and last four characters", "its SHA-256."].map(str::to_owned));
    phrases.extend([
        format!("objects of at most {kib} KiB"),
        format!("The body has more than {kib} KiB."),
        format!("{} requests a minute for each coach", Limit::SettingsRequests.per_minute()),
        format!("1 to {max}, default {}. A larger value counts as {max},", KEY_PAGE.default, max = KEY_PAGE.max),
        format!("is empty or longer than {MAX_KEY_CHARS} characters."),
        format!("`Idempotency-Key`, 1 to {MAX_KEY_CHARS} characters."),
        format!("An `Idempotency-Key` counts for {kept_h} hours"),
        format!("replays `key` and `secret` for {shown_min} minutes"),
        format!("and its replays for {shown_min} minutes."),
        format!("For up to {} seconds after a crash", LEASE.num_seconds()),
        format!("The id has 1 to {MAX_ID_CHARS} characters of"),
        format!("(`sub`): 1 to {MAX_SUBJECT_CHARS} characters without control characters"),
        format!("| `name` | 1 to {MAX_KEY_NAME_CHARS} characters. At least one must be visible. |"),
        format!("at most {MAX_LIVE_KEYS} keys that are neither revoked nor expired"),
        format!("The old key works for {} more hours", ROTATION_OVERLAP.num_hours()),
        format!("a public host, at most {} characters", with_comma(MAX_URL_CHARS as u64)),
        format!("| `description` | At most {MAX_DESCRIPTION_CHARS} characters."),
        format!("created in the last {} hours", stated("functions/settings/src/webhooks.rs", "const COUNT_WINDOW")),
        format!("Of more than {newest_mb} MB of deliveries (some {}) the newest", with_comma(newest_mb * 1_000)),
        format!("base64 of {SECRET_BYTES} bytes"),
        format!("not resolve within {} seconds", stated("functions/settings/src/receiver.rs", "const LOOKUP")),
        format!("at most {MAX_ENDPOINTS} endpoints."),
        format!("signs beside the new one for {secret_h} hours. At most {MAX_SECRETS} secrets sign at once."),
        format!("becomes `disabled` {} days after", PATIENCE.num_days()),
        format!("if at least {LEAST_EVENTS} events failed"),
        format!("a mail after {} hours of failures", WARN_AFTER.num_hours()),
        format!("the first {} KiB of the receiver's answer", EXCERPT_BYTES / 1024),
        format!(
            "The log keeps {} days, and up to {} days more",
            DELIVERY_RETENTION.num_days(),
            CHAIN_RETENTION.num_days()
        ),
        format!("An endpoint takes {} test events a minute", Limit::TestEvents.per_minute()),
        format!("a new chain of {MAX_ATTEMPTS} attempts"),
        format!("a recovery sent less than {} minutes ago", RECOVERY_PAUSE.num_minutes()),
        format!("thousands of deliveries, within {} seconds.", RECOVERY_TIME.as_secs()),
        format!("until its last event was attempted, at most {lease_s} seconds."),
        format!("for up to {} seconds: `more: true`", COUNTING_TIME.as_secs()),
    ]);
    phrases
}

/// Phrases of documents that state other numbers too, such as measured ones.
pub(in crate::guides::numbers) fn of_other_documents() -> Vec<(&'static str, String)> {
    vec![
        (
            "infra/guides/feed.md",
            format!("an id from the last {} days", stated("lib/store/src/fact.rs", "const RETENTION")),
        ),
        (
            "infra/guides/feed.md",
            format!(
                "at most {} characters, e-mail addresses at most {MAX_EMAIL_CHARS}.",
                with_comma(stated("lib/domain/src/fact.rs", "const MAX_NAME_CHARS: usize"))
            ),
        ),
        (
            "infra/guides/feed.md",
            format!("is retried for {} minutes.", stated("functions/ingest/src/retry_limits.rs", "const WAIT")),
        ),
        (
            "infra/guides/feed.md",
            format!("The sweep does, every {} minutes", stated("template.yaml", "Schedule: rate")),
        ),
        ("infra/guides/feed.md", format!("the {MAX_TRIGGERED} active automations")),
        ("infra/guides/feed.md", format!("valid for {} seconds", ASSERTION_LIFE.num_seconds())),
        ("infra/guides/feed.md", format!("from 1 to {}, default {}", WINDOW_DAYS.max, WINDOW_DAYS.default)),
        ("README.md", format!("retries each delivery for {CHAIN_HOURS} hours")),
        ("infra/guides/capacity.md", format!("{MAX_ATTEMPTS} attempts over {CHAIN_HOURS} hours are")),
        ("infra/guides/aws-limits.md", format!("a delivery that fails for {CHAIN_HOURS} hours")),
        ("infra/guides/local-stack.md", format!("a delivery that fails for {CHAIN_HOURS} hours")),
        (
            "infra/guides/secret-rotation.md",
            format!("an assertion is good for {} seconds", ASSERTION_LIFE.num_seconds()),
        ),
        (
            "infra/guides/secret-rotation.md",
            format!("the receiver answered | {} |", days_kept("where it is sent again")),
        ),
        (
            "infra/guides/secret-rotation.md",
            format!("a password that waits for its mail | {} hours |", RETENTION.num_hours()),
        ),
    ]
}
