//! The ids, the receivers and the names of events.

use super::*;
use crate::automation::{Automation, Step, Trigger};
use crate::client::{Measure, Origin, Phase, Profile};
use crate::email::Email;
use crate::id::ClientId;
use crate::sweep::Computed;

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
        updated_at: at,
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
    assert_eq!(EventName::all().count(), 20);
    assert!(EventName::parse("client_created").unwrap_err().contains("booking_cancelled, compliance_drop"));
    assert!(serde_json::from_value::<EventName>(json!("client_created")).is_err());
}
