//! The demo's CRM facts: a pipeline, contacts, an opportunity, calendars with events, a workflow.

use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc, Weekday};
use serde_json::{Value, json};

use super::COACH_ID;
use super::facts::{Fact, backfill_fact};
use crate::control::rendered;

/// The pipeline that the workspace uses for the API.
pub(super) const PIPELINE_ID: &str = "pipeline_demo";
/// The pipeline's initial stage.
pub(super) const INITIAL_STAGE: &str = "new";

/// A contact with an opportunity.
pub const LEAD_ID: &str = "0199de00-c0de-7000-8000-000000000001";
const CALLED_ID: &str = "0199de00-c0de-7000-8000-000000000002";
/// The contact's opportunity.
pub const OPPORTUNITY_ID: &str = "0199de00-0b0e-7000-8000-000000000001";
/// The calendar of free calls.
pub const CALL_CALENDAR_ID: &str = "0199de00-ca1e-7000-8000-000000000001";
const REVIEW_CALENDAR_ID: &str = "0199de00-ca1e-7000-8000-000000000002";
const BOOKING_ID: &str = "0199de00-eeee-7000-8000-000000000001";
const PRIVATE_ID: &str = "0199de00-eeee-7000-8000-000000000002";
const WORKFLOW_ID: &str = "0199de00-f10e-7000-8000-000000000001";

/// Facts without references: pipeline, contacts, calendars and workflow.
pub(super) fn base_facts(now: DateTime<Utc>) -> Vec<Fact> {
    let facts = vec![
        ("pipeline.saved", pipeline()),
        ("contact.saved", contact(LEAD_ID, "Dorothy Vaughan", "dorothy@demo.example", "+1 212 555 0161")),
        ("contact.saved", contact(CALLED_ID, "Mary Jackson", "mary@demo.example", "+1 212 555 0162")),
        ("calendar.saved", calendar(CALL_CALENDAR_ID, "Introduction call", 30, 0)),
        ("calendar.saved", calendar(REVIEW_CALENDAR_ID, "Programme review", 60, 12_000)),
        ("workflow.saved", workflow(now)),
    ];
    backfill_facts(now, facts)
}

/// Facts that refer to those of `base_facts`: the opportunity and the calendar events.
pub(super) fn dependent_facts(now: DateTime<Utc>) -> Vec<Fact> {
    let on = |days: usize, hour: u32| at(workday(now.date_naive(), days), hour);
    let call = json!({ "event_id": BOOKING_ID, "calendar_id": CALL_CALENDAR_ID, "lead_id": CALLED_ID });
    let private = json!({ "event_id": PRIVATE_ID, "calendar_id": null, "lead_id": null });
    let facts = vec![
        ("opportunity.saved", opportunity()),
        ("calendar_event.saved", event(call, on(2, 15), TimeDelta::minutes(30))),
        ("calendar_event.saved", event(private, on(1, 17), TimeDelta::hours(2))),
    ];
    backfill_facts(now, facts)
}

fn backfill_facts(now: DateTime<Utc>, facts: Vec<Fact>) -> Vec<Fact> {
    let with_coach = |mut detail: Value| {
        detail["coach_id"] = json!(COACH_ID);
        detail
    };
    facts.into_iter().enumerate().map(|(n, (name, detail))| backfill_fact(now, n, name, with_coach(detail))).collect()
}

fn pipeline() -> Value {
    let stages = [
        (INITIAL_STAGE, "New", "open"),
        ("qualified", "Qualified", "open"),
        ("proposal", "Proposal sent", "open"),
        ("won", "Won", "won"),
        ("lost", "Lost", "lost"),
    ];
    let stages = stages.map(|(id, name, kind)| json!({ "id": id, "name": name, "kind": kind }));
    json!({ "pipeline_id": PIPELINE_ID, "name": "Coaching", "stages": stages })
}

fn contact(id: &str, name: &str, email: &str, phone: &str) -> Value {
    json!({
        "contact_id": id, "name": name, "email": email, "phone": phone, "do_not_contact": false,
        "marketing": { "email": true, "sms": false },
    })
}

fn opportunity() -> Value {
    json!({
        "opportunity_id": OPPORTUNITY_ID, "contact_id": LEAD_ID, "name": "Twelve weeks", "value_cents": 180_000,
        "pipeline_id": PIPELINE_ID, "stage": "qualified", "lost_reason": null,
    })
}

/// A calendar that is open every day except Sunday.
pub fn calendar(id: &str, name: &str, minutes: u32, price_cents: u32) -> Value {
    let (workday, saturday) = (json!([["09:00", "12:00"], ["13:00", "17:00"]]), json!([["10:00", "14:00"]]));
    json!({
        "calendar_id": id, "name": name, "time_zone": "America/New_York", "price_cents": price_cents, "currency": "USD",
        "booking_url": format!("https://demo.example/book/{id}"), "active": true, "slot_minutes": minutes,
        "slot_interval_minutes": 30, "buffer_before_minutes": 0, "buffer_after_minutes": 15, "min_notice_minutes": 60,
        "horizon_days": 14, "overrides": {},
        "weekly": {
            "mon": workday, "tue": workday, "wed": workday, "thu": workday, "fri": workday, "sat": saturday, "sun": [],
        },
    })
}

fn event(mut detail: Value, starts_at: DateTime<Utc>, lasts: TimeDelta) -> Value {
    detail["starts_at"] = json!(rendered(starts_at));
    detail["ends_at"] = json!(rendered(starts_at + lasts));
    detail["status"] = json!("confirmed");
    detail
}

fn workflow(now: DateTime<Utc>) -> Value {
    let activated_at = rendered(now - TimeDelta::days(30));
    json!({
        "workflow_id": WORKFLOW_ID, "name": "Welcome", "trigger": "contact_created", "active": true,
        "activated_at": activated_at, "updated_at": activated_at,
    })
}

/// Returns the date after `days` days, not counting Sundays.
fn workday(from: NaiveDate, days: usize) -> NaiveDate {
    let open = from.iter_days().skip(1).filter(|date| date.weekday() != Weekday::Sun);
    open.take(days).last().unwrap_or(from)
}

/// Returns the start of an hour, UTC.
fn at(date: NaiveDate, hour: u32) -> DateTime<Utc> {
    let midnight = date.and_time(chrono::NaiveTime::MIN).and_utc();
    midnight + TimeDelta::hours(i64::from(hour))
}
