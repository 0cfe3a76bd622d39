//! The fact about a coach's automation.

use std::fmt::Display;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::automation::{Automation, Step, Trigger};
use crate::fact_values::{MAX_NAME_CHARS, name, object, objects, rule_of, scalar, storable, text};
use crate::fields::whole;
use crate::id::{AutomationId, CoachId, EndpointId, MAX_ID_CHARS};

const MAX_STEPS: usize = 100;
const MAX_KIND_CHARS: usize = 128;
/// A limit above any score, and within the range of every store.
const MAX_SCORE: f64 = 1_000_000.0;
const MAX_WINDOW_DAYS: u32 = 90;
const DEFAULT_WINDOW_DAYS: u32 = 7;
/// Ten years.
const MAX_INACTIVE_DAYS: u32 = 3_650;

#[derive(Deserialize)]
#[serde(remote = "Automation")]
pub(super) struct AutomationSaved {
    #[serde(rename = "automation_id")]
    id: AutomationId,
    coach_id: CoachId,
    #[serde(deserialize_with = "name")]
    name: String,
    active: bool,
    #[serde(deserialize_with = "trigger")]
    trigger: Trigger,
    #[serde(deserialize_with = "steps")]
    steps: Vec<Step>,
}

/// A trigger with the fields of every event. The fields of another event than its own are ignored.
#[derive(Deserialize)]
struct AnyTrigger {
    #[serde(deserialize_with = "text::<MAX_ID_CHARS, _>")]
    event: String,
    #[serde(default, deserialize_with = "scalar")]
    threshold: Option<Value>,
    #[serde(default, deserialize_with = "scalar")]
    days: Option<Value>,
    #[serde(default, deserialize_with = "scalar")]
    window_days: Option<Value>,
    #[serde(default, deserialize_with = "scalar")]
    question_id: Option<Value>,
    #[serde(default, deserialize_with = "scalar")]
    system: Option<Value>,
}

impl AnyTrigger {
    fn of_its_event(&self) -> Result<Trigger, String> {
        Ok(match self.event.as_str() {
            "new_client" => Trigger::NewClient,
            "check_in_submitted" => Trigger::CheckInSubmitted,
            "phase_advanced" => Trigger::PhaseAdvanced,
            "message_received" => Trigger::MessageReceived,
            "low_check_in_score" => Trigger::LowCheckInScore {
                threshold: self.threshold(-MAX_SCORE, MAX_SCORE)?,
                question_id: any_name("question_id", self.question_id.as_ref())?,
            },
            "system_grade_drop" => Trigger::SystemGradeDrop { system: any_name("system", self.system.as_ref())? },
            "compliance_drop" => {
                Trigger::ComplianceDrop { threshold: self.threshold(0.0, 100.0)?, window_days: self.window()? }
            }
            "compliance_milestone" => {
                Trigger::ComplianceMilestone { threshold: self.threshold(0.0, 100.0)?, window_days: self.window()? }
            }
            "phase_eligible" => Trigger::PhaseEligible,
            "check_in_inactivity" => Trigger::CheckInInactivity { days: self.days()? },
            "daily_log_inactivity" => Trigger::DailyLogInactivity { days: self.days()? },
            _ => return Err(rule_of("event", "is not the name of an event")),
        })
    }

    fn threshold(&self, least: f64, most: f64) -> Result<f64, String> {
        let given = self.threshold.as_ref().and_then(Value::as_f64).filter(|number| (least..=most).contains(number));
        let rule = format_args!("is required and must be a number from {least} to {most}");
        given.map(storable).ok_or_else(|| rule_of("threshold", rule))
    }

    fn days(&self) -> Result<u32, String> {
        days("days", self.days.as_ref(), MAX_INACTIVE_DAYS)
    }

    fn window(&self) -> Result<u32, String> {
        match &self.window_days {
            None => Ok(DEFAULT_WINDOW_DAYS),
            given => days("window_days", given.as_ref(), MAX_WINDOW_DAYS),
        }
    }
}

fn days(field: &str, given: Option<&Value>, most: u32) -> Result<u32, String> {
    let days = given.and_then(|days| whole(days, most.into())).filter(|days| *days > 0);
    days.map(|days| days as u32).ok_or_else(|| rule_of(field, format_args!("must be an integer from 1 to {most}")))
}

fn any_name(field: &str, given: Option<&Value>) -> Result<Option<String>, String> {
    let is_name = |text: &&str| (1..=MAX_NAME_CHARS).contains(&text.chars().count());
    let rule = || rule_of(field, format_args!("must be a string of 1 to {MAX_NAME_CHARS} characters"));
    given.map(|given| given.as_str().filter(is_name).map(str::to_owned).ok_or_else(rule)).transpose()
}

fn trigger<'de, D: Deserializer<'de>>(input: D) -> Result<Trigger, D::Error> {
    object::<_, AnyTrigger>(input)?.of_its_event().map_err(D::Error::custom)
}

/// A step. Of a step that the application carries out, only the kind is stored.
#[derive(Deserialize)]
struct AnyStep {
    #[serde(deserialize_with = "text::<MAX_KIND_CHARS, _>")]
    kind: String,
    #[serde(default, deserialize_with = "scalar")]
    endpoint_id: Option<Value>,
}

fn steps<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Step>, D::Error> {
    let rule = |rule: &dyn Display| D::Error::custom(rule_of("endpoint_id", rule));
    let steps = objects::<MAX_STEPS, D, AnyStep>(input)?.into_iter().map(|step| match step.kind.as_str() {
        "webhook" => {
            let id = step.endpoint_id.as_ref().and_then(Value::as_str).ok_or_else(|| rule(&"must be a string"))?;
            Ok(Step::Webhook { endpoint_id: EndpointId::parse(id).map_err(|why| rule(&why))? })
        }
        _ => Ok(Step::Other { kind: step.kind }),
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::tests::assert_every_field_counts;
    use crate::fact::{Fact, FactBody, known_fields};
    use crate::fields::Invalid;
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
        let low = |threshold, question: Option<&str>| {
            let question_id = question.map(str::to_owned);
            Trigger::LowCheckInScore { threshold, question_id }
        };
        let drop = |system: Option<&str>| Trigger::SystemGradeDrop { system: system.map(str::to_owned) };
        for (mut trigger, event, read) in [
            (json!({}), "new_client", Trigger::NewClient),
            (json!({ "threshold": "of no concern" }), "check_in_submitted", Trigger::CheckInSubmitted),
            (json!({ "days": null }), "phase_advanced", Trigger::PhaseAdvanced),
            (json!({}), "message_received", Trigger::MessageReceived),
            (json!({ "threshold": 3 }), "low_check_in_score", low(3.0, None)),
            (json!({ "threshold": -2.5, "question_id": "sleep" }), "low_check_in_score", low(-2.5, Some("sleep"))),
            (json!({}), "system_grade_drop", drop(None)),
            (json!({ "system": "gut" }), "system_grade_drop", drop(Some("gut"))),
            (
                json!({ "threshold": 60 }),
                "compliance_drop",
                Trigger::ComplianceDrop { threshold: 60.0, window_days: 7 },
            ),
            (
                json!({ "threshold": 100, "window_days": 90 }),
                "compliance_milestone",
                Trigger::ComplianceMilestone { threshold: 100.0, window_days: 90 },
            ),
            (json!({}), "phase_eligible", Trigger::PhaseEligible),
            (json!({ "days": 10 }), "check_in_inactivity", Trigger::CheckInInactivity { days: 10 }),
            (json!({ "days": 1 }), "daily_log_inactivity", Trigger::DailyLogInactivity { days: 1 }),
        ] {
            trigger["event"] = json!(event);
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
        let clean = known_fields("automation.saved", &fact);
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
