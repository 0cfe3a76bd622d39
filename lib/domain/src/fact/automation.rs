//! Facts about a coach's automations: the whole record, and the deletion.

use serde_json::Value;

use super::values::{MAX_NAME_CHARS, name};
use crate::automation::{Automation, Step, Trigger};
use crate::fields::{Fields, Invalid, LEAST_NUMBER};
use crate::id::{AutomationId, CoachId, EndpointId, MAX_ID_CHARS};

const MAX_STEPS: usize = 100;
const MAX_KIND_CHARS: usize = 128;
/// A limit above any score, and within the range of every store.
const MAX_SCORE: f64 = 1_000_000.0;
const MAX_WINDOW_DAYS: u32 = 90;
const DEFAULT_WINDOW_DAYS: u32 = 7;
/// Ten years.
const MAX_INACTIVE_DAYS: u32 = 3_650;

pub(super) fn automation(fields: Fields<'_>) -> Result<Automation, Invalid> {
    let (id, coach_id) = deleted(fields)?;
    let steps = fields.required_objects("steps", "steps.", MAX_STEPS)?;
    Ok(Automation {
        id,
        coach_id,
        name: name(fields, "name")?,
        active: fields.required_boolean("active")?,
        trigger: trigger(fields.required_object("trigger", "trigger.")?)?,
        steps: steps.into_iter().map(step).collect::<Result<_, Invalid>>()?,
    })
}

pub(super) fn deleted(fields: Fields<'_>) -> Result<(AutomationId, CoachId), Invalid> {
    Ok((
        fields.required("automation_id", MAX_ID_CHARS, AutomationId::parse)?,
        fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?,
    ))
}

/// Fields that belong to another event's trigger are ignored.
fn trigger(fields: Fields<'_>) -> Result<Trigger, Invalid> {
    let text = |name| fields.text(name, MAX_NAME_CHARS).map(|text| text.map(str::to_owned));
    Ok(match fields.required_text("event", MAX_ID_CHARS)? {
        "new_client" => Trigger::NewClient,
        "check_in_submitted" => Trigger::CheckInSubmitted,
        "phase_advanced" => Trigger::PhaseAdvanced,
        "message_received" => Trigger::MessageReceived,
        "low_check_in_score" => {
            let threshold = number(fields, -MAX_SCORE, MAX_SCORE)?;
            Trigger::LowCheckInScore { threshold, question_id: text("question_id")? }
        }
        "system_grade_drop" => Trigger::SystemGradeDrop { system: text("system")? },
        "compliance_drop" => {
            Trigger::ComplianceDrop { threshold: number(fields, 0.0, 100.0)?, window_days: window(fields)? }
        }
        "compliance_milestone" => {
            Trigger::ComplianceMilestone { threshold: number(fields, 0.0, 100.0)?, window_days: window(fields)? }
        }
        "phase_eligible" => Trigger::PhaseEligible,
        "check_in_inactivity" => {
            Trigger::CheckInInactivity { days: fields.required_within("days", 1..=MAX_INACTIVE_DAYS)? }
        }
        "daily_log_inactivity" => {
            Trigger::DailyLogInactivity { days: fields.required_within("days", 1..=MAX_INACTIVE_DAYS)? }
        }
        _ => return Err(fields.refuse("event", "is not the name of an event")),
    })
}

fn number(fields: Fields<'_>, least: f64, most: f64) -> Result<f64, Invalid> {
    let rule = || fields.refuse("threshold", format_args!("is required and must be a number from {least} to {most}"));
    let given = fields.value("threshold").and_then(Value::as_f64).filter(|number| (least..=most).contains(number));
    let given = given.ok_or_else(rule)?;
    // A number too close to 0 for the store becomes the closest one that fits.
    Ok(if given == 0.0 { 0.0 } else { given.abs().max(LEAST_NUMBER).copysign(given) })
}

fn window(fields: Fields<'_>) -> Result<u32, Invalid> {
    let days = fields.count("window_days")?.unwrap_or(DEFAULT_WINDOW_DAYS);
    fields.within("window_days", days, 1..=MAX_WINDOW_DAYS)
}

/// Reads a step. Of a step that the application carries out, only the kind is stored.
fn step(fields: Fields<'_>) -> Result<Step, Invalid> {
    match fields.required_text("kind", MAX_KIND_CHARS)? {
        "webhook" => {
            Ok(Step::Webhook { endpoint_id: fields.required("endpoint_id", MAX_ID_CHARS, EndpointId::parse)? })
        }
        kind => Ok(Step::Other { kind: kind.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::tests::assert_every_field_counts;
    use crate::fact::{Fact, FactBody, cleaned};
    use serde_json::json;

    fn saved(trigger: Value) -> Value {
        json!({
            "id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "automation_id": "a1", "coach_id": "c1", "name": "Rule",
            "active": true, "trigger": trigger, "steps": [{"kind": "webhook", "endpoint_id": "we_1"}, {"kind": "email"}],
        })
    }

    fn parse(trigger: Value) -> Result<Trigger, Invalid> {
        match Fact::parse("automation.saved", &saved(trigger))?.body {
            FactBody::AutomationSaved(automation) => Ok(automation.trigger),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_trigger_has_the_fields_of_its_event() {
        let any = None;
        for (trigger, read) in [
            (json!({"event": "new_client"}), Trigger::NewClient),
            (json!({"event": "check_in_submitted", "threshold": "of no concern"}), Trigger::CheckInSubmitted),
            (json!({"event": "phase_advanced", "days": null}), Trigger::PhaseAdvanced),
            (json!({"event": "message_received"}), Trigger::MessageReceived),
            (
                json!({"event": "low_check_in_score", "threshold": 3}),
                Trigger::LowCheckInScore { threshold: 3.0, question_id: any },
            ),
            (
                json!({"event": "low_check_in_score", "threshold": -2.5, "question_id": "sleep"}),
                Trigger::LowCheckInScore { threshold: -2.5, question_id: Some("sleep".to_owned()) },
            ),
            (json!({"event": "system_grade_drop"}), Trigger::SystemGradeDrop { system: None }),
            (
                json!({"event": "system_grade_drop", "system": "gut"}),
                Trigger::SystemGradeDrop { system: Some("gut".to_owned()) },
            ),
            (
                json!({"event": "compliance_drop", "threshold": 60}),
                Trigger::ComplianceDrop { threshold: 60.0, window_days: 7 },
            ),
            (
                json!({"event": "compliance_milestone", "threshold": 100, "window_days": 90}),
                Trigger::ComplianceMilestone { threshold: 100.0, window_days: 90 },
            ),
            (json!({"event": "phase_eligible"}), Trigger::PhaseEligible),
            (json!({"event": "check_in_inactivity", "days": 10}), Trigger::CheckInInactivity { days: 10 }),
            (json!({"event": "daily_log_inactivity", "days": 1}), Trigger::DailyLogInactivity { days: 1 }),
        ] {
            let parsed = parse(trigger).unwrap();
            assert_eq!(parsed, read);
            let stored = serde_json::to_string(&parsed).unwrap();
            assert_eq!(serde_json::from_str::<Trigger>(&stored).unwrap(), parsed);
        }
    }

    #[test]
    fn an_error_of_a_trigger_names_its_field() {
        for (field, trigger) in [
            ("trigger", json!(null)),
            ("trigger", json!("new_client")),
            ("trigger.event", json!({})),
            ("trigger.event", json!({"event": "new_moon"})),
            ("trigger.event", json!({"event": 5})),
            ("trigger.threshold", json!({"event": "low_check_in_score"})),
            ("trigger.threshold", json!({"event": "low_check_in_score", "threshold": "3"})),
            ("trigger.threshold", json!({"event": "low_check_in_score", "threshold": 1e300})),
            ("trigger.question_id", json!({"event": "low_check_in_score", "threshold": 3, "question_id": 3})),
            ("trigger.question_id", json!({"event": "low_check_in_score", "threshold": 3, "question_id": ""})),
            ("trigger.system", json!({"event": "system_grade_drop", "system": true})),
            ("trigger.threshold", json!({"event": "compliance_drop"})),
            ("trigger.threshold", json!({"event": "compliance_drop", "threshold": 101})),
            ("trigger.threshold", json!({"event": "compliance_milestone", "threshold": -1})),
            ("trigger.window_days", json!({"event": "compliance_drop", "threshold": 60, "window_days": 0})),
            ("trigger.window_days", json!({"event": "compliance_drop", "threshold": 60, "window_days": 7.5})),
            ("trigger.days", json!({"event": "check_in_inactivity"})),
            ("trigger.days", json!({"event": "daily_log_inactivity", "days": 0})),
            ("trigger.days", json!({"event": "daily_log_inactivity", "days": "3"})),
        ] {
            assert_eq!(parse(trigger.clone()).unwrap_err().field.as_deref(), Some(field), "{trigger}");
        }
    }

    #[test]
    fn a_missing_field_is_named_and_other_steps_keep_only_their_kind() {
        let whole = saved(json!({"event": "new_client"}));
        assert_every_field_counts("automation.saved", &whole, &[]);
        for (field, steps) in [
            ("steps", json!({})),
            ("steps", json!(["webhook"])),
            ("steps.kind", json!([{}])),
            ("steps.endpoint_id", json!([{"kind": "webhook"}])),
            ("steps.endpoint_id", json!([{"kind": "webhook", "endpoint_id": "a b"}])),
        ] {
            let mut fact = whole.clone();
            fact["steps"] = steps;
            assert_eq!(Fact::parse("automation.saved", &fact).unwrap_err().field.as_deref(), Some(field));
        }
        let mut fact = whole;
        fact["steps"][1]["endpoint_id"] = json!("not an id");
        fact["steps"][1]["text"] = json!("SECRET");
        fact["trigger"]["note"] = json!("SECRET");
        let clean = cleaned("automation.saved", &fact);
        assert!(!clean.to_string().contains("SECRET"));
        let FactBody::AutomationSaved(automation) = Fact::parse("automation.saved", &clean).unwrap().body else {
            panic!("an automation")
        };
        assert_eq!(automation.steps[1], Step::Other { kind: "email".to_owned() });
        assert_eq!(automation.endpoints(), [EndpointId::parse("we_1").unwrap()]);
    }

    #[test]
    fn a_deletion_names_the_automation_and_its_coach() {
        let whole = json!({"id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "automation_id": "a1", "coach_id": "c1"});
        assert_every_field_counts("automation.deleted", &whole, &[]);
    }
}
