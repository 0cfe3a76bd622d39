//! The fields that each fact has. Whatever else a fact carries is dropped before anybody looks at it.

use serde_json::{Map, Value};

use crate::time::parse_date;

/// What a field may hold.
#[derive(Clone, Copy)]
enum Shape {
    Scalar,
    /// An object with these scalars.
    Object(&'static [&'static str]),
    /// A list of objects with these scalars.
    List(&'static [&'static str]),
    /// An object with these lists of pairs of scalars.
    Pairs(&'static [&'static str]),
    /// An object with lists of pairs of scalars by date.
    PairsByDate,
    /// Numbers by name. They are judged and dropped, and go to no dead letter.
    Judged,
}

use Shape::{Judged, List, Object, Pairs, PairsByDate, Scalar};

type Fields = &'static [(&'static str, Shape)];

const COMMON: Fields = &[("id", Scalar), ("occurred_at", Scalar), ("backfill", Scalar)];
const CLIENT_AND_DATE: Fields = &[("client_id", Scalar), ("date", Scalar)];

fn fields_of(detail_type: &str) -> Fields {
    match detail_type {
        "workspace.saved" => &[
            ("coach_id", Scalar),
            ("email", Scalar),
            ("name", Scalar),
            ("team_id", Scalar),
            ("canonical_host", Scalar),
            ("time_zone", Scalar),
            ("country", Scalar),
            ("plan", Object(&["client_cap"])),
            ("entitlements", Object(&["partner_api", "pro_crm", "gym"])),
            ("crm", Object(&["pipeline_id", "initial_stage"])),
        ],
        "team.saved" => &[("team_id", Scalar), ("client_cap", Scalar)],
        "client.saved" => &[
            ("client_id", Scalar),
            ("coach_id", Scalar),
            ("email", Scalar),
            ("full_name", Scalar),
            ("phone", Scalar),
            ("goals", Scalar),
            ("health_notes", Scalar),
            ("height_in", Scalar),
            ("weight_lbs", Scalar),
            ("is_active", Scalar),
            ("current_phase", Scalar),
            ("phase_started_on", Scalar),
            ("programme_id", Scalar),
            ("created_at", Scalar),
            ("origin", Scalar),
        ],
        "contact.saved" => &[
            ("contact_id", Scalar),
            ("coach_id", Scalar),
            ("name", Scalar),
            ("email", Scalar),
            ("phone", Scalar),
            ("do_not_contact", Scalar),
            ("marketing", Object(&["email", "sms"])),
        ],
        "contact.merged" => &[("coach_id", Scalar), ("contact_id", Scalar), ("merged_into", Scalar)],
        "calendar.saved" => &[
            ("calendar_id", Scalar),
            ("coach_id", Scalar),
            ("name", Scalar),
            ("time_zone", Scalar),
            ("price_cents", Scalar),
            ("currency", Scalar),
            ("booking_url", Scalar),
            ("active", Scalar),
            ("slot_minutes", Scalar),
            ("slot_interval_minutes", Scalar),
            ("buffer_before_minutes", Scalar),
            ("buffer_after_minutes", Scalar),
            ("min_notice_minutes", Scalar),
            ("horizon_days", Scalar),
            ("weekly", Pairs(&["mon", "tue", "wed", "thu", "fri", "sat", "sun"])),
            ("overrides", PairsByDate),
        ],
        "calendar_event.saved" => &[
            ("event_id", Scalar),
            ("coach_id", Scalar),
            ("calendar_id", Scalar),
            ("lead_id", Scalar),
            ("starts_at", Scalar),
            ("ends_at", Scalar),
            ("status", Scalar),
        ],
        "pipeline.saved" => &[
            ("pipeline_id", Scalar),
            ("coach_id", Scalar),
            ("name", Scalar),
            ("stages", List(&["id", "name", "kind"])),
        ],
        "opportunity.saved" => &[
            ("opportunity_id", Scalar),
            ("coach_id", Scalar),
            ("contact_id", Scalar),
            ("name", Scalar),
            ("value_cents", Scalar),
            ("pipeline_id", Scalar),
            ("stage", Scalar),
            ("lost_reason", Scalar),
        ],
        "workflow.saved" => &[
            ("workflow_id", Scalar),
            ("coach_id", Scalar),
            ("name", Scalar),
            ("trigger", Scalar),
            ("active", Scalar),
            ("activated_at", Scalar),
            ("updated_at", Scalar),
        ],
        "programme.saved" => &[
            ("programme_id", Scalar),
            ("coach_id", Scalar),
            ("phases", List(&["name", "min_days", "min_compliance_pct"])),
        ],
        "automation.saved" => &[
            ("automation_id", Scalar),
            ("coach_id", Scalar),
            ("name", Scalar),
            ("active", Scalar),
            ("trigger", Object(&["event", "threshold", "days", "window_days", "question_id", "system"])),
            ("steps", List(&["kind", "endpoint_id"])),
        ],
        "automation.deleted" => &[("automation_id", Scalar), ("coach_id", Scalar)],
        "phase.advanced" => {
            &[("client_id", Scalar), ("from_phase", Scalar), ("to_phase", Scalar), ("advanced_at", Scalar)]
        }
        "dose_schedule.saved" => &[("client_id", Scalar), ("doses", List(&["dose_id", "per_day", "from", "until"]))],
        "dose.logged" => &[("client_id", Scalar), ("dose_log_id", Scalar), ("dose_id", Scalar), ("date", Scalar)],
        "dose_log.deleted" => &[("client_id", Scalar), ("dose_log_id", Scalar)],
        "daily_log.saved" | "daily_log.deleted" => CLIENT_AND_DATE,
        "check_in.submitted" => &[
            ("client_id", Scalar),
            ("check_in_id", Scalar),
            ("submitted_at", Scalar),
            ("scores", Judged),
            ("grades", Judged),
        ],
        "check_in.reviewed" => &[("client_id", Scalar), ("check_in_id", Scalar), ("reviewed_at", Scalar)],
        "check_in.deleted" => &[("client_id", Scalar), ("check_in_id", Scalar)],
        "message.received" => &[("client_id", Scalar), ("message_id", Scalar), ("received_at", Scalar)],
        "client.erased" => &[("client_id", Scalar)],
        _ => &[],
    }
}

/// Whether a fact has that name.
pub fn is_known(detail_type: &str) -> bool {
    !fields_of(detail_type).is_empty()
}

/// `detail` with nothing in it but what the fact's fields may hold.
pub fn cleaned(detail_type: &str, detail: &Value) -> Value {
    keep(detail_type, detail, |shape, value| match (shape, value) {
        (Object(names), Value::Object(object)) => Some(Value::Object(scalars(object, names))),
        (List(names), Value::Array(items)) => {
            // What is no object is left as a null for the parser to refuse.
            let kept = items.iter().map(|item| item.as_object().map(|object| Value::Object(scalars(object, names))));
            Some(Value::Array(kept.map(Option::unwrap_or_default).collect()))
        }
        (Pairs(names), Value::Object(object)) => {
            let known = object.iter().filter(|(name, _)| names.contains(&name.as_str()));
            Some(Value::Object(known.map(|(name, value)| (name.clone(), pairs(value))).collect()))
        }
        (PairsByDate, Value::Object(object)) => {
            // A name that is no date might say anything.
            let dated = object.keys().all(|name| parse_date(name).is_some());
            let kept = || object.iter().map(|(name, value)| (name.clone(), pairs(value))).collect();
            Some(if dated { Value::Object(kept()) } else { Value::Null })
        }
        (Judged, Value::Object(object)) => {
            let numbers = object
                .iter()
                .map(|(name, value)| (name.clone(), if value.is_number() { value.clone() } else { Value::Null }));
            Some(Value::Object(numbers.collect()))
        }
        (Scalar | Object(_) | Pairs(_) | PairsByDate, value) if is_scalar(value) => Some(value.clone()),
        _ => None,
    })
}

/// A cleaned `detail` as it may lie among the dead letters: without what is judged and dropped.
pub fn without_judged(detail_type: &str, detail: &Value) -> Value {
    keep(detail_type, detail, |shape, value| if matches!(shape, Judged) { None } else { Some(value.clone()) })
}

fn keep(detail_type: &str, detail: &Value, kept: impl Fn(Shape, &Value) -> Option<Value>) -> Value {
    let own = fields_of(detail_type);
    let shape_of = |name: &str| own.iter().chain(COMMON).find(|(known, _)| *known == name).map(|(_, shape)| *shape);
    let members = detail.as_object().into_iter().flatten();
    let members = members.filter_map(|(name, value)| Some((name.clone(), kept(shape_of(name)?, value)?)));
    Value::Object(members.collect())
}

fn scalars(object: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let known = object.iter().filter(|(name, value)| names.contains(&name.as_str()) && is_scalar(value));
    known.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A list of pairs of scalars. What is none is left as a null for the parser to refuse.
fn pairs(list: &Value) -> Value {
    let pair = |item: &Value| match item {
        Value::Array(pair) if pair.len() == 2 && pair.iter().all(is_scalar) => item.clone(),
        _ => Value::Null,
    };
    list.as_array().map_or(Value::Null, |list| Value::Array(list.iter().map(pair).collect()))
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cleaning_keeps_known_scalars_and_nothing_else() {
        let fact = json!({"id": "f1", "full_name": "Ada", "diary": "SECRET", "goals": {"nested": "SECRET"}});
        let clean = cleaned("client.saved", &fact);
        assert_eq!(clean, json!({"id": "f1", "full_name": "Ada"}));
        let workspace = json!({"id": "f", "plan": {"client_cap": 1, "card": "SECRET"}, "crm": null});
        assert_eq!(cleaned("workspace.saved", &workspace), json!({"id": "f", "plan": {"client_cap": 1}, "crm": null}));
        assert_eq!(cleaned("no.such", &json!({"id": "f", "x": "SECRET"})), json!({"id": "f"}));
        assert_eq!(cleaned("client.saved", &json!(["SECRET"])), json!({}));
    }

    #[test]
    fn cleaning_keeps_pairs_of_times_by_day_and_date() {
        let calendar = json!({
            "weekly": {
                "mon": [["09:00", "10:00"], ["09:00", "10:00", "SECRET"], ["09:00", {"x": "SECRET"}], {"x": "SECRET"}],
                "tue": "SECRET", "wed": [], "holiday": [["SECRET", "SECRET"]]
            },
            "overrides": {"2026-12-24": [["09:00", "10:00"], ["SECRET"]], "2026-12-25": {"x": "SECRET"}},
            "notes": "SECRET"
        });
        let clean = json!({
            "weekly": {"mon": [["09:00", "10:00"], null, null, null], "tue": null, "wed": []},
            "overrides": {"2026-12-24": [["09:00", "10:00"], null], "2026-12-25": null}
        });
        assert_eq!(cleaned("calendar.saved", &calendar), clean);
        let undated = json!({"overrides": {"2026-12-24": [], "SECRET": []}, "weekly": [["SECRET"]]});
        assert_eq!(cleaned("calendar.saved", &undated), json!({"overrides": null}));
        let event = json!({"event_id": "e", "lead_id": null, "title": "SECRET", "status": {"x": "SECRET"}});
        assert_eq!(cleaned("calendar_event.saved", &event), json!({"event_id": "e", "lead_id": null}));
    }

    #[test]
    fn cleaning_reaches_into_lists_and_judged_numbers() {
        let programme =
            json!({"phases": [{"name": "Base", "min_days": 7, "notes": "SECRET", "name2": ["SECRET"]}, "SECRET"]});
        assert_eq!(cleaned("programme.saved", &programme), json!({"phases": [{"name": "Base", "min_days": 7}, null]}));
        let check_in = json!({"check_in_id": "k", "scores": {"q1": 3, "q2": "SECRET"}, "grades": ["SECRET"], "answers": {"q1": "SECRET"}});
        let clean = cleaned("check_in.submitted", &check_in);
        assert_eq!(clean, json!({"check_in_id": "k", "scores": {"q1": 3, "q2": null}}));
        assert_eq!(without_judged("check_in.submitted", &clean), json!({"check_in_id": "k"}));
    }
}
