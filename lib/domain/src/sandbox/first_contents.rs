//! The contents that a workspace of a sandbox begins with, so that every route has something to answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::calendar::{Buffers, Calendar, OpeningHours, Weekly};
use crate::country::Country;
use crate::id::{CalendarId, CoachId, PipelineId, ProgrammeId, StageId, derived_uuid};
use crate::pipeline::{Pipeline, Stage, StageKind};
use crate::programme::{Programme, ProgrammePhase};
use crate::tz::{Tz, ZoneName};
use crate::workspace::{CanonicalHost, CrmConfiguration, Entitlements, Workspace};

/// Highest client limit of a workspace of a sandbox, which a new one has.
pub const MAX_CLIENT_CAP: u32 = 100;

const PIPELINE: &str = "pipeline_test";
const PROGRAMME: &str = "programme_test";
const INITIAL_STAGE: &str = "new";
const STAGES: [(&str, &str, StageKind); 4] = [
    (INITIAL_STAGE, "New", StageKind::Open),
    ("qualified", "Qualified", StageKind::Open),
    ("won", "Won", StageKind::Won),
    ("lost", "Lost", StageKind::Lost),
];
/// The name of a workspace whose coach has none.
const NAME: &str = "Sandbox";
/// Longest name and address that are taken from a token.
const MAX_CLAIM_CHARS: usize = 200;
const SESSION_PRICE_CENTS: u64 = 9_900;
const SLOT_MINUTES: u32 = 30;
const HORIZON_DAYS: u32 = 30;

/// The first contents of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstContents {
    pub pipeline: Pipeline,
    /// A free calendar, and one that is paid for.
    pub calendars: [Calendar; 2],
    pub programme: Programme,
}

/// Creates the first contents. Their ids derive from the coach.
pub fn first_contents(coach: &CoachId, zone: Tz, host: &CanonicalHost) -> FirstContents {
    FirstContents {
        pipeline: pipeline(),
        calendars: [
            calendar(coach, "Free consultation", zone, host, 0),
            calendar(coach, "Paid session", zone, host, SESSION_PRICE_CENTS),
        ],
        programme: Programme {
            programme_id: ProgrammeId::parse(PROGRAMME).expect("the id is formed"),
            coach_id: coach.clone(),
            phases: vec![
                ProgrammePhase { name: "Foundation".to_owned(), min_days: 14, min_compliance_pct: Some(70) },
                ProgrammePhase { name: "Build".to_owned(), min_days: 28, min_compliance_pct: None },
            ],
        },
    }
}

/// The configuration of the CRM with the pipeline of the first contents.
pub(super) fn configuration() -> CrmConfiguration {
    CrmConfiguration {
        pipeline_id: PipelineId::parse(PIPELINE).expect("the id is formed"),
        initial_stage: INITIAL_STAGE.to_owned(),
    }
}

/// Returns true for a workspace whose CRM has the pipeline of the first contents.
pub fn is_configured(workspace: &Workspace) -> bool {
    workspace.crm.as_ref() == Some(&configuration())
}

/// Creates the workspace of a coach whom the sandbox has not seen, from the claims of the coach's token.
pub fn new_workspace(
    coach: &CoachId,
    host: CanonicalHost,
    name: Option<&str>,
    email: Option<&str>,
    zone: Option<&str>,
) -> Workspace {
    let claim = |text: Option<&str>| text.unwrap_or_default().trim().chars().take(MAX_CLAIM_CHARS).collect::<String>();
    let zone = zone.and_then(|zone| zone.parse::<Tz>().ok());
    let name = Some(claim(name)).filter(|name| !name.is_empty());
    let workspace = Workspace {
        coach_id: coach.clone(),
        email: claim(email),
        name: name.unwrap_or_else(|| NAME.to_owned()),
        team_id: None,
        canonical_host: host,
        time_zone: ZoneName::from(zone.unwrap_or_else(|| "UTC".parse().expect("the database has UTC"))),
        country: Country::parse("US").expect("the country is formed"),
        client_cap: None,
        entitlements: Entitlements { partner_api: false, pro_crm: false, gym: false },
        crm: None,
    };
    reset(workspace)
}

/// Returns a workspace with the switches and the limit that it begins with.
pub fn reset(workspace: Workspace) -> Workspace {
    Workspace {
        client_cap: Some(MAX_CLIENT_CAP),
        entitlements: Entitlements { partner_api: true, pro_crm: true, gym: true },
        crm: Some(configuration()),
        ..workspace
    }
}

fn pipeline() -> Pipeline {
    let stage = |(id, name, kind): (&str, &str, _)| Stage {
        id: StageId::parse(id).expect("the id is formed"),
        name: name.to_owned(),
        kind,
    };
    Pipeline {
        pipeline_id: configuration().pipeline_id,
        name: "Test pipeline".to_owned(),
        stages: STAGES.into_iter().map(stage).collect(),
        won_once: BTreeSet::new(),
    }
}

/// A calendar of slots of half an hour, from nine to five on weekdays.
fn calendar(coach: &CoachId, name: &str, zone: Tz, host: &CanonicalHost, price_cents: u64) -> Calendar {
    // Ids begin with this number, so a free calendar is listed first.
    let id = CalendarId(derived_uuid(i64::from(price_cents > 0), &["sandbox", coach.as_str(), name]));
    let day = vec![OpeningHours::parse("09:00", "17:00").expect("the hours are formed")];
    Calendar {
        id,
        name: name.to_owned(),
        time_zone: zone,
        price_cents,
        currency: "USD".to_owned(),
        booking_url: format!("{}/book/{id}", host.as_str()),
        active: true,
        slot_minutes: SLOT_MINUTES,
        slot_interval_minutes: SLOT_MINUTES,
        buffers: Buffers::default(),
        min_notice_minutes: 0,
        horizon_days: HORIZON_DAYS,
        weekly: Weekly {
            mon: day.clone(),
            tue: day.clone(),
            wed: day.clone(),
            thu: day.clone(),
            fri: day,
            ..Weekly::default()
        },
        overrides: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_workspace_is_named_by_its_token_as_far_as_that_can_be_read() {
        let (coach, host) = (CoachId::parse("auth0|5f7c").unwrap(), CanonicalHost::parse("https://a.example").unwrap());
        let of = |name, email, zone| new_workspace(&coach, host.clone(), name, email, zone);
        let known = of(Some("Ada"), Some("ada@example.com"), Some("Europe/Berlin"));
        assert_eq!((known.name.as_str(), known.email.as_str()), ("Ada", "ada@example.com"));
        assert_eq!(known.time_zone.as_str(), "Europe/Berlin");
        for (name, zone) in [(None, None), (Some(" "), Some("Mars/Olympus"))] {
            let unknown = of(name, None, zone);
            assert_eq!((unknown.name.as_str(), unknown.email.as_str()), ("Sandbox", ""));
            assert_eq!(unknown.time_zone.as_str(), "UTC");
        }
        assert!(is_configured(&known) && known.entitlements.admit(crate::api_key::Scope::Crm));
        assert_eq!(known.client_cap, Some(100));
    }

    #[test]
    fn the_first_contents_of_two_coaches_have_calendars_of_their_own() {
        let host = CanonicalHost::parse("https://a.example").unwrap();
        let of = |coach: &str| first_contents(&CoachId::parse(coach).unwrap(), "UTC".parse().unwrap(), &host);
        let (ada, eve) = (of("ada"), of("eve"));
        let ids: BTreeSet<_> = ada.calendars.iter().chain(&eve.calendars).map(|calendar| calendar.id).collect();
        assert_eq!(ids.len(), 4);
        assert_eq!(of("ada"), ada);
        assert!(ada.calendars[0].price_cents == 0 && ada.calendars[0].id < ada.calendars[1].id);
        let initial = ada.pipeline.initial_stage(&configuration().initial_stage).map(StageId::as_str);
        assert_eq!(initial, Some("new"));
    }
}
