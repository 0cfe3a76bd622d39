//! Facts about coaches' CRM data.

use serde_json::{Value, json};

use super::aws::{Fact, fact};

/// The pipeline that the tests' workspaces configure, with stages `new`, `warm`, `lost`, `won`.
pub(crate) const PIPELINE: &str = "pipeline-1";

/// A UUID that contains its number.
pub(crate) fn uuid(number: u64) -> String {
    format!("00000000-0000-7000-8000-{number:012}")
}

impl Fact {
    /// The configured pipeline of a coach.
    pub(crate) fn pipeline(coach_id: &str) -> Self {
        let stage = |id: &str, kind: &str| json!({ "id": id, "name": format!("Stage {id}"), "kind": kind });
        let stages = [stage("new", "open"), stage("warm", "open"), stage("lost", "lost"), stage("won", "won")];
        let detail = json!({ "pipeline_id": PIPELINE, "coach_id": coach_id, "name": "Sales", "stages": stages });
        fact("pipeline.saved", detail)
    }

    /// An opportunity of a contact, in the first stage of the configured pipeline.
    pub(crate) fn opportunity(coach_id: &str, opportunity_id: &str, contact_id: &str) -> Self {
        let detail = json!({
            "opportunity_id": opportunity_id, "coach_id": coach_id, "contact_id": contact_id, "name": "Package",
            "value_cents": 25_000, "pipeline_id": PIPELINE, "stage": "new", "lost_reason": null,
        });
        fact("opportunity.saved", detail)
    }

    /// A workflow of a coach.
    pub(crate) fn workflow(coach_id: &str, workflow_id: &str) -> Self {
        let detail = json!({
            "workflow_id": workflow_id, "coach_id": coach_id, "name": "Nurture", "trigger": "lead_created", "active": true,
            "activated_at": "2026-01-02T03:04:05.678Z", "updated_at": "2026-02-03T04:05:06.789Z",
        });
        fact("workflow.saved", detail)
    }

    /// A calendar without charge, open around the clock in UTC for the next 400 days.
    pub(crate) fn calendar(coach_id: &str, calendar_id: &str) -> Self {
        let day = json!([["00:00", "24:00"]]);
        let detail = json!({
            "calendar_id": calendar_id, "coach_id": coach_id, "name": "Calls", "time_zone": "UTC", "price_cents": 0,
            "currency": "USD", "booking_url": format!("https://{coach_id}.example/book"), "active": true,
            "slot_minutes": 60, "slot_interval_minutes": 60, "buffer_before_minutes": 0, "buffer_after_minutes": 0,
            "min_notice_minutes": 0, "horizon_days": 400, "overrides": {},
            "weekly": { "mon": day, "tue": day, "wed": day, "thu": day, "fri": day, "sat": day, "sun": day },
        });
        fact("calendar.saved", detail)
    }
}

/// The ids of a page's items.
pub(crate) fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect()
}
