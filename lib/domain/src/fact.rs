//! Facts that the application hands over: a name and a JSON object, read into a type or refused with a reason.
//!
//! Only fields of the tables below are ever looked at. [`cleaned`] drops everything else, so that a fact which is set aside or sent
//! round again carries nothing that the service has no business with.

use chrono_tz::Tz;
use serde_json::{Map, Value};

use crate::client::{Measure, Origin, Phase, Profile};
use crate::contact::Marketing;
use crate::email::{Email, MAX_EMAIL_CHARS};
use crate::fields::{Fields, Invalid};
use crate::id::{ClientId, CoachId, ContactId, FactId, InvalidId, MAX_ID_CHARS, PipelineId, ProgrammeId, TeamId};
use crate::phone::{Country, Phone};
use crate::time::Timestamp;
use crate::workspace::{CanonicalHost, CrmConfiguration, Entitlements, Team, Workspace};

/// The `source` of every incoming fact.
pub const SOURCE: &str = "coaching.application";

const MAX_NAME_CHARS: usize = 1_000;
const MAX_NOTE_CHARS: usize = 20_000;
const MAX_URL_CHARS: usize = 2_048;
/// Beyond any height in inches and weight in pounds, and within what every store can hold.
const MAX_MEASURE: f64 = 100_000.0;

/// Something that the application says has happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub id: FactId,
    pub occurred_at: Timestamp,
    /// Stored without firing events.
    pub backfill: bool,
    pub body: FactBody,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq)]
pub enum FactBody {
    WorkspaceSaved(Workspace),
    TeamSaved(Team),
    ClientSaved(Box<ClientSaved>),
    ContactSaved(Box<ContactSaved>),
}

/// The whole record of a client, as the application has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientSaved {
    pub client_id: ClientId,
    pub coach_id: CoachId,
    pub profile: Profile,
    pub is_active: bool,
    pub phase: Phase,
    pub created_at: Timestamp,
    pub origin: Origin,
}

/// The whole record of a contact, as the application has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ContactSaved {
    pub contact_id: ContactId,
    pub coach_id: CoachId,
    pub name: String,
    pub email: Option<Email>,
    pub phone: Option<Phone>,
    pub do_not_contact: bool,
    pub marketing: Marketing,
}

/// The fields that are known, and below a name those of the nested object.
struct Known {
    name: &'static str,
    fields: &'static [(&'static str, &'static [&'static str])],
}

const COMMON: [&str; 3] = ["id", "occurred_at", "backfill"];

const KNOWN: [Known; 4] = [
    Known {
        name: "workspace.saved",
        fields: &[
            ("coach_id", &[]),
            ("email", &[]),
            ("name", &[]),
            ("team_id", &[]),
            ("canonical_host", &[]),
            ("time_zone", &[]),
            ("country", &[]),
            ("plan", &["client_cap"]),
            ("entitlements", &["partner_api", "pro_crm", "gym"]),
            ("crm", &["pipeline_id", "initial_stage"]),
        ],
    },
    Known { name: "team.saved", fields: &[("team_id", &[]), ("client_cap", &[])] },
    Known {
        name: "client.saved",
        fields: &[
            ("client_id", &[]),
            ("coach_id", &[]),
            ("email", &[]),
            ("full_name", &[]),
            ("phone", &[]),
            ("goals", &[]),
            ("health_notes", &[]),
            ("height_in", &[]),
            ("weight_lbs", &[]),
            ("is_active", &[]),
            ("current_phase", &[]),
            ("phase_started_on", &[]),
            ("programme_id", &[]),
            ("created_at", &[]),
            ("origin", &[]),
        ],
    },
    Known {
        name: "contact.saved",
        fields: &[
            ("contact_id", &[]),
            ("coach_id", &[]),
            ("name", &[]),
            ("email", &[]),
            ("phone", &[]),
            ("do_not_contact", &[]),
            ("marketing", &["email", "sms"]),
        ],
    },
];

/// `detail` with nothing in it but scalars in known fields.
pub fn cleaned(detail_type: &str, detail: &Value) -> Value {
    let fields = KNOWN.iter().find(|known| known.name == detail_type).map_or(&[][..], |known| known.fields);
    let mut clean = Map::new();
    let Some(object) = detail.as_object() else { return Value::Object(clean) };
    for (name, value) in object {
        let nested = fields.iter().find(|(known, _)| known == name).map(|(_, nested)| *nested);
        match (nested, value) {
            (Some([_, ..]), Value::Object(inner)) => {
                let keep = |(name, value): (&String, &Value)| {
                    let known = nested.is_some_and(|nested| nested.contains(&name.as_str())) && is_scalar(value);
                    known.then(|| (name.clone(), value.clone()))
                };
                clean.insert(name.clone(), Value::Object(inner.iter().filter_map(keep).collect()));
            }
            (Some(_), value) if is_scalar(value) => drop(clean.insert(name.clone(), value.clone())),
            (None, value) if COMMON.contains(&name.as_str()) && is_scalar(value) => {
                clean.insert(name.clone(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(clean)
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

impl Fact {
    /// Reads a fact of that name.
    pub fn parse(detail_type: &str, detail: &Value) -> Result<Self, Invalid> {
        let fields = Fields::body(detail).map_err(|_| Invalid::whole("Detail must be a JSON object"))?;
        let body = match detail_type {
            "workspace.saved" => FactBody::WorkspaceSaved(workspace(fields)?),
            "team.saved" => FactBody::TeamSaved(team(fields)?),
            "client.saved" => FactBody::ClientSaved(Box::new(client(fields)?)),
            "contact.saved" => FactBody::ContactSaved(Box::new(contact(fields)?)),
            _ => return Err(Invalid::whole("DetailType is not the name of a fact")),
        };
        Ok(Self {
            id: fields.required("id", MAX_ID_CHARS, FactId::parse)?,
            occurred_at: fields.required_timestamp("occurred_at")?,
            backfill: fields.boolean("backfill")?.unwrap_or(false),
            body,
        })
    }
}

fn workspace(fields: Fields<'_>) -> Result<Workspace, Invalid> {
    let plan = fields.required_object("plan", "plan.")?;
    let entitlements = fields.required_object("entitlements", "entitlements.")?;
    present(fields, "crm")?;
    let crm = match fields.object("crm", "crm.")? {
        None => None,
        Some(crm) => Some(CrmConfiguration {
            pipeline_id: crm.required("pipeline_id", MAX_ID_CHARS, PipelineId::parse)?,
            initial_stage: crm.required_text("initial_stage", MAX_ID_CHARS)?.to_owned(),
        }),
    };
    Ok(Workspace {
        coach_id: fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?,
        email: fields.required_text("email", MAX_EMAIL_CHARS)?.to_owned(),
        name: fields.required_text("name", MAX_NAME_CHARS)?.to_owned(),
        team_id: nullable_id(fields, "team_id", TeamId::parse)?,
        canonical_host: fields.required("canonical_host", MAX_URL_CHARS, CanonicalHost::parse)?,
        time_zone: fields.required("time_zone", MAX_ID_CHARS, |text| {
            text.parse::<Tz>().map_err(|_| "must be an IANA time zone such as Europe/Berlin")
        })?,
        country: fields.required("country", 2, Country::parse)?,
        client_cap: cap(plan)?,
        entitlements: Entitlements {
            partner_api: entitlements.required_boolean("partner_api")?,
            pro_crm: entitlements.required_boolean("pro_crm")?,
            gym: entitlements.required_boolean("gym")?,
        },
        crm,
    })
}

fn team(fields: Fields<'_>) -> Result<Team, Invalid> {
    Ok(Team { team_id: fields.required("team_id", MAX_ID_CHARS, TeamId::parse)?, client_cap: cap(fields)? })
}

fn cap(fields: Fields<'_>) -> Result<Option<u32>, Invalid> {
    present(fields, "client_cap")?;
    fields.count("client_cap")
}

fn client(fields: Fields<'_>) -> Result<ClientSaved, Invalid> {
    let profile = Profile {
        email: email(fields)?,
        full_name: fields.required_text("full_name", MAX_NAME_CHARS)?.to_owned(),
        phone: nullable(fields, "phone", MAX_NAME_CHARS)?.map(Phone::as_given),
        goals: nullable(fields, "goals", MAX_NOTE_CHARS)?.map(str::to_owned),
        health_notes: nullable(fields, "health_notes", MAX_NOTE_CHARS)?.map(str::to_owned),
        height_in: measure(fields, "height_in")?,
        weight_lbs: measure(fields, "weight_lbs")?,
        external_id: None,
    };
    present(fields, "phase_started_on")?;
    let phase = Phase {
        current: nullable(fields, "current_phase", MAX_NAME_CHARS)?.map(str::to_owned),
        started_on: fields.date("phase_started_on")?,
        programme_id: nullable_id(fields, "programme_id", ProgrammeId::parse)?,
    };
    Ok(ClientSaved {
        client_id: fields.required("client_id", MAX_ID_CHARS, ClientId::parse)?,
        coach_id: fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?,
        profile,
        is_active: fields.required_boolean("is_active")?,
        phase,
        created_at: fields.required_timestamp("created_at")?,
        origin: fields.required("origin", 32, |text| match text {
            "application" => Ok(Origin::Application),
            "import" => Ok(Origin::Import),
            _ => Err("must be application or import"),
        })?,
    })
}

fn contact(fields: Fields<'_>) -> Result<ContactSaved, Invalid> {
    let marketing = fields.required_object("marketing", "marketing.")?;
    Ok(ContactSaved {
        contact_id: fields
            .required("contact_id", MAX_ID_CHARS, |text| text.parse().map(ContactId).map_err(|_| "must be a UUID"))?,
        coach_id: fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?,
        name: fields.required_text("name", MAX_NAME_CHARS)?.to_owned(),
        email: email(fields)?,
        phone: nullable(fields, "phone", MAX_NAME_CHARS)?.map(Phone::as_given),
        do_not_contact: fields.required_boolean("do_not_contact")?,
        marketing: Marketing { email: marketing.required_boolean("email")?, sms: marketing.required_boolean("sms")? },
    })
}

/// A field whose value may be null still has to be said: a record that lacks one is not whole.
fn present(fields: Fields<'_>, name: &str) -> Result<(), Invalid> {
    if fields.mentions(name) { Ok(()) } else { Err(Invalid::field(name, "is required (it may be null)")) }
}

/// A text or null. The application's own records may hold an empty text where they mean none.
fn nullable<'a>(fields: Fields<'a>, name: &str, max: usize) -> Result<Option<&'a str>, Invalid> {
    present(fields, name)?;
    if fields.value(name).and_then(Value::as_str) == Some("") { Ok(None) } else { fields.text(name, max) }
}

/// An id or null. An empty one is neither.
fn nullable_id<T>(
    fields: Fields<'_>,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, InvalidId>,
) -> Result<Option<T>, Invalid> {
    present(fields, name)?;
    fields.parsed(name, MAX_ID_CHARS, parse)
}

fn email(fields: Fields<'_>) -> Result<Option<Email>, Invalid> {
    let text = nullable(fields, "email", MAX_EMAIL_CHARS)?;
    text.map(|text| Email::parse(text).map_err(|rule| Invalid::field("email", rule))).transpose()
}

fn measure(fields: Fields<'_>, name: &str) -> Result<Option<Measure>, Invalid> {
    const RULE: &str = "must be null or a number from 0 to 100000";
    present(fields, name)?;
    let Some(value) = fields.value(name) else { return Ok(None) };
    let number = value.as_f64().filter(|number| (0.0..=MAX_MEASURE).contains(number));
    number.map(|number| Some(Measure(number))).ok_or_else(|| Invalid::field(name, RULE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn client_saved() -> Value {
        json!({
            "id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "client_id": "c1", "coach_id": "coach_1", "email": null,
            "full_name": "Ada", "phone": "", "goals": null, "health_notes": null, "height_in": 70, "weight_lbs": null,
            "is_active": true, "current_phase": null, "phase_started_on": null, "programme_id": null,
            "created_at": "2026-01-01T00:00:00Z", "origin": "import"
        })
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
    fn an_empty_id_and_an_immense_number_are_malformed() {
        for (name, bad) in [("programme_id", json!("")), ("height_in", json!(1e308)), ("weight_lbs", json!(-1))] {
            let mut fact = client_saved();
            fact[name] = bad;
            assert_eq!(Fact::parse("client.saved", &fact).unwrap_err().field.as_deref(), Some(name));
        }
    }

    #[test]
    fn cleaning_keeps_known_scalars_and_nothing_else() {
        let mut fact = client_saved();
        fact["diary"] = json!("SECRET");
        fact["goals"] = json!({"nested": "SECRET"});
        let clean = cleaned("client.saved", &fact);
        assert!(!clean.to_string().contains("SECRET"));
        assert_eq!(clean["full_name"], "Ada");
        let workspace = json!({"id": "f", "plan": {"client_cap": 1, "card": "SECRET"}, "crm": null});
        assert_eq!(cleaned("workspace.saved", &workspace), json!({"id": "f", "plan": {"client_cap": 1}, "crm": null}));
        assert_eq!(cleaned("no.such", &json!({"id": "f", "x": "SECRET"})), json!({"id": "f"}));
    }
}
