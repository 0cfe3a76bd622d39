//! Facts of the application: a name and a JSON object, parsed into a type or refused with a reason.
//!
//! Only known fields are read. [`Known`] drops everything else, so a fact that is set aside or enqueued again contains
//! no field that the service does not use.

mod automation;
mod calendar;
mod client;
mod contact;
mod crm;
mod history;
mod known;
mod values;
mod workspace;

use serde_json::Value;

use crate::automation::Automation;
use crate::booking::CalendarEventSaved;
use crate::contact::ContactSaved;
use crate::fact_time::FactTime;
use crate::fields::{Fields, Invalid};
use crate::id::{AutomationId, ClientId, CoachId, FactId, MAX_ID_CHARS};
use crate::programme::Programme;
use crate::workspace::{Team, Workspace};

pub use calendar::CalendarSaved;
pub use client::ClientSaved;
pub use contact::Merge;
pub use crm::{OpportunitySaved, PipelineSaved, WorkflowSaved};
pub use history::{ClientHappening, DoseLogged};
pub use known::{Known, is_known, without_scores};

/// The `source` of every incoming fact.
pub const SOURCE: &str = "coaching.application";

/// A message of the application that something has happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub id: FactId,
    pub occurred_at: FactTime,
    /// True: stored without emitting events.
    pub backfill: bool,
    pub body: FactBody,
}

/// The content of a fact.
#[derive(Debug, Clone, PartialEq)]
pub enum FactBody {
    WorkspaceSaved(Workspace),
    TeamSaved(Team),
    ClientSaved(Box<ClientSaved>),
    ProgrammeSaved(Programme),
    ContactSaved(Box<ContactSaved>),
    ContactMerged(CoachId, Merge),
    CalendarSaved(Box<CalendarSaved>),
    CalendarEventSaved(CalendarEventSaved),
    AutomationSaved(Box<Automation>),
    AutomationDeleted(AutomationId, CoachId),
    PipelineSaved(PipelineSaved),
    OpportunitySaved(Box<OpportunitySaved>),
    WorkflowSaved(Box<WorkflowSaved>),
    OfClient(ClientId, ClientHappening),
}

impl Fact {
    /// Parses a fact of that name.
    pub fn parse(detail_type: &str, detail: &Value) -> Result<Self, Invalid> {
        let fields = Fields::body(detail).map_err(|_| Invalid::whole("Detail must be a JSON object"))?;
        let body = match detail_type {
            "workspace.saved" => FactBody::WorkspaceSaved(workspace::workspace(fields)?),
            "team.saved" => FactBody::TeamSaved(workspace::team(fields)?),
            "client.saved" => FactBody::ClientSaved(Box::new(client::client(fields)?)),
            "programme.saved" => FactBody::ProgrammeSaved(workspace::programme(fields)?),
            "contact.saved" => FactBody::ContactSaved(Box::new(contact::contact(fields)?)),
            "contact.merged" => {
                let (coach, merge) = contact::merge(fields)?;
                FactBody::ContactMerged(coach, merge)
            }
            "calendar.saved" => FactBody::CalendarSaved(Box::new(calendar::calendar(fields)?)),
            "calendar_event.saved" => FactBody::CalendarEventSaved(calendar::event(fields)?),
            "pipeline.saved" => FactBody::PipelineSaved(crm::pipeline(fields)?),
            "opportunity.saved" => FactBody::OpportunitySaved(Box::new(crm::opportunity(fields)?)),
            "workflow.saved" => FactBody::WorkflowSaved(Box::new(crm::workflow(fields)?)),
            "automation.saved" => FactBody::AutomationSaved(Box::new(automation::automation(fields)?)),
            "automation.deleted" => {
                let (automation, coach) = automation::deleted(fields)?;
                FactBody::AutomationDeleted(automation, coach)
            }
            _ => match history::happening(detail_type, fields) {
                Some(read) => read.map(|(client, happening)| FactBody::OfClient(client, happening))?,
                None => return Err(Invalid::whole("DetailType is not the name of a fact")),
            },
        };
        Ok(Self {
            id: fields.required("id", MAX_ID_CHARS, FactId::parse)?,
            occurred_at: fields.required_fact_time("occurred_at")?,
            backfill: fields.boolean("backfill")?.unwrap_or(false),
            body,
        })
    }
}

#[cfg(test)]
pub(crate) use known::cleaned;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::Measure;
    use serde_json::json;

    fn client_saved() -> Value {
        json!({
            "id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "client_id": "c1", "coach_id": "coach_1", "email": null,
            "full_name": "Ada", "phone": "", "goals": null, "health_notes": null, "height_in": 70, "weight_lbs": null,
            "is_active": true, "current_phase": null, "phase_started_on": null, "programme_id": null,
            "created_at": "2026-01-01T00:00:00Z", "origin": "import"
        })
    }

    /// Asserts that the whole fact is read, and that no field may be missing or have one of these values.
    #[track_caller]
    pub(crate) fn assert_every_field_counts(name: &str, whole: &Value, wrong: &[Value]) {
        assert_eq!(cleaned(name, whole), *whole, "{name}");
        Fact::parse(name, whole).unwrap();
        for field in whole.as_object().unwrap().keys() {
            let mut lacking = whole.clone();
            lacking.as_object_mut().unwrap().remove(field);
            assert_eq!(Fact::parse(name, &lacking).unwrap_err().field.as_deref(), Some(field.as_str()), "{name}");
            for wrong in wrong {
                let mut mistyped = whole.clone();
                mistyped[field] = wrong.clone();
                assert!(Fact::parse(name, &mistyped).is_err(), "{name} {field}");
            }
        }
    }

    #[test]
    fn a_whole_record_is_read_and_an_empty_text_is_none() {
        let fact = Fact::parse("client.saved", &client_saved()).unwrap();
        let FactBody::ClientSaved(saved) = fact.body else { panic!("a client") };
        assert_eq!(saved.profile.phone, None);
        assert_eq!(saved.profile.height_in, Some(Measure(70.0)));
        assert!(!fact.backfill);
    }

    #[test]
    fn a_missing_or_mistyped_field_is_named() {
        let whole = client_saved();
        for name in whole.as_object().unwrap().keys() {
            let mut lacking = whole.clone();
            lacking.as_object_mut().unwrap().remove(name);
            let error = Fact::parse("client.saved", &lacking).unwrap_err();
            assert_eq!(error.field.as_deref(), Some(name.as_str()), "{error}");
            let mut mistyped = whole.clone();
            mistyped[name] = json!(["x"]);
            assert_eq!(Fact::parse("client.saved", &mistyped).unwrap_err().field.as_deref(), Some(name.as_str()));
        }
        assert!(Fact::parse("client.exploded", &whole).unwrap_err().message.contains("DetailType"));
    }

    #[test]
    fn a_measure_next_to_0_is_kept_as_near_as_can_be() {
        for (given, kept) in [(json!(5e-324), 1e-130_f64), (json!(0), 0.0), (json!(-0.0), 0.0)] {
            let mut fact = client_saved();
            fact["height_in"] = given;
            let FactBody::ClientSaved(saved) = Fact::parse("client.saved", &fact).unwrap().body else {
                panic!("a client")
            };
            assert_eq!(saved.profile.height_in.map(|measure| measure.0.to_bits()), Some(kept.to_bits()));
        }
    }

    #[test]
    fn an_empty_id_and_an_immense_number_are_malformed() {
        for (name, bad) in [("programme_id", json!("")), ("height_in", json!(1e308)), ("weight_lbs", json!(-1))] {
            let mut fact = client_saved();
            fact[name] = bad;
            assert_eq!(Fact::parse("client.saved", &fact).unwrap_err().field.as_deref(), Some(name));
        }
    }

    #[test]
    fn an_error_of_a_clients_history_names_the_field() {
        for (name, fact) in [
            (
                "check_in.submitted",
                json!({"check_in_id": "k", "submitted_at": "2026-01-01T00:00:00Z", "scores": {"q": 1}, "grades": {"gut": 2.5}}),
            ),
            ("check_in.reviewed", json!({"check_in_id": "k", "reviewed_at": "2026-01-01T00:00:00Z"})),
            ("check_in.deleted", json!({"check_in_id": "k"})),
            ("daily_log.saved", json!({"date": "2026-01-01"})),
            ("daily_log.deleted", json!({"date": "2026-01-01"})),
            (
                "dose_schedule.saved",
                json!({"doses": [{"dose_id": "d", "per_day": 2, "from": "2026-01-01", "until": null}]}),
            ),
            ("dose.logged", json!({"dose_log_id": "l", "dose_id": "d", "date": "2026-01-01"})),
            ("dose_log.deleted", json!({"dose_log_id": "l"})),
            ("phase.advanced", json!({"from_phase": null, "to_phase": "Base", "advanced_at": "2026-01-01T00:00:00Z"})),
            ("message.received", json!({"message_id": "m", "received_at": "2026-01-01T00:00:00Z"})),
            ("client.erased", json!({})),
            (
                "programme.saved",
                json!({"programme_id": "p", "coach_id": "c", "phases": [{"name": "Base", "min_days": 7, "min_compliance_pct": null}]}),
            ),
        ] {
            let mut whole = fact.clone();
            whole["id"] = json!("f1");
            whole["occurred_at"] = json!("2026-01-02T03:04:05Z");
            if name != "programme.saved" {
                whole["client_id"] = json!("c1");
            }
            assert_every_field_counts(name, &whole, &[json!(true), json!({"x": "y"}), json!(["x"])]);
        }
    }

    #[test]
    fn a_field_in_a_list_is_named_with_its_list() {
        let schedule = |dose: Value| {
            let fact = json!({"id": "f", "occurred_at": "2026-01-02T03:04:05Z", "client_id": "c", "doses": [dose]});
            Fact::parse("dose_schedule.saved", &fact).unwrap_err().field
        };
        let dose =
            |per_day: Value, from: &str| json!({"dose_id": "d", "per_day": per_day, "from": from, "until": null});
        assert_eq!(schedule(dose(json!(-1), "2026-01-01")).as_deref(), Some("doses.per_day"));
        assert_eq!(schedule(dose(json!(1.5), "2026-01-01")).as_deref(), Some("doses.per_day"));
        assert_eq!(schedule(dose(json!(1), "2027-02-29")).as_deref(), Some("doses.from"));
        assert_eq!(schedule(Value::Null).as_deref(), Some("doses"));
    }
}
