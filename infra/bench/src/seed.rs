//! Seed data: a coach with keys, a CRM, and a client with 90 days of records.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use domain::api_key::Permission;
use serde_json::{Value, json};

use crate::error::BenchError;
use crate::stack::{ApiCall, BenchStack, rendered, text};

pub(crate) const COACH: &str = "coach_bench";
pub(crate) const CLIENT: &str = "client_bench";
pub(crate) const LEAD: &str = "0199de00-c0de-7000-8000-000000000001";
pub(crate) const CALENDAR: &str = "0199de00-ca1e-7000-8000-000000000001";
pub(crate) const OPPORTUNITY: &str = "0199de00-0b0e-7000-8000-000000000001";
const PIPELINE: &str = "pipeline_bench";
const DAYS: i64 = 90;
/// Number of keys of each scope. A key is limited to 300 requests a minute, and the bench is faster.
const KEYS: usize = 24;

/// The keys and the session token of the credentials coach.
pub(crate) struct Credentials {
    partner_keys: Vec<String>,
    crm_keys: Vec<String>,
    pub(crate) session: String,
}

impl Credentials {
    /// Returns the partner key for the n-th call.
    pub(crate) fn partner(&self, n: usize) -> &str {
        &self.partner_keys[n % self.partner_keys.len()]
    }

    /// Returns the CRM key for the n-th call.
    pub(crate) fn crm(&self, n: usize) -> &str {
        &self.crm_keys[n % self.crm_keys.len()]
    }
}

/// Creates the seed data through the public interfaces: the bus and the settings API.
pub(crate) async fn seed(stack: &BenchStack) -> Result<Credentials, BenchError> {
    let now = stack.now();
    stack.apply_facts(vec![("workspace.saved", workspace(COACH))]).await?;
    let client = ("client.saved", client(COACH, CLIENT, now - TimeDelta::days(DAYS)));
    stack.apply_facts([vec![client], crm_records(now)].concat()).await?;
    stack.apply_facts([history(now), crm_activity(now)].concat()).await?;
    let session = stack.session(COACH)?;
    let mut credentials = Credentials { partner_keys: Vec::new(), crm_keys: Vec::new(), session };
    for _ in 0..KEYS {
        let partner = json!({ "name": "Bench", "scope": "partner" });
        let crm = json!({ "name": "Bench", "scope": "crm", "permissions": Permission::ALL });
        let made = stack.call(ApiCall::post("/settings/keys", partner).bearer(&credentials.session)).await?;
        credentials.partner_keys.push(text(&made, "key")?);
        let made = stack.call(ApiCall::post("/settings/keys", crm).bearer(&credentials.session)).await?;
        credentials.crm_keys.push(text(&made, "key")?);
    }
    Ok(credentials)
}

/// A workspace without a client cap, with all entitlements.
pub(crate) fn workspace(coach: &str) -> Value {
    json!({
        "coach_id": coach, "email": format!("{coach}@bench.example"), "name": "Bench Coaching", "team_id": null,
        "canonical_host": "https://bench.example", "time_zone": "America/New_York", "country": "US",
        "plan": { "client_cap": null }, "entitlements": { "partner_api": true, "pro_crm": true, "gym": true },
        "crm": { "pipeline_id": PIPELINE, "initial_stage": "new" },
    })
}

/// A client that the application created.
pub(crate) fn client(coach: &str, id: &str, created_at: DateTime<Utc>) -> Value {
    json!({
        "client_id": id, "coach_id": coach, "email": format!("{id}@bench.example"), "full_name": "Bench Client",
        "phone": null, "goals": null, "health_notes": null, "height_in": null, "weight_lbs": null, "is_active": true,
        "current_phase": null, "phase_started_on": null, "programme_id": null, "created_at": rendered(created_at),
        "origin": "application", "backfill": true,
    })
}

/// The client's history: a dose a day, logged on nine days of ten; a daily log each day; a check-in each week.
fn history(now: DateTime<Utc>) -> Vec<(&'static str, Value)> {
    let date = |ago: i64| (now - TimeDelta::days(ago)).date_naive();
    let dose = json!({ "dose_id": "d", "per_day": 1, "from": date(DAYS), "until": null });
    let mut facts = vec![("dose_schedule.saved", json!({ "client_id": CLIENT, "doses": [dose] }))];
    for ago in 1..=DAYS {
        let day = date(ago);
        if ago % 10 != 0 {
            let log = json!({ "client_id": CLIENT, "dose_log_id": format!("log-{day}"), "dose_id": "d", "date": day });
            facts.push(("dose.logged", log));
        }
        facts.push(("daily_log.saved", json!({ "client_id": CLIENT, "date": day })));
        if ago % 7 == 0 {
            let at = rendered(now - TimeDelta::days(ago));
            let check_in = json!({
                "client_id": CLIENT, "check_in_id": format!("check-in-{ago}"), "submitted_at": at, "scores": {}, "grades": {},
            });
            facts.push(("check_in.submitted", check_in));
        }
    }
    facts.into_iter().map(|(name, detail)| (name, backfill(detail))).collect()
}

fn backfill(mut detail: Value) -> Value {
    detail["backfill"] = json!(true);
    detail
}

fn crm_records(now: DateTime<Utc>) -> Vec<(&'static str, Value)> {
    let stages = [("new", "open"), ("qualified", "open"), ("won", "won"), ("lost", "lost")];
    let stages: Vec<Value> = stages.iter().map(|(id, kind)| json!({ "id": id, "name": id, "kind": kind })).collect();
    let all_day = json!([["00:00", "24:00"]]);
    let since = rendered(now - TimeDelta::days(30));
    [
        ("pipeline.saved", json!({ "pipeline_id": PIPELINE, "name": "Coaching", "stages": stages })),
        ("contact.saved", json!({
            "contact_id": LEAD, "name": "Lee Lead", "email": "lee@bench.example", "phone": null, "do_not_contact": false,
            "marketing": { "email": true, "sms": false },
        })),
        ("calendar.saved", json!({
            "calendar_id": CALENDAR, "name": "Call", "time_zone": "America/Phoenix", "price_cents": 0, "currency": "USD",
            "booking_url": "https://bench.example/call", "active": true, "slot_minutes": 30, "slot_interval_minutes": 30,
            "buffer_before_minutes": 0, "buffer_after_minutes": 0, "min_notice_minutes": 60, "horizon_days": 60, "overrides": {},
            "weekly": {
                "mon": all_day, "tue": all_day, "wed": all_day, "thu": all_day, "fri": all_day, "sat": all_day, "sun": all_day,
            },
        })),
        ("workflow.saved", json!({
            "workflow_id": "0199de00-f10e-7000-8000-000000000001", "name": "Welcome", "trigger": "contact_created",
            "active": true, "activated_at": since, "updated_at": since,
        })),
    ]
    .map(|(name, detail)| with_coach(name, detail))
    .into()
}

fn crm_activity(now: DateTime<Utc>) -> Vec<(&'static str, Value)> {
    let opportunity = json!({
        "opportunity_id": OPPORTUNITY, "contact_id": LEAD, "name": "Twelve weeks", "value_cents": 180_000,
        "pipeline_id": PIPELINE, "stage": "new", "lost_reason": null,
    });
    let mut facts = vec![with_coach("opportunity.saved", opportunity)];
    // Two events a day, at midnight and noon in the calendar's zone. Bookings are made at other times.
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc() + TimeDelta::hours(7);
    for n in 0..120 {
        let starts_at = midnight + TimeDelta::hours(12 * n);
        let event = json!({
            "event_id": format!("0199de00-eeee-7000-8000-{n:012}"), "calendar_id": null, "lead_id": null,
            "starts_at": rendered(starts_at), "ends_at": rendered(starts_at + TimeDelta::minutes(45)), "status": "confirmed",
        });
        facts.push(with_coach("calendar_event.saved", event));
    }
    facts
}

fn with_coach(name: &'static str, mut detail: Value) -> (&'static str, Value) {
    detail["coach_id"] = json!(COACH);
    (name, backfill(detail))
}
