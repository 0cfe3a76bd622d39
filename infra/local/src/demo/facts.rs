//! The demo's facts: a workspace, and a client with two weeks of history.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};

use super::COACH_ID;
use super::crm::{INITIAL_STAGE, PIPELINE_ID};
use crate::control::rendered;

/// The demo's only client.
pub const CLIENT_ID: &str = "client_demo";
const DOSE_ID: &str = "dose_magnesium";
/// Days of the client's history.
const DAYS: i64 = 14;

/// A fact's name and its detail.
pub type Fact = (&'static str, Value);

/// The client's doses, daily logs and check-ins so far.
pub(super) fn history(now: DateTime<Utc>) -> Vec<Fact> {
    let date = |ago: i64| (now - TimeDelta::days(ago)).date_naive();
    let dose = json!({ "dose_id": DOSE_ID, "per_day": 1, "from": date(DAYS), "until": null });
    let mut facts = vec![("dose_schedule.saved", json!({ "client_id": CLIENT_ID, "doses": [dose] }))];
    for ago in 1..=DAYS {
        // Some days are missing, so that compliance is below 100 %.
        if ago % 4 != 0 {
            facts.push(("dose.logged", dose_log(date(ago))));
        }
        if ago % 5 != 0 {
            facts.push(("daily_log.saved", json!({ "client_id": CLIENT_ID, "date": date(ago) })));
        }
    }
    for ago in [DAYS, DAYS / 2] {
        facts.push(("check_in.submitted", check_in(now - TimeDelta::days(ago))));
    }
    facts.into_iter().enumerate().map(|(n, (name, detail))| backfill_fact(now, n, name, detail)).collect()
}

/// The workspace, whose clients sign in at `base_url`.
pub fn workspace(now: DateTime<Utc>, base_url: &str) -> Fact {
    let detail = json!({
        "coach_id": COACH_ID, "email": "coach@demo.example", "name": "Demo Coaching", "team_id": null,
        "canonical_host": base_url, "time_zone": "America/New_York", "country": "US", "plan": { "client_cap": 50 },
        "entitlements": { "partner_api": true, "pro_crm": true, "gym": true },
        "crm": { "pipeline_id": PIPELINE_ID, "initial_stage": INITIAL_STAGE },
    });
    backfill_fact(now, 0, "workspace.saved", detail)
}

/// Builds a backfill fact, which emits no events.
pub(super) fn backfill_fact(now: DateTime<Utc>, n: usize, name: &'static str, mut detail: Value) -> Fact {
    detail["id"] = json!(format!("demo-{}-{n}-{name}", now.timestamp_millis()));
    detail["occurred_at"] = json!(rendered(now));
    detail["backfill"] = json!(true);
    (name, detail)
}

/// The client's master data.
pub fn client(now: DateTime<Utc>) -> Fact {
    let detail = json!({
        "client_id": CLIENT_ID, "coach_id": COACH_ID, "email": "katherine@demo.example", "full_name": "Katherine Johnson",
        "phone": "+1 212 555 0199", "goals": "Sleep eight hours", "health_notes": null, "height_in": 65, "weight_lbs": null,
        "is_active": true, "current_phase": "Base", "phase_started_on": (now - TimeDelta::days(DAYS)).date_naive(),
        "programme_id": null, "created_at": rendered(now - TimeDelta::days(DAYS + 1)), "origin": "application",
    });
    backfill_fact(now, 0, "client.saved", detail)
}

/// The coach's automation for inactive clients, with a webhook step to the endpoint.
pub(super) fn automation(now: DateTime<Utc>, endpoint_id: &str) -> Fact {
    let detail = json!({
        "automation_id": "automation_demo", "coach_id": COACH_ID, "name": "Three days without a log", "active": true,
        "trigger": { "event": "daily_log_inactivity", "days": 3 },
        "steps": [{ "kind": "webhook", "endpoint_id": endpoint_id }],
    });
    backfill_fact(now, 0, "automation.saved", detail)
}

fn dose_log(date: NaiveDate) -> Value {
    json!({ "client_id": CLIENT_ID, "dose_log_id": format!("dose_log_{date}"), "dose_id": DOSE_ID, "date": date })
}

fn check_in(at: DateTime<Utc>) -> Value {
    let id = format!("check_in_{}", at.date_naive());
    json!({ "client_id": CLIENT_ID, "check_in_id": id, "submitted_at": rendered(at), "scores": {}, "grades": {} })
}
