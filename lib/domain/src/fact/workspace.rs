//! The fact about a workspace. Its record is stored with other names, so the fields of the fact are listed here.

use serde::{Deserialize, Deserializer};

use crate::country::Country;
use crate::email::MAX_EMAIL_CHARS;
use crate::fact_values::{name, nullable, nullable_count, nullable_object, object, parsed, text};
use crate::id::{CoachId, MAX_ID_CHARS, TeamId};
use crate::tz::{Tz, UnknownZone, ZoneName};
use crate::workspace::{CanonicalHost, CrmConfiguration, Entitlements, Workspace};

const MAX_URL_CHARS: usize = 2_048;

#[derive(Deserialize)]
#[serde(remote = "Workspace")]
pub(super) struct WorkspaceSaved {
    coach_id: CoachId,
    #[serde(deserialize_with = "text::<MAX_EMAIL_CHARS, _>")]
    email: String,
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    team_id: Option<TeamId>,
    #[serde(deserialize_with = "canonical_host")]
    canonical_host: CanonicalHost,
    #[serde(deserialize_with = "zone")]
    time_zone: ZoneName,
    country: Country,
    #[serde(rename = "plan", deserialize_with = "plan")]
    client_cap: Option<u32>,
    #[serde(deserialize_with = "object")]
    entitlements: Entitlements,
    #[serde(deserialize_with = "nullable_object")]
    crm: Option<CrmConfiguration>,
}

fn canonical_host<'de, D: Deserializer<'de>>(input: D) -> Result<CanonicalHost, D::Error> {
    parsed(input, MAX_URL_CHARS, CanonicalHost::parse)
}

fn zone<'de, D: Deserializer<'de>>(input: D) -> Result<ZoneName, D::Error> {
    parsed(input, MAX_ID_CHARS, |text| Ok::<_, UnknownZone>(text.parse::<Tz>()?.into()))
}

fn plan<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    struct Plan {
        #[serde(deserialize_with = "nullable_count")]
        client_cap: Option<u32>,
    }
    Ok(object::<_, Plan>(input)?.client_cap)
}
