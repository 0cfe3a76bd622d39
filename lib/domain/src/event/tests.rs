//! The content and the receivers of each event, and its stored form.

use super::*;
use crate::id::ClientId;
use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};

use crate::automation::{Automation, Step, Trigger};
use crate::client::{Measure, Origin, Phase, Profile};
use crate::dose::{DoseSchedule, DosesLogged, Month, MonthOfDoses, ScheduledDose};
use crate::id::DoseId;
use crate::programme::ProgrammePhase;
use crate::sweep::{Computed, Facts, PhaseEntry, Rule, States, evaluate};
use crate::tz::tests::zone;

pub(crate) fn client() -> Client {
    let at = Timestamp::from_ms(1_790_000_000_000);
    let profile = Profile {
        email: Some(Email::parse("a@example.com").unwrap()),
        full_name: "Ada".to_owned(),
        phone: None,
        goals: Some("SECRET".to_owned()),
        health_notes: Some("SECRET".to_owned()),
        height_in: None,
        weight_lbs: None,
        external_id: None,
    };
    Client {
        id: ClientId::parse("c1").unwrap(),
        coach_id: CoachId::parse("coach_1").unwrap(),
        profile,
        is_active: true,
        phase: Phase::default(),
        created_at: at,
        origin: Origin::PartnerApi,
        latest_check_in_at: None,
    }
}

pub(crate) fn event() -> Event {
    let client = client();
    Event::new_client(&client, client.created_at)
}

fn at() -> Timestamp {
    Timestamp::parse("2026-09-20T08:00:00Z").unwrap()
}

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn body(event: &Event) -> Value {
    serde_json::from_slice(&event.render(PayloadMode::Identifiers)).unwrap()
}

fn stored(event: &Event) -> Event {
    serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap()
}

/// Builds a match of rule `a1` of coach `coach_2`, whose step names the endpoint `we_1`.
fn found(event_type: ComputedType, data: EventData) -> Computed {
    Computed {
        coach_id: CoachId::parse("coach_2").unwrap(),
        automation_id: AutomationId::parse("a1").unwrap(),
        event_type,
        at: at(),
        data,
        episode: "1".to_owned(),
        to: vec![EndpointId::parse("we_1").unwrap()],
    }
}

fn comparing(threshold: f64) -> AutomationWithThreshold {
    let id = AutomationId::parse("a1").unwrap();
    AutomationWithThreshold { id, name: "Rule".to_owned(), threshold: Measure(threshold) }
}

fn crossed(event_type: ComputedType, compliance_pct: u8, threshold: f64) -> Computed {
    let data = ComplianceCrossed { compliance_pct, automation: comparing(threshold) };
    found(event_type, EventData::Compliance(data))
}

fn drop_of(compliance_pct: u8) -> Computed {
    crossed(ComputedType::ComplianceDrop, compliance_pct, 60.0)
}

#[test]
fn identifiers_mode_names_nobody() {
    let body: Value = serde_json::from_slice(&event().render(PayloadMode::Identifiers)).unwrap();
    assert_eq!(
        body,
        json!({"type": "new_client", "timestamp": "2026-09-21T14:13:20.000Z",
               "data": {"client": {"id": "c1"}, "created_at": "2026-09-21T14:13:20.000Z", "source": "partner_api"}})
    );
}

#[test]
fn contact_details_mode_adds_name_email_and_phone_nulls_kept() {
    let body: Value = serde_json::from_slice(&event().render(PayloadMode::ContactDetails)).unwrap();
    assert_eq!(body["data"]["client"], json!({"id": "c1", "name": "Ada", "email": "a@example.com", "phone": null}));
}

#[test]
fn each_event_has_the_data_of_its_type_and_reads_back_from_storage() {
    let client = client();
    let at = at();
    let check_in = CheckInId::parse("k1").unwrap();
    let advance = PhaseAdvance { from_phase: None, to_phase: "Build".to_owned(), advanced_at: at };
    let of_check_in = json!({"check_in": {"id": "k1", "submitted_at": at}});
    for (event, data) in [
        (
            Event::of_check_in(&client, EventType::CheckInSubmitted, &check_in, SubmissionTimes::at(at)),
            of_check_in.clone(),
        ),
        (Event::of_check_in(&client, EventType::SystemGradeDrop, &check_in, SubmissionTimes::at(at)), of_check_in),
        (Event::phase_advanced(&client, &advance), json!({"from_phase": null, "to_phase": "Build", "advanced_at": at})),
        (
            Event::message_received(&client, &MessageId::parse("m1").unwrap(), at),
            json!({"message": {"id": "m1", "received_at": at}}),
        ),
    ] {
        let mut expected = data;
        expected["client"] = json!({"id": "c1"});
        assert_eq!(body(&event), json!({"type": event.event_type, "timestamp": at, "data": expected}));
        assert_eq!(stored(&event), event);
    }
}

#[test]
fn each_computed_event_has_its_figures_and_its_automation_and_reads_back_from_storage() {
    let named = json!({"id": "a1", "name": "Rule"});
    let comparing = |threshold: Value| json!({"id": "a1", "name": "Rule", "threshold": threshold});
    let check_in = |last_check_in_at| {
        let data = CheckInInactivity { last_check_in_at, days_inactive: 10, automation: self::comparing(10.0) };
        found(ComputedType::CheckInInactivity, EventData::CheckInInactivity(data))
    };
    let log = |last_logged_on| {
        let data = DailyLogInactivity { last_logged_on, days_inactive: 3, automation: self::comparing(3.0) };
        found(ComputedType::DailyLogInactivity, EventData::DailyLogInactivity(data))
    };
    let phase = PhaseEligible {
        current_phase: "Build".to_owned(),
        eligible_since: date("2026-09-20"),
        automation: NamedAutomation { id: AutomationId::parse("a1").unwrap(), name: "Rule".to_owned() },
    };
    for (name, computed, mut data) in [
        ("compliance_drop", drop_of(58), json!({"compliance_pct": 58, "automation": comparing(json!(60))})),
        (
            "compliance_milestone",
            crossed(ComputedType::ComplianceMilestone, 100, 99.5),
            json!({"compliance_pct": 100, "automation": comparing(json!(99.5))}),
        ),
        (
            "phase_eligible",
            found(ComputedType::PhaseEligible, EventData::PhaseEligible(phase)),
            json!({"current_phase": "Build", "eligible_since": "2026-09-20", "automation": named}),
        ),
        (
            "check_in_inactivity",
            check_in(Some(at())),
            json!({"last_check_in_at": "2026-09-20T08:00:00.000Z", "days_inactive": 10, "automation": comparing(json!(10))}),
        ),
        (
            "check_in_inactivity",
            check_in(None),
            json!({"last_check_in_at": null, "days_inactive": 10, "automation": comparing(json!(10))}),
        ),
        (
            "daily_log_inactivity",
            log(Some(date("2026-09-16"))),
            json!({"last_logged_on": "2026-09-16", "days_inactive": 3, "automation": comparing(json!(3))}),
        ),
        (
            "daily_log_inactivity",
            log(None),
            json!({"last_logged_on": null, "days_inactive": 3, "automation": comparing(json!(3))}),
        ),
    ] {
        let event = computed.event(&client()).unwrap();
        data["client"] = json!({"id": "c1"});
        // Compared as text: 60 and 60.0 are equal as values.
        let expected = format!(r#"{{"type":"{name}","timestamp":"2026-09-20T08:00:00.000Z","data":{data}}}"#);
        assert_eq!(String::from_utf8(event.render(PayloadMode::Identifiers)).unwrap(), expected);
        assert_eq!((event.coach_id.as_str(), &event.to), ("coach_2", &computed.to));
        assert_eq!(stored(&event), event);
    }
}

#[test]
fn a_computed_event_has_one_id_per_client_automation_and_episode() {
    let id = |client: &Client, computed: &Computed| computed.event(client).unwrap().id;
    let first = drop_of(58);
    assert_eq!(id(&client(), &drop_of(57)), id(&client(), &first), "the figures may differ when it is found again");
    let another = Client { id: ClientId::parse("c2").unwrap(), ..client() };
    let milestone = crossed(ComputedType::ComplianceMilestone, 58, 60.0);
    for other in [
        id(&another, &first),
        id(&client(), &Computed { automation_id: AutomationId::parse("a2").unwrap(), ..first.clone() }),
        id(&client(), &Computed { episode: "2".to_owned(), ..first.clone() }),
        id(&client(), &milestone),
    ] {
        assert_ne!(other, id(&client(), &first));
    }
}

#[test]
fn a_computed_event_goes_to_the_endpoints_of_steps_alone_and_without_one_there_is_none() {
    let endpoint = |id: &str| EndpointId::parse(id).unwrap();
    let event = drop_of(58).event(&client()).unwrap();
    assert!(event.is_for(&endpoint("we_1"), &[]));
    assert!(!event.is_for(&endpoint("we_2"), &EventType::ALL), "nobody subscribes to it");
    assert!(!Event { to: Vec::new(), ..event.clone() }.is_for(&endpoint("we_1"), &EventType::ALL));
    let nowhere = Computed { to: Vec::new(), ..drop_of(58) };
    assert_eq!(nowhere.event(&client()), None);
    let rule = automation("a2", Trigger::NewClient);
    assert!(self::event().sent_by(&rule).is_some());
    assert_eq!(event.sent_by(&rule), None, "it is sent already");
}

fn automation(id: &str, trigger: Trigger) -> Automation {
    Automation {
        id: AutomationId::parse(id).unwrap(),
        coach_id: CoachId::parse("coach_1").unwrap(),
        name: "Rule".to_owned(),
        active: true,
        trigger,
        steps: vec![Step::Webhook { endpoint_id: EndpointId::parse("we_1").unwrap() }],
    }
}

/// The facts of an old client that may leave its phase, with 3 of 7 doses and nothing else known.
fn facts() -> Facts {
    let dose_id = DoseId::parse("d").unwrap();
    let dose = ScheduledDose { dose_id: dose_id.clone(), per_day: 1, from: date("2026-01-01"), until: None };
    let mut doses = MonthOfDoses::default();
    ["2026-09-17", "2026-09-18", "2026-09-19"].map(date).iter().for_each(|day| doses.add(&dose_id, *day));
    let phase = |name: &str| ProgrammePhase { name: name.to_owned(), min_days: 7, min_compliance_pct: None };
    Facts {
        created_at: Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
        zone: zone("UTC"),
        last_check_in_at: None,
        last_daily_log_on: None,
        phase: Some(PhaseEntry { name: "Build".to_owned(), started_on: date("2026-09-13"), number: 1 }),
        phases: vec![phase("Build"), phase("Keep")],
        schedule: DoseSchedule(vec![dose]),
        logged: DosesLogged([(Month::of(date("2026-09-17")), doses)].into()),
    }
}

#[test]
fn every_computed_match_makes_an_event_of_its_name() {
    let is_emitted = |trigger: Trigger| {
        // The first evaluation is silent, so it runs before the facts are known.
        let rule = Rule { automation: automation("a1", trigger), revision: at() };
        let before = at() + TimeDelta::days(-1);
        let nothing = Facts { created_at: before, phase: None, logged: DosesLogged(BTreeMap::new()), ..facts() };
        let seeded = evaluate(&nothing, std::slice::from_ref(&rule), &States::new(), None, before).states;
        let emitted = evaluate(&facts(), &[rule], &seeded, None, at()).emitted;
        assert_eq!(emitted.len(), 1);
        emitted[0].event(&client()).unwrap().event_type
    };
    let (threshold, window_days) = (43.0, 7);
    assert_eq!(
        [
            Trigger::ComplianceDrop { threshold: 43.5, window_days },
            Trigger::ComplianceMilestone { threshold, window_days },
            Trigger::PhaseEligible,
            Trigger::CheckInInactivity { days: 5 },
            Trigger::DailyLogInactivity { days: 5 },
        ]
        .map(is_emitted),
        ComputedType::ALL.map(EventName::Computed)
    );
}

#[test]
fn every_event_is_found_by_its_name() {
    for event in EventType::ALL {
        assert_eq!(EventType::parse(event.as_str()), Ok(event));
    }
    assert!(EventType::parse("compliance_drop").unwrap_err().contains("new_client"));
    for event in EventName::all() {
        assert_eq!(EventName::parse(event.as_str()), Ok(event));
        assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        assert_eq!(serde_json::from_value::<EventName>(json!(event.as_str())).unwrap(), event);
    }
    assert_eq!(EventName::all().count(), 11);
    assert!(EventName::parse("client_created").unwrap_err().contains("message_received, compliance_drop"));
    assert!(serde_json::from_value::<EventName>(json!("client_created")).is_err());
}
