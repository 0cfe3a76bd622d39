//! Behaviour of every rule: outages, edits, hand-over, inactive clients.

use super::*;

const NO_CHECK_IN: Trigger = Trigger::CheckInInactivity { days: 3 };

fn seen_on_the_2nd() -> Life {
    let mut life = life(NO_CHECK_IN, &[]);
    life.fact(at("2026-06-02T09:30"), |facts| facts.last_check_in_at = Some(at("2026-06-02T09:30")));
    life
}

#[test]
fn after_three_days_without_sweeps_the_present_counts() {
    let mut life = seen_on_the_2nd();
    let mut fallen = super::life(drop_below(50.0), &may(26..=30));
    let mut risen = super::life(Trigger::ComplianceMilestone { threshold: 100.0, window_days: 1 }, &june([3, 8]));
    for (life, instants) in [
        (&mut life, vec!["2026-06-05T09:30"]),
        (&mut fallen, vec!["2026-06-03T00:00"]),
        // The match on the 3rd alone is over; on the 8th the client matches again.
        (&mut risen, vec!["2026-06-08T00:00"]),
    ] {
        life.until(at("2026-06-02T12:00"));
        life.outage_until(at("2026-06-05T12:10"));
        life.until(at("2026-06-20T00:00"));
        assert_eq!(life.instants(), instants);
    }
    assert_eq!(fallen.emitted[0].computed.event_type, ComputedType::ComplianceDrop);
    assert_eq!(fallen.emitted[0].computed.data.members()["compliance_pct"], 14);
    assert_eq!(fallen.emitted[0].swept_at, at("2026-06-05T12:15"));
}

#[rstest::rstest]
#[case::longer_after_it_was_emitted("2026-06-06T00:00", 5, &["2026-06-05T09:30", "2026-06-07T09:30"])]
#[case::shorter_than_it_has_been("2026-06-04T12:00", 2, &[])]
#[case::shorter_but_still_to_come("2026-06-03T12:00", 2, &["2026-06-04T09:30"])]
fn an_edited_automation_emits_new_matches_and_no_present_ones(
    #[case] saved_at: &str,
    #[case] days: u32,
    #[case] expected: &[&str],
) {
    let mut life = seen_on_the_2nd();
    let edited = rule("r", Trigger::CheckInInactivity { days }, at(saved_at));
    life.save(at(saved_at), edited);
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), expected);
}

#[test]
fn a_new_automation_emits_who_comes_to_match_after_the_sweep_that_seeds_it() {
    let mut life = seen_on_the_2nd();
    life.fact(at("2026-06-04T08:00"), |facts| june([1, 2, 3, 4]).into_iter().for_each(|day| facts.log(day)));
    let two_days = rule("c", Trigger::CheckInInactivity { days: 2 }, at("2026-06-04T09:14"));
    life.save(at("2026-06-04T09:14"), two_days);
    life.save(at("2026-06-04T10:00"), rule("m", milestone(70.0), at("2026-06-04T10:00")));
    life.save(at("2026-06-04T10:01"), rule("n", milestone(50.0), at("2026-06-04T10:01")));
    life.fact(at("2026-06-04T10:18"), |facts| facts.log(may(31..=31)[0]));
    life.until(at("2026-06-05T00:00"));
    let emitted = [("c", "2026-06-04T09:30"), ("m", "2026-06-04T10:30")];
    assert_eq!(life.episodes(), emitted.map(|(id, when)| (automation_id(id), at(when))));
}

#[test]
fn who_matches_the_new_coachs_automations_at_the_hand_over_is_seeded() {
    let mut life = seen_on_the_2nd();
    let theirs = |id: &str, days| rule(id, Trigger::CheckInInactivity { days }, at("2026-06-04T11:00"));
    life.until(at("2026-06-04T12:00"));
    life.hand_over(at("2026-06-04T12:00"), vec![theirs("two", 2), theirs("four", 4)]);
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.episodes(), [(automation_id("four"), at("2026-06-06T09:30"))]);
    let known: Vec<&str> = life.states.of.keys().map(AutomationId::as_str).collect();
    assert_eq!(known, ["four", "two"]);
}

#[test]
fn a_client_that_is_handed_over_before_the_sweep_is_seeded_by_the_new_coach_alone() {
    let matches_at_09_32 = || {
        let mut life = seen_on_the_2nd();
        life.fact(at("2026-06-02T09:32"), |facts| facts.last_check_in_at = Some(at("2026-06-02T09:32")));
        life
    };
    let mut life = matches_at_09_32();
    life.hand_over(at("2026-06-05T09:33"), Vec::new());
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), [""; 0]);
    // Also if the client comes back before a sweep.
    let mut back = matches_at_09_32();
    let own = back.rules.clone();
    back.hand_over(at("2026-06-05T09:33"), Vec::new());
    back.hand_over(at("2026-06-05T09:34"), own);
    back.until(at("2026-06-20T00:00"));
    assert_eq!(back.instants(), [""; 0]);
}

#[test]
fn a_client_off_the_roster_is_skipped_and_seeded_when_it_returns() {
    let mut emitted_before = seen_on_the_2nd();
    emitted_before.set_active(at("2026-06-06T00:00"), false);
    emitted_before.set_active(at("2026-06-08T00:00"), true);
    emitted_before.until(at("2026-06-20T00:00"));
    assert_eq!(emitted_before.instants(), ["2026-06-05T09:30"]);
    let mut comes_to_match = seen_on_the_2nd();
    comes_to_match.set_active(at("2026-06-04T00:00"), false);
    comes_to_match.until(at("2026-06-08T00:00"));
    assert_eq!((comes_to_match.instants().len(), comes_to_match.due()), (0, None));
    comes_to_match.set_active(at("2026-06-09T00:00"), true);
    comes_to_match.fact(at("2026-06-10T08:00"), |facts| facts.last_check_in_at = Some(at("2026-06-10T08:00")));
    comes_to_match.until(at("2026-06-20T00:00"));
    assert_eq!(comes_to_match.instants(), ["2026-06-13T08:00"]);
}

#[test]
fn a_change_of_the_zone_emits_the_matches_that_it_causes() {
    let mut life = life(Trigger::ComplianceMilestone { threshold: 100.0, window_days: 1 }, &[]);
    // In Tokyo it is the 5th from 15:00 on.
    life.fact(at("2026-06-04T12:00"), |facts| facts.log(june([5])[0]));
    life.change_settings(at("2026-06-04T20:05"), |facts| facts.zone = zone("Asia/Tokyo"));
    life.until(at("2026-06-10T00:00"));
    assert_eq!(life.instants(), ["2026-06-04T20:15"]);
}

#[test]
fn deleted_and_disabled_automations_lose_their_state() {
    let mut life = seen_on_the_2nd();
    life.until(at("2026-06-03T00:00"));
    let mut off = life.rules[0].clone();
    off.automation.active = false;
    life.save(at("2026-06-04T00:00"), off);
    life.until(at("2026-06-20T00:00"));
    assert_eq!((life.instants().len(), life.states.of.len(), life.due()), (0, 0, None));
}

#[test]
fn a_hundred_automations_of_a_kind_count() {
    let start = at("2026-06-01T12:00");
    let of_kind = |letter: char, trigger: &Trigger, count: usize| {
        let rule = |n| rule(&format!("{letter}{n:03}"), trigger.clone(), start);
        (0..count).map(rule).collect::<Vec<_>>()
    };
    let kinds =
        [('c', NO_CHECK_IN, 105), ('l', Trigger::DailyLogInactivity { days: 1 }, 25), ('m', milestone(10.0), 15)];
    let rules = kinds.iter().flat_map(|(letter, trigger, count)| of_kind(*letter, trigger, *count)).collect();
    let mut life = Life::swept(facts(start, zone("UTC"), 1), rules, start);
    life.until(at("2026-06-02T00:00"));
    life.outage_until(at("2026-06-06T00:00"));
    life.fact(at("2026-06-06T00:01"), |facts| facts.log(june([6])[0]));
    life.until(at("2026-06-06T00:15"));
    assert_eq!(life.emitted.len(), MAX_SWEPT + 25 + 15);
}

#[test]
fn a_dose_logged_for_a_far_date_makes_a_client_looked_at_now_and_then() {
    let mut life = life(drop_below(50.0), &[date("2126-06-01")]);
    life.until(at("2026-06-01T13:00"));
    assert_eq!(life.due(), Some(at("2026-11-28T00:00")));
}

#[test]
fn an_edited_automation_keeps_seven_days_between_drops() {
    let mut life = life(drop_below(50.0), &may(27..=30));
    life.fact(at("2026-06-04T09:00"), |facts| june(1..=3).into_iter().for_each(|day| facts.log(day)));
    life.save(at("2026-06-04T12:00"), rule("r", drop_below(45.0), at("2026-06-04T12:00")));
    life.fact(at("2026-06-05T09:00"), |facts| june(1..=3).into_iter().for_each(|day| facts.unlog(day)));
    log_at_noon(&mut life, [6]);
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-03T00:00", "2026-06-10T00:00"]);
}
