//! Facts of the application: a name and a JSON object, parsed into a type or refused with a reason.
//!
//! The structs alone name the fields of a fact. Everything else is dropped ([`known_fields`]), so a fact that is set
//! aside or enqueued again contains no field that the service does not use.

mod automation;
mod calendar;
mod client;
mod contact;
mod crm;
mod history;
mod lenient;
mod part;
mod workspace;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::automation::Automation;
use crate::booking::CalendarEventSaved;
use crate::contact::ContactSaved;
use crate::fact_time::FactTime;
use crate::fields::Invalid;
use crate::id::{AutomationId, ClientId, CoachId, FactId};
use crate::opportunity::OpportunitySaved;
use crate::programme::Programme;
use crate::workspace::{Team, Workspace};
use part::{Member, has_variant, named, read, trial};

pub use calendar::CalendarSaved;
pub use client::ClientSaved;
pub use contact::Merge;
pub use crm::{PipelineSaved, WorkflowSaved};
pub use history::{ClientHappening, DoseLogged};
pub use lenient::lenient;

/// The `source` of every incoming fact.
pub const SOURCE: &str = "coaching.application";

/// The fields of a check-in that are evaluated and dropped. They never reach a dead letter.
const EVALUATED: [&str; 2] = ["scores", "grades"];

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
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub enum FactBody {
    #[serde(rename = "workspace.saved", with = "workspace::WorkspaceSaved")]
    WorkspaceSaved(Workspace),
    #[serde(rename = "team.saved")]
    TeamSaved(Team),
    #[serde(rename = "client.saved")]
    ClientSaved(Box<ClientSaved>),
    #[serde(rename = "programme.saved")]
    ProgrammeSaved(Programme),
    #[serde(rename = "contact.saved")]
    ContactSaved(Box<ContactSaved>),
    #[serde(rename = "contact.merged")]
    ContactMerged(Merge),
    #[serde(rename = "calendar.saved")]
    CalendarSaved(Box<CalendarSaved>),
    #[serde(rename = "calendar_event.saved", deserialize_with = "calendar::event")]
    CalendarEventSaved(CalendarEventSaved),
    #[serde(rename = "automation.saved", with = "automation::AutomationSaved")]
    AutomationSaved(Automation),
    #[serde(rename = "automation.deleted")]
    AutomationDeleted { automation_id: AutomationId, coach_id: CoachId },
    #[serde(rename = "pipeline.saved")]
    PipelineSaved(PipelineSaved),
    #[serde(rename = "opportunity.saved")]
    OpportunitySaved(Box<OpportunitySaved>),
    #[serde(rename = "workflow.saved")]
    WorkflowSaved(Box<WorkflowSaved>),
    #[serde(skip)]
    OfClient(ClientId, ClientHappening),
}

/// The fields of every fact.
#[derive(Deserialize)]
struct Common {
    id: FactId,
    occurred_at: FactTime,
    backfill: Option<bool>,
}

/// The field of every fact about a client's history.
#[derive(Deserialize)]
struct OfClient {
    client_id: ClientId,
}

/// The structs that a fact consists of, besides [`Common`].
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// [`FactBody`].
    Record,
    /// [`OfClient`] and [`ClientHappening`].
    OfClient,
    Unknown,
}

impl Kind {
    fn of(detail_type: &str) -> Self {
        match detail_type {
            name if has_variant::<ClientHappening>(name) => Self::OfClient,
            name if has_variant::<FactBody>(name) => Self::Record,
            _ => Self::Unknown,
        }
    }
}

impl Fact {
    /// Parses a fact of that name.
    pub fn parse(detail_type: &str, detail: &Value) -> Result<Self, Invalid> {
        if !detail.is_object() {
            return Err(Invalid::whole("Detail must be a JSON object"));
        }
        let kind = Kind::of(detail_type);
        if kind == Kind::Unknown {
            return Err(Invalid::whole("DetailType is not the name of a fact"));
        }
        let Common { id, occurred_at, backfill } = read(detail)?;
        let body = if kind == Kind::OfClient {
            let happening: ClientHappening = read(named(detail_type, detail))?;
            FactBody::OfClient(read::<OfClient, _>(detail)?.client_id, happening.stored_at(occurred_at)?)
        } else {
            read(named(detail_type, detail))?
        };
        Ok(Self { id, occurred_at, backfill: backfill.unwrap_or(false), body })
    }
}

/// Returns true for the name of a fact.
pub fn is_known(detail_type: &str) -> bool {
    Kind::of(detail_type) != Kind::Unknown
}

/// Returns the known fields of a fact, right or wrong, and nothing else. A wrong field stays if it is a scalar that can
/// be read: an object or a list could hold anything.
pub fn known_fields(detail_type: &str, detail: &Value) -> Value {
    let kind = Kind::of(detail_type);
    let members = detail.as_object().into_iter().flatten();
    let known = members.filter_map(|(name, value)| {
        let mut member = json!({ name: value });
        match find(kind, detail_type, &member) {
            Member::Unknown => return None,
            Member::Wrong if value.is_object() || value.is_array() => return None,
            Member::Wrong => {}
            Member::Read(unnamed) => unnamed.iter().for_each(|(object, name)| {
                member.pointer_mut(object).and_then(Value::as_object_mut).and_then(|members| members.remove(name));
            }),
        }
        let is_readable = value.as_str().is_none_or(|text| !text.contains('\0'));
        is_readable.then(|| (name.clone(), member[name].take()))
    });
    known.collect()
}

/// Finds the struct that has the field of this member.
fn find(kind: Kind, detail_type: &str, member: &Value) -> Member {
    let mut outcomes = vec![trial::<Common, _>(member)];
    match kind {
        Kind::Record => outcomes.push(trial::<FactBody, _>(named(detail_type, member))),
        Kind::OfClient => {
            outcomes.push(trial::<OfClient, _>(member));
            outcomes.push(trial::<ClientHappening, _>(named(detail_type, member)));
        }
        Kind::Unknown => {}
    }
    let is_known = |outcome: &Member| !matches!(outcome, Member::Unknown);
    outcomes.into_iter().find(is_known).unwrap_or(Member::Unknown)
}

/// Returns the fields of a fact for a dead letter: without scores and grades, which are evaluated and dropped.
pub fn without_scores(fields: &Value) -> Value {
    let members = fields.as_object().into_iter().flatten();
    let kept = members.filter(|(name, _)| !EVALUATED.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod junk;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::Measure;

    fn client_saved() -> Value {
        json!({
            "id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "client_id": "c1", "coach_id": "coach_1", "email": null,
            "full_name": "Ada", "phone": "", "goals": null, "health_notes": null, "height_in": 70, "weight_lbs": null,
            "is_active": true, "current_phase": null, "phase_started_on": null, "programme_id": null,
            "created_at": "2026-01-01T00:00:00Z", "origin": "import"
        })
    }

    /// Asserts that the whole fact is read, and that a field that is missing or has one of these values is named.
    #[track_caller]
    pub(crate) fn assert_every_field_counts(name: &str, whole: &Value, wrong: &[Value]) {
        assert_eq!(known_fields(name, whole), *whole, "{name}");
        Fact::parse(name, whole).unwrap();
        for field in whole.as_object().unwrap().keys() {
            let mut lacking = whole.clone();
            lacking.as_object_mut().unwrap().remove(field);
            assert_eq!(Fact::parse(name, &lacking).unwrap_err().field.as_deref(), Some(field.as_str()), "{name}");
            for wrong in wrong {
                let mut mistyped = whole.clone();
                mistyped[field] = wrong.clone();
                let error = Fact::parse(name, &mistyped).unwrap_err();
                let named = error.field.as_deref().and_then(|path| path.split('.').next());
                assert_eq!(named, Some(field.as_str()), "{name} {wrong}: {error}");
                assert!(error.message.contains(field), "{error}");
            }
        }
    }

    #[test]
    fn a_whole_record_is_read_and_an_empty_text_is_none() {
        let fact = Fact::parse("client.saved", &client_saved()).unwrap();
        let FactBody::ClientSaved(saved) = fact.body else { panic!("a client") };
        assert_eq!(saved.profile().phone, None);
        assert_eq!(saved.profile().height_in, Some(Measure(70.0)));
        assert!(!fact.backfill);
    }

    #[test]
    fn a_measure_next_to_0_is_kept_as_near_as_can_be() {
        for (given, kept) in [(json!(5e-324), 1e-130_f64), (json!(0), 0.0), (json!(-0.0), 0.0)] {
            let mut fact = client_saved();
            fact["height_in"] = given;
            let FactBody::ClientSaved(saved) = Fact::parse("client.saved", &fact).unwrap().body else {
                panic!("a client")
            };
            assert_eq!(saved.profile().height_in.map(|measure| measure.0.to_bits()), Some(kept.to_bits()));
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
    fn a_missing_or_mistyped_field_is_named() {
        assert_every_field_counts("client.saved", &client_saved(), &[json!(["x"])]);
        let error = Fact::parse("client.exploded", &client_saved()).unwrap_err();
        assert!(error.message.contains("DetailType"), "{error}");
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
