//! The application's whole record of a client.
//!
//! The record is stored unchecked: an invalid address or an empty name must not lose a client. The API's rules apply to
//! requests of the API.

use super::values::{MAX_NAME_CHARS, email, name, nullable, nullable_id, present};
use crate::client::{Measure, Origin, Phase, Profile};
use crate::fields::{Fields, Invalid, LEAST_NUMBER};
use crate::id::{ClientId, CoachId, MAX_ID_CHARS, ProgrammeId};
use crate::phone::Phone;
use crate::time::Timestamp;

const MAX_NOTE_CHARS: usize = 20_000;
/// A limit above any height in inches and weight in pounds, and within the range of every store.
const MAX_MEASURE: f64 = 100_000.0;

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

pub(super) fn client(fields: Fields<'_>) -> Result<ClientSaved, Invalid> {
    let profile = Profile {
        email: email(fields)?,
        full_name: name(fields, "full_name")?,
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

fn measure(fields: Fields<'_>, name: &str) -> Result<Option<Measure>, Invalid> {
    const RULE: &str = "must be null or a number from 0 to 100000";
    present(fields, name)?;
    let Some(value) = fields.value(name) else { return Ok(None) };
    let number = value.as_f64().filter(|number| (0.0..=MAX_MEASURE).contains(number));
    let kept = number.map(|number| if number == 0.0 { 0.0 } else { number.max(LEAST_NUMBER) });
    kept.map(|number| Some(Measure(number))).ok_or_else(|| Invalid::field(name, RULE))
}
