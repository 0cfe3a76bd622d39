//! Facts about workspaces, their teams and programmes.

use super::values::{MAX_NAME_CHARS, name, nullable_id, present};
use crate::country::Country;
use crate::email::MAX_EMAIL_CHARS;
use crate::fields::{Fields, Invalid};
use crate::id::{CoachId, MAX_ID_CHARS, PipelineId, ProgrammeId, TeamId};
use crate::programme::{Programme, ProgrammePhase};
use crate::tz::{Tz, ZoneName};
use crate::workspace::{CanonicalHost, CrmConfiguration, Entitlements, Team, Workspace};

const MAX_URL_CHARS: usize = 2_048;
const MAX_PHASES: usize = 200;

pub(super) fn workspace(fields: Fields<'_>) -> Result<Workspace, Invalid> {
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
        name: name(fields, "name")?,
        team_id: nullable_id(fields, "team_id", TeamId::parse)?,
        canonical_host: fields.required("canonical_host", MAX_URL_CHARS, CanonicalHost::parse)?,
        time_zone: fields.required("time_zone", MAX_ID_CHARS, |text| {
            text.parse::<Tz>().map(ZoneName::from).map_err(|_| "must be an IANA time zone such as Europe/Berlin")
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

pub(super) fn team(fields: Fields<'_>) -> Result<Team, Invalid> {
    Ok(Team { team_id: fields.required("team_id", MAX_ID_CHARS, TeamId::parse)?, client_cap: cap(fields)? })
}

fn cap(fields: Fields<'_>) -> Result<Option<u32>, Invalid> {
    present(fields, "client_cap")?;
    fields.count("client_cap")
}

pub(super) fn programme(fields: Fields<'_>) -> Result<Programme, Invalid> {
    let phases = fields.required_objects("phases", "phases.", MAX_PHASES)?.into_iter().map(|phase| {
        present(phase, "min_compliance_pct")?;
        Ok(ProgrammePhase {
            name: phase.required_text("name", MAX_NAME_CHARS)?.to_owned(),
            min_days: phase.required_count("min_days")?,
            min_compliance_pct: phase.count("min_compliance_pct")?,
        })
    });
    Ok(Programme {
        programme_id: fields.required("programme_id", MAX_ID_CHARS, ProgrammeId::parse)?,
        coach_id: fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?,
        phases: phases.collect::<Result<_, Invalid>>()?,
    })
}
