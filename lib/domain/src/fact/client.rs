//! The application's whole record of a client.
//!
//! The record is stored unchecked: an invalid address or an empty name must not lose a client. The API's rules apply to
//! requests of the API.

use chrono::NaiveDate;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::client::{Measure, Origin, Phase, Profile};
use crate::email::Email;
use crate::fact_values::{MAX_NAME_CHARS, email, name, named, nullable, nullable_date, optional_text, phone, storable};
use crate::id::{ClientId, CoachId, ProgrammeId};
use crate::phone::Phone;
use crate::time::Timestamp;

const MAX_NOTE_CHARS: usize = 20_000;
/// A limit above any height in inches and weight in pounds, and within the range of every store.
const MAX_MEASURE: f64 = 100_000.0;

/// The whole record of a client, as the application has it.
#[derive(Clone, PartialEq, Deserialize)]
pub struct ClientSaved {
    pub client_id: ClientId,
    pub coach_id: CoachId,
    #[serde(deserialize_with = "email")]
    email: Option<Email>,
    #[serde(deserialize_with = "name")]
    full_name: String,
    #[serde(deserialize_with = "phone")]
    phone: Option<Phone>,
    #[serde(deserialize_with = "optional_text::<MAX_NOTE_CHARS, _>")]
    goals: Option<String>,
    #[serde(deserialize_with = "optional_text::<MAX_NOTE_CHARS, _>")]
    health_notes: Option<String>,
    #[serde(deserialize_with = "measure")]
    height_in: Option<Measure>,
    #[serde(deserialize_with = "measure")]
    weight_lbs: Option<Measure>,
    pub is_active: bool,
    #[serde(deserialize_with = "optional_text::<MAX_NAME_CHARS, _>")]
    current_phase: Option<String>,
    #[serde(deserialize_with = "nullable_date")]
    phase_started_on: Option<NaiveDate>,
    #[serde(deserialize_with = "nullable")]
    programme_id: Option<ProgrammeId>,
    pub created_at: Timestamp,
    #[serde(deserialize_with = "origin")]
    pub origin: Origin,
}
crate::discreet! { ClientSaved }

impl ClientSaved {
    pub fn profile(&self) -> Profile {
        Profile {
            email: self.email.clone(),
            full_name: self.full_name.clone(),
            phone: self.phone.clone(),
            goals: self.goals.clone(),
            health_notes: self.health_notes.clone(),
            height_in: self.height_in,
            weight_lbs: self.weight_lbs,
            external_id: None,
        }
    }

    pub fn phase(&self) -> Phase {
        Phase {
            current: self.current_phase.clone(),
            started_on: self.phase_started_on,
            programme_id: self.programme_id.clone(),
        }
    }
}

fn origin<'de, D: Deserializer<'de>>(input: D) -> Result<Origin, D::Error> {
    match named(input) {
        Ok(Origin::PartnerApi) | Err(_) => Err(D::Error::custom("must be application or import")),
        origin => origin,
    }
}

fn measure<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Measure>, D::Error> {
    let rule = || D::Error::custom(format_args!("must be null or a number from 0 to {MAX_MEASURE}"));
    match Option::<f64>::deserialize(input).map_err(|_| rule())? {
        Some(number) if !(0.0..=MAX_MEASURE).contains(&number) => Err(rule()),
        number => Ok(number.map(|number| Measure(storable(number)))),
    }
}
