//! The events that one cause emits, and the data that each event may contain.

use super::*;
use crate::check_in::{Grades, SubmissionTimes};
use crate::event::PayloadMode;
use crate::event::tests::client;
use crate::id::CheckInId;
use crate::time::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

const NAME: &str = "Rule with a telling name";

fn at() -> Timestamp {
    Timestamp::parse("2026-09-20T08:00:00Z").unwrap()
}

fn automation(id: &str, trigger: Trigger, endpoints: &[&str]) -> Automation {
    let webhook = |id: &&str| Step::Webhook { endpoint_id: EndpointId::parse(id).unwrap() };
    Automation {
        id: AutomationId::parse(id).unwrap(),
        coach_id: CoachId::parse("coach_1").unwrap(),
        name: NAME.to_owned(),
        active: true,
        trigger,
        steps: endpoints.iter().map(webhook).collect(),
    }
}

fn low(threshold: f64, question: Option<&str>) -> Trigger {
    Trigger::LowCheckInScore { threshold, question_id: question.map(str::to_owned) }
}

fn scores(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
    pairs.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect()
}

fn check_in(scores: BTreeMap<String, f64>) -> CheckInSubmitted {
    let check_in = CheckInId::parse("k1").unwrap();
    CheckInSubmitted { check_in, submitted_at: at(), scores, grades: BTreeMap::new() }
}

/// Builds drops from 2 to 1 in these systems.
fn dropped(systems: &[&str]) -> GradeDrops {
    let grades = |grade: f64| systems.iter().map(|system| ((*system).to_owned(), grade)).collect();
    let mut latest = Grades::default();
    latest.apply(&CheckInId::parse("k0").unwrap(), SubmissionTimes::at(at()), &grades(2.0), false);
    latest.apply(&CheckInId::parse("k1").unwrap(), SubmissionTimes::at(at()), &grades(1.0), false)
}

fn data(event: &Event) -> Value {
    serde_json::from_slice::<Value>(&event.render(PayloadMode::Identifiers)).unwrap()["data"].clone()
}

/// Renders each event as its type, its number of named endpoints, and its automation.
fn lines(events: &[Event]) -> Vec<(&'static str, usize, Value)> {
    events.iter().map(|event| (event.event_type.as_str(), event.to.len(), data(event)["automation"].clone())).collect()
}

#[test]
fn an_event_goes_to_subscribers_and_to_each_automation_it_triggers() {
    let event = Event::new_client(&client(), at());
    let automations = [
        automation("a1", Trigger::NewClient, &["we_2", "we_1", "we_2"]),
        automation("a2", Trigger::NewClient, &[]),
        automation("a3", Trigger::PhaseAdvanced, &["we_1"]),
        automation("a4", Trigger::PhaseEligible, &["we_1"]),
        Automation { active: false, ..automation("a5", Trigger::NewClient, &["we_1"]) },
        automation("a6", Trigger::NewClient, &["we_1"]),
    ];
    let all = emitted_events(event.clone(), &automations);
    let named = |id: &str| json!({ "id": id, "name": NAME });
    assert_eq!(
        lines(&all),
        [("new_client", 0, Value::Null), ("new_client", 2, named("a1")), ("new_client", 1, named("a6"))]
    );
    assert_eq!(all[0], event, "subscribers get what they always got");
    let ids: BTreeSet<_> = all.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids.len(), 3, "each is an event of its own");
    for event in all {
        let stored = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&stored).unwrap(), event);
    }
}

#[test]
fn at_most_the_limit_of_automations_of_a_kind_emit() {
    let of = |trigger: &Trigger| {
        (0..MAX_TRIGGERED + 1).map(|n| automation(&format!("a{n}"), trigger.clone(), &["we_1"])).collect::<Vec<_>>()
    };
    let triggers = [Trigger::CheckInSubmitted, low(3.0, None), Trigger::SystemGradeDrop { system: None }];
    let automations = triggers.iter().flat_map(of).collect::<Vec<_>>();
    let all = check_in_events(&client(), &check_in(scores(&[("sleep", 1.0)])), &dropped(&["gut"]), &automations);
    assert_eq!(all.len(), 2 + 4 * MAX_TRIGGERED);
    let event = Event::new_client(&client(), at());
    assert_eq!(emitted_events(event, &of(&Trigger::NewClient)).len(), 1 + MAX_TRIGGERED);
}

#[test]
fn a_grade_drop_keeps_its_id_when_its_check_in_is_corrected() {
    let rule = automation("a1", Trigger::SystemGradeDrop { system: None }, &["we_1"]);
    let mut latest = Grades::default();
    let mut first_times = BTreeMap::new();
    let mut drops = |id: &str, day: u32, grades: &[(&str, f64)]| {
        let submitted_at = Timestamp::parse(&format!("2026-09-{day}T08:00:00Z")).unwrap();
        let check_in = CheckInSubmitted {
            check_in: CheckInId::parse(id).unwrap(),
            submitted_at,
            scores: BTreeMap::new(),
            grades: scores(grades),
        };
        let first_submitted_at = *first_times.entry(id.to_owned()).or_insert(submitted_at);
        let times = SubmissionTimes { submitted_at, first_submitted_at };
        let drops = latest.apply(&check_in.check_in, times, &check_in.grades, false);
        let all = check_in_events(&client(), &check_in, &drops, std::slice::from_ref(&rule));
        let drops = all.into_iter().filter(|event| event.event_type == EventType::SystemGradeDrop.into());
        drops.map(|event| (event.id.to_string(), data(&event)["check_in"]["submitted_at"].clone())).collect::<Vec<_>>()
    };
    drops("k1", 10, &[("gut", 5.0)]);
    let first = drops("k5", 15, &[("gut", 3.0)]);
    assert_eq!(first.len(), 2, "to subscribers, and by the automation");
    assert!(drops("k5", 16, &[("gut", 3.0), ("sleep", 3.0)]).is_empty());
    let ids = |drops: &[(String, Value)]| drops.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    for again in [drops("k2", 11, &[("gut", 4.0)]), drops("k3", 12, &[("sleep", 4.0)])] {
        assert_eq!(ids(&again), ids(&first));
        assert!(again.iter().all(|(_, submitted_at)| submitted_at == "2026-09-16T08:00:00.000Z"), "{again:?}");
    }
    // A correction changes the time of one of two grades; a late check-in then reveals both drops.
    drops("k5", 17, &[("gut", 3.0)]);
    assert_eq!(ids(&drops("k4", 13, &[("gut", 4.0), ("sleep", 4.0)])), ids(&first), "each id once");
    // Meanwhile another check-in holds the latest grades.
    drops("k6", 18, &[("gut", 4.0), ("sleep", 4.0)]);
    drops("k5", 19, &[("gut", 3.0)]);
    let again = drops("k7", 18, &[("gut", 4.0)]);
    assert!(again.is_empty() || ids(&again) == ids(&first), "{again:?}");
}

proptest! {
    #[test]
    fn an_automation_sends_a_check_in_if_and_only_if_a_grade_of_its_system_dropped(
        before in proptest::collection::btree_map("[a-d]", 0.0f64..5.0, 0..4),
        after in proptest::collection::btree_map("[a-d]", 0.0f64..5.0, 0..4),
        system in proptest::option::of("[a-d]"),
    ) {
        let mut latest = Grades::default();
        latest.apply(&CheckInId::parse("k0").unwrap(), SubmissionTimes::at(at()), &before, false);
        let dropped = latest.apply(&CheckInId::parse("k1").unwrap(), SubmissionTimes::at(at()), &after, false);
        let fell = |system: &String| before.get(system).zip(after.get(system)).is_some_and(|(was, is)| is < was);
        let rule = automation("a1", Trigger::SystemGradeDrop { system: system.clone() }, &["we_1"]);
        let all = check_in_events(&client(), &check_in(BTreeMap::new()), &dropped, &[rule]);
        let any = after.keys().any(fell);
        let system_dropped = system.as_ref().map_or(any, fell);
        let of = |is_sent: bool| {
            let drops = all.iter().filter(|event| event.event_type == EventType::SystemGradeDrop.into());
            drops.filter(|event| event.to.is_empty() != is_sent).count()
        };
        prop_assert_eq!((of(false), of(true)), (usize::from(any), usize::from(system_dropped)));
    }

    #[test]
    fn a_low_score_is_emitted_if_and_only_if_a_score_is_below_the_threshold(
        given in proptest::collection::btree_map("[a-d]", -10.0f64..10.0, 0..4),
        rules in proptest::collection::vec((-10.0f64..10.0, proptest::option::of("[a-d]"), any::<bool>(), any::<bool>()), 0..8),
    ) {
        let automations: Vec<Automation> = rules.iter().enumerate().map(|(n, (threshold, question, active, webhook))| {
            let endpoints: &[&str] = if *webhook { &["we_1"] } else { &[] };
            let rule = automation(&format!("a{n}"), low(*threshold, question.as_deref()), endpoints);
            Automation { active: *active, ..rule }
        }).collect();
        let all = check_in_events(&client(), &check_in(given.clone()), &GradeDrops::default(), &automations);
        let again = check_in_events(&client(), &check_in(given.clone()), &GradeDrops::default(), &automations);
        prop_assert_eq!(&all, &again);
        let ids: BTreeSet<_> = all.iter().map(|event| event.id.as_str()).collect();
        prop_assert_eq!(ids.len(), all.len());
        for (n, (threshold, question, active, webhook)) in rules.iter().enumerate() {
            let below = given.iter().any(|(name, score)| {
                question.as_ref().is_none_or(|question| question == name) && score < threshold
            });
            let of_rule = |event: &&Event| data(event)["automation"]["id"] == format!("a{n}");
            let (sent, subscribed): (Vec<_>, Vec<_>) = all.iter().filter(of_rule).partition(|event| !event.to.is_empty());
            prop_assert_eq!(subscribed.len(), usize::from(*active && below));
            prop_assert_eq!(sent.len(), usize::from(*active && below && *webhook));
        }
        for event in &all {
            let data = data(event);
            let mut members: Vec<_> = data.as_object().unwrap().keys().map(String::as_str).collect();
            members.retain(|name| *name != "automation");
            prop_assert_eq!(members, ["check_in", "client"]);
        }
    }
}
