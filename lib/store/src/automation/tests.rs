//! What is kept of what an automation was.

use super::*;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn automation(name: &str, active: bool, trigger: Trigger) -> Automation {
    let (id, coach_id) = (AutomationId::parse("a").unwrap(), CoachId::parse("ada").unwrap());
    Automation { id, coach_id, name: name.to_owned(), active, trigger, steps: Vec::new() }
}

fn named(name: &str) -> Automation {
    automation(name, true, Trigger::CheckInInactivity { days: 3 })
}

/// What comes of these saves, `None` a deletion, said and stored at 1,000 ms, 2,000 ms and so on.
fn saved(states: &[Option<Automation>], passed_at: Option<Timestamp>) -> StoredAutomation {
    let mut stored = None;
    for (n, state) in (1i64..).zip(states) {
        stored = Some(StoredAutomation::next(stored, state.as_ref(), (at(n * 1000).into(), at(n * 1000)), passed_at));
    }
    stored.unwrap()
}

fn former(stored: &StoredAutomation) -> Vec<String> {
    match stored {
        StoredAutomation::Present(record) => record.rule().former.into_iter().map(|it| it.automation.name).collect(),
        StoredAutomation::Deleted(_) => Vec::new(),
    }
}

#[test]
fn what_it_was_stays_until_every_client_has_been_judged_since() {
    let edits = [Some(named("A")), Some(named("B")), Some(named("C"))];
    // B took A's place at 2,000 ms, C took B's at 3,000 ms.
    for (passed_at, kept) in [
        (None, vec!["A", "B"]),
        (Some(1_999), vec!["A", "B"]),
        (Some(2_000), vec!["A", "B"]),
        (Some(2_001), vec!["B"]),
        (Some(3_001), vec![]),
    ] {
        assert_eq!(former(&saved(&edits, passed_at.map(at))), kept, "{passed_at:?}");
    }
}

#[test]
fn nothing_stays_of_what_was_switched_off_deleted_or_another_kind_of_rule_since() {
    let off = automation("off", false, Trigger::CheckInInactivity { days: 3 });
    let emitted = automation("emitted", true, Trigger::NewClient);
    for between in [Some(off), Some(emitted), None] {
        let edits = [Some(named("A")), between, Some(named("B")), Some(named("C"))];
        assert_eq!(former(&saved(&edits, None)), ["B"]);
    }
}

#[test]
fn of_many_edits_the_last_stay() {
    let edits: Vec<_> = (0..30).map(|n| Some(named(&n.to_string()))).collect();
    let kept: Vec<_> = (19..29).map(|n: i32| n.to_string()).collect();
    assert_eq!(former(&saved(&edits, None)), kept);
}

#[test]
fn every_revision_is_another_even_where_the_clock_stands_still() {
    let mut stored = None;
    for name in ["A", "B", "C"] {
        stored = Some(StoredAutomation::next(stored, Some(&named(name)), (at(5).into(), at(1000)), None));
    }
    let Some(StoredAutomation::Present(record)) = stored else { panic!("it is there") };
    let rule = record.rule();
    let former = rule.former.iter().map(|former| (former.revision, former.saved_at));
    let all: Vec<_> = former.chain([(rule.revision, rule.saved_at)]).collect();
    assert_eq!(all, [1000, 1001, 1002].map(|ms| (at(ms), at(ms))));
}

#[test]
fn what_is_said_again_later_is_the_same_revision_with_a_later_date() {
    let stored = saved(&[Some(named("A")), Some(named("B")), Some(named("B"))], None);
    assert!(stored.is_same(Some(&named("B"))) && !stored.is_same(Some(&named("A"))) && !stored.is_same(None));
    assert_eq!((stored.said_at(), former(&stored)), (at(3000).into(), vec!["A".to_owned()]));
    let StoredAutomation::Present(record) = stored else { panic!("it is there") };
    assert_eq!(record.rule().revision, at(2000));
    assert!(saved(&[Some(named("A")), None], None).is_same(None));
}
