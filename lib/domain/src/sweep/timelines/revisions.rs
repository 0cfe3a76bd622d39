//! Automations that are edited, switched off or deleted before a sweep comes to the client that matched them.

use super::*;
use crate::automation::Step;

/// A client on the day on which it is told at 10:03 that there was no check-in for three days. Sweeps come at 10:00 and 10:15.
fn inactive_at_10_03() -> Life {
    let mut life = life(Trigger::CheckInInactivity { days: 3 }, &[]);
    check_in(&mut life, "2026-06-02T10:03");
    life.until(at("2026-06-05T10:01"));
    life
}

fn check_in(life: &mut Life, submitted_at: &str) {
    life.fact(at(submitted_at), |facts| facts.last_check_in_at = Some(at(submitted_at)));
}

/// Edits of the automation on that day. The pass over the coach's clients comes to this one five minutes later.
fn edit(life: &mut Life, time: &str, edit: impl FnOnce(&mut Automation)) {
    let edited = life.edited("r", edit);
    life.save(on_that_day(time), edited, TimeDelta::minutes(5));
}

fn on_that_day(time: &str) -> Timestamp {
    at(&format!("2026-06-05T{time}"))
}

fn after_days(days: u32) -> impl FnOnce(&mut Automation) {
    move |automation| automation.trigger = Trigger::CheckInInactivity { days }
}

type Edit = fn(&mut Automation);

fn renamed(automation: &mut Automation) {
    automation.name = "Renamed".to_owned();
}

fn switched_off(automation: &mut Automation) {
    automation.active = false;
}

fn switched_on(automation: &mut Automation) {
    automation.active = true;
}

fn of_another_kind(automation: &mut Automation) {
    automation.trigger = Trigger::NewClient;
}

fn of_drops_below_50(automation: &mut Automation) {
    automation.trigger = drop_below(50.0);
}

fn of_drops_below_49(automation: &mut Automation) {
    automation.trigger = drop_below(49.0);
}

/// What is told by which name, from the 5th of June on.
fn told(mut life: Life) -> Vec<(String, String)> {
    life.until(at("2026-06-20T00:00"));
    let names = life.told.iter().map(|told| told.computed.name.clone());
    names.zip(life.instants()).collect()
}

fn by(name: &str, instant: &str) -> (String, String) {
    (name.to_owned(), instant.to_owned())
}

#[test]
fn what_matched_before_a_rename_is_told_by_the_former_name_at_the_sweep() {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", renamed);
    life.until(on_that_day("10:15"));
    let super::super::life::Told { found_at, computed } = life.told[0].clone();
    assert_eq!((found_at, computed.at), (on_that_day("10:15"), on_that_day("10:03")));
    assert!(computed.episode.starts_with("2026-05-01T12:00"), "{}: of the revision that was matched", computed.episode);
    check_in(&mut life, "2026-06-06T08:00");
    assert_eq!(told(life), [by("Rule r", "2026-06-05T10:03"), by("Renamed", "2026-06-09T08:00")]);
}

#[test]
fn what_is_told_goes_to_the_endpoints_of_the_revision_that_was_matched() {
    let endpoint = |id: &str| EndpointId::parse(id).unwrap();
    let step = |id: &str| Step::Webhook { endpoint_id: endpoint(id) };
    let mut life = inactive_at_10_03();
    life.rules[0].automation.steps = vec![step("we_2"), Step::Other { kind: "mail".to_owned() }, step("we_1")];
    edit(&mut life, "10:05", |automation| automation.steps = vec![step("we_3")]);
    check_in(&mut life, "2026-06-06T08:00");
    life.until(at("2026-06-20T00:00"));
    let to: Vec<_> = life.told.iter().map(|told| told.computed.to.clone()).collect();
    assert_eq!(to, [vec![endpoint("we_1"), endpoint("we_2")], vec![endpoint("we_3")]]);
}

#[rstest::rstest]
#[case::as_it_is_edited("10:03", &["2026-06-05T10:03"])]
#[case::before_it_matched("10:02:59", &[])]
fn a_revision_counts_up_to_the_instant_at_which_the_next_is_saved(#[case] saved_at: &str, #[case] instants: &[&str]) {
    let mut life = inactive_at_10_03();
    edit(&mut life, saved_at, after_days(2));
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), instants);
}

#[test]
fn an_edited_threshold_tells_what_each_was_to_tell() {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", after_days(4));
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-05T10:03", "2026-06-06T10:03"]);
    let threshold = |n: usize| life.told[n].computed.threshold;
    assert_eq!([threshold(0), threshold(1)], [3.0, 4.0].map(|days| Some(Measure(days))));
}

#[test]
fn an_automation_that_becomes_one_of_another_kind_tells_what_it_was_to_tell() {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", |automation| automation.trigger = Trigger::DailyLogInactivity { days: 1 });
    life.fact(at("2026-06-08T08:00"), |facts| facts.last_daily_log_on = Some(date("2026-06-08")));
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-05T10:03", "2026-06-10T00:00"]);
}

#[test]
fn an_automation_that_is_edited_twice_between_two_sweeps_tells_what_each_revision_was_to_tell() {
    let mut life = inactive_at_10_03();
    // Three days and nothing else: the one of four days is never there when they are over.
    edit(&mut life, "10:02", after_days(4));
    edit(&mut life, "10:02:20", after_days(3));
    edit(&mut life, "10:04", renamed);
    edit(&mut life, "10:05", after_days(5));
    assert_eq!(told(life), [by("Rule r", "2026-06-05T10:03"), by("Renamed", "2026-06-07T10:03")]);
}

#[test]
fn a_drop_that_a_former_revision_told_of_keeps_the_next_quiet_for_seven_days() {
    let mut life = life(drop_below(50.0), &may(26..=30));
    life.until(at("2026-06-02T23:55"));
    // 3 of 7 from midnight on, told before the edit; back for the first half of the 4th, which arms the edited one.
    life.save(at("2026-06-03T00:05"), life.edited("r", renamed), MINUTE);
    life.fact(at("2026-06-04T00:10"), |facts| june(1..=3).into_iter().for_each(|day| facts.log(day)));
    life.fact(at("2026-06-04T12:00"), |facts| june(1..=3).into_iter().for_each(|day| facts.unlog(day)));
    life.fact(at("2026-06-06T12:00"), |facts| facts.log(june([6])[0]));
    assert_eq!(told(life), [by("Rule r", "2026-06-03T00:00"), by("Renamed", "2026-06-10T00:00")]);
}

#[test]
fn a_milestone_that_a_former_revision_reached_is_not_told_again() {
    let mut life = life(milestone(50.0), &[]);
    log_at_noon(&mut life, 2..=4);
    life.fact(at("2026-06-05T12:00:10"), |facts| facts.log(june([5])[0]));
    life.save(at("2026-06-05T12:03"), life.edited("r", |rule| rule.trigger = milestone(90.0)), MINUTE);
    log_at_noon(&mut life, 6..=20);
    assert_eq!(told(life), [by("Rule r", "2026-06-05T12:01")]);
}

#[rstest::rstest]
#[case::of_another_computed_kind(drop_below(1.0))]
#[case::of_an_emitted_kind(Trigger::NewClient)]
fn a_milestone_stays_reached_while_its_automation_is_of_another_kind(#[case] between: Trigger) {
    let mut life = life(milestone(50.0), &[]);
    log_at_noon(&mut life, 2..=5);
    for (time, trigger) in [("2026-06-06T08:00", between), ("2026-06-08T08:00", milestone(90.0))] {
        life.save(at(time), life.edited("r", |rule| rule.trigger = trigger), MINUTE);
        life.until(at(time) + TimeDelta::days(1));
    }
    log_at_noon(&mut life, 10..=19);
    assert_eq!(life.instants(), ["2026-06-05T12:01"]);
}

#[test]
fn seven_days_are_between_drops_though_the_automation_was_of_another_kind_since() {
    let drop = Trigger::ComplianceDrop { threshold: 50.0, window_days: 3 };
    let mut life = life(drop.clone(), &[may(30..=31), june([1])].concat());
    life.until(at("2026-06-03T08:00"));
    assert_eq!(life.instants(), ["2026-06-03T00:00"]);
    life.save(at("2026-06-03T09:00"), life.edited("r", after_days(30)), MINUTE);
    log_at_noon(&mut life, 4..=5);
    life.save(at("2026-06-05T13:00"), life.edited("r", |rule| rule.trigger = drop), MINUTE);
    // One of three from the 7th on.
    log_at_noon(&mut life, [8]);
    life.until(at("2026-06-30T00:00"));
    assert_eq!(life.instants(), ["2026-06-03T00:00", "2026-06-10T00:00"]);
}

#[rstest::rstest]
#[case::renamed([renamed as Edit, renamed], &["2026-06-03T00:00"])]
#[case::switched_off_for_a_day([switched_off as Edit, switched_on], &["2026-06-03T00:00", "2026-06-11T12:01"])]
#[case::of_another_kind_for_a_day([of_another_kind as Edit, of_drops_below_50], &["2026-06-03T00:00", "2026-06-11T12:01"])]
#[case::of_another_threshold([of_drops_below_49 as Edit, renamed], &["2026-06-03T00:00", "2026-06-11T12:01"])]
fn a_drop_stays_told_while_its_automation_is_judged_by_the_same_trigger(
    #[case] edits: [Edit; 2],
    #[case] instants: &[&str],
) {
    let mut life = life(drop_below(50.0), &may(27..=30));
    // Nothing is logged: compliance is null on both days.
    for (day, edit) in [8, 9].into_iter().zip(edits) {
        let time = at(&format!("2026-06-0{day}T08:00"));
        life.save(time, life.edited("r", edit), MINUTE);
        life.until(time + TimeDelta::hours(1));
    }
    log_at_noon(&mut life, [11, 12]);
    life.until(at("2026-06-30T00:00"));
    assert_eq!(life.instants(), instants);
}

#[test]
fn what_was_not_told_when_an_automation_is_switched_off_or_deleted_is_not_told_any_more() {
    let mut off = inactive_at_10_03();
    edit(&mut off, "10:05", switched_off);
    assert_eq!(told(off), []);
    let mut deleted = inactive_at_10_03();
    deleted.delete(on_that_day("10:05"), "r");
    assert_eq!(told(deleted), []);
    let mut edited_and_deleted = inactive_at_10_03();
    edit(&mut edited_and_deleted, "10:05", renamed);
    edited_and_deleted.delete(on_that_day("10:07"), "r");
    assert_eq!(told(edited_and_deleted), []);
    let mut told_before = inactive_at_10_03();
    told_before.until(on_that_day("10:15"));
    edit(&mut told_before, "10:16", switched_off);
    assert_eq!(told(told_before), [by("Rule r", "2026-06-05T10:03")]);
}

#[test]
fn an_automation_that_was_off_in_between_tells_nothing_of_before() {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", switched_off);
    edit(&mut life, "10:06", switched_on);
    edit(&mut life, "10:07", renamed);
    check_in(&mut life, "2026-06-06T08:00");
    assert_eq!(told(life), [by("Renamed", "2026-06-09T08:00")]);
    let mut emitted = inactive_at_10_03();
    edit(&mut emitted, "10:05", |automation| automation.trigger = Trigger::NewClient);
    edit(&mut emitted, "10:06", after_days(3));
    assert_eq!(told(emitted), []);
}

#[test]
fn a_milestone_that_nobody_was_told_of_before_its_automation_was_switched_off_can_still_be_reached() {
    let mut life = life(milestone(50.0), &[]);
    log_at_noon(&mut life, 2..=4);
    life.fact(at("2026-06-05T12:00:10"), |facts| facts.log(june([5])[0]));
    life.save(at("2026-06-05T12:03"), life.edited("r", switched_off), MINUTE);
    life.save(at("2026-06-05T12:04"), life.edited("r", |rule| rule.trigger = milestone(80.0)), MINUTE);
    life.save(at("2026-06-05T12:05"), life.edited("r", switched_on), MINUTE);
    log_at_noon(&mut life, 6..=8);
    assert_eq!(told(life), [by("Rule r", "2026-06-07T12:01")]);
}

#[test]
fn a_fact_after_an_edit_swallows_nothing_of_either_revision() {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", renamed);
    check_in(&mut life, "2026-06-05T10:06");
    assert_eq!(told(life), [by("Rule r", "2026-06-05T10:03"), by("Renamed", "2026-06-08T10:06")]);
}

#[rstest::rstest]
#[case::a_fact(false)]
#[case::a_backfill(true)]
fn what_comes_in_the_minute_of_an_edit_is_known_when_the_edited_automation_is_judged(#[case] backfill: bool) {
    let mut life = life(milestone(50.0), &[]);
    log_at_noon(&mut life, 2..=4);
    life.until(at("2026-06-05T12:00:10"));
    life.apply(backfill, |facts| facts.log(june([5])[0]));
    life.save(at("2026-06-05T12:00:40"), life.edited("r", |rule| rule.trigger = milestone(80.0)), MINUTE);
    log_at_noon(&mut life, 6..=8);
    // The one of 50 % was no more when the minute was over, and the one of 80 % is still to be reached.
    assert_eq!(told(life), [by("Rule r", "2026-06-07T12:01")]);
}

#[rstest::rstest]
#[case::on_time_for_it("2026-06-11T00:05", &["2026-06-03T23:51", "2026-06-10T23:51"])]
#[case::too_late_for_it("2026-06-11T00:30", &["2026-06-03T23:51"])]
fn what_midnight_ends_is_told_after_an_outage_if_the_edit_came_soon(#[case] saved_at: &str, #[case] told: &[&str]) {
    let mut life = life(Trigger::ComplianceDrop { threshold: 60.0, window_days: 1 }, &[]);
    life.facts.schedule.0[0].per_day = 2;
    life.fact(at("2026-06-03T23:50"), |facts| facts.log(june([3])[0]));
    life.fact(at("2026-06-05T12:00"), |facts| june([5, 5, 11, 11]).into_iter().for_each(|day| facts.log(day)));
    life.fact(at("2026-06-10T08:00"), |facts| facts.log(june([10])[0]));
    life.until(at("2026-06-10T23:45"));
    life.outage_until(at(saved_at));
    life.save(at(saved_at), life.edited("r", renamed), MINUTE);
    life.outage_until(at("2026-06-13T00:35"));
    life.until(at("2026-06-14T00:00"));
    assert_eq!(life.instants(), told);
}

#[test]
fn a_client_that_was_away_is_judged_by_what_an_automation_is_when_it_returns() {
    let mut life = inactive_at_10_03();
    life.fact(on_that_day("10:02"), |facts| facts.is_active = false);
    edit(&mut life, "10:05", after_days(2));
    edit(&mut life, "10:07", after_days(4));
    life.fact(on_that_day("10:10"), |facts| facts.is_active = true);
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-06T10:03"]);
}

#[test]
fn a_milestone_that_is_reached_while_a_client_is_away_is_reached_by_no_former_revision() {
    let mut life = life(milestone(90.0), &[]);
    log_at_noon(&mut life, 2..=4);
    life.fact(at("2026-06-05T08:00"), |facts| facts.is_active = false);
    for (time, pct) in [("08:05", 40.0), ("08:10", 80.0)] {
        edit(&mut life, time, |automation| automation.trigger = milestone(pct));
    }
    life.fact(at("2026-06-05T09:00"), |facts| facts.is_active = true);
    log_at_noon(&mut life, 5..=8);
    assert_eq!(told(life), [by("Rule r", "2026-06-07T12:01")]);
}

#[test]
fn a_client_that_is_new_is_judged_by_the_revision_that_it_met_first() {
    let start = on_that_day("10:01");
    let rules = vec![rule("r", Trigger::CheckInInactivity { days: 3 }, at("2026-05-01T12:00"))];
    let mut life = Life::swept(facts(at("2026-06-02T10:03"), zone("UTC"), 1), rules, start);
    edit(&mut life, "10:05", renamed);
    assert_eq!(told(life), [by("Rule r", "2026-06-05T10:03")]);
}

#[test]
fn the_doses_of_the_longest_window_of_all_revisions_are_read() {
    let day = |window_days| Trigger::ComplianceDrop { threshold: 50.0, window_days };
    let mut rule = rule("r", day(1), at("2026-06-05T10:05"));
    let former = |trigger, saved_at: &str| {
        let saved_at = at(saved_at);
        let automation = Automation { trigger, ..rule.automation.clone() };
        Former { automation, revision: saved_at, saved_at }
    };
    rule.former = vec![former(day(60), "2026-05-01T12:00"), former(day(30), "2026-06-03T12:00")];
    let states = States::new(at("2026-06-04T12:00"));
    let first = |rule: &Rule| reads_from(std::slice::from_ref(rule), &states, at("2026-06-05T10:15"));
    assert_eq!(first(&rule), Some(date("2026-05-04")), "the one of 60 days was over when the client came");
    rule.former.clear();
    assert_eq!(first(&rule), Some(date("2026-06-02")));
}

#[test]
fn what_is_over_of_forty_waits_with_its_revision_and_its_instant() {
    let start = at("2026-06-02T10:03");
    let trigger = |letter| match letter {
        'c' => Trigger::CheckInInactivity { days: 3 },
        'd' => drop_below(50.0),
        _ => milestone(10.0),
    };
    let ids: Vec<String> =
        ['c', 'd', 'm'].iter().flat_map(|kind| (0..20).map(move |n| format!("{kind}{n:02}"))).collect();
    let rules = ids.iter().map(|id| rule(id, trigger(id.chars().next().unwrap()), start)).collect();
    let mut life = Life::swept(facts(start + TimeDelta::days(-30), zone("UTC"), 1), rules, start);
    life.facts.last_check_in_at = Some(start);
    life.until(on_that_day("10:01"));
    life.fact(on_that_day("10:02:30"), |facts| facts.log(june([5])[0]));
    for id in &ids {
        life.save(on_that_day("10:05"), life.edited(id, renamed), MINUTE);
    }
    life.until(on_that_day("10:15"));
    assert_eq!(life.told.len(), MAX_TOLD);
    // It is as if there were room for all: what came to match after the edit is seeded, what did before is told.
    life.until(on_that_day("10:45"));
    let told = life.told.iter().map(|told| (told.computed.name.as_str(), told.computed.at));
    let told: std::collections::BTreeSet<_> = told.collect();
    assert!(told.iter().all(|(name, at)| name.starts_with("Rule") && *at == on_that_day("10:03")), "{told:?}");
    assert_eq!((life.told.len(), told.len()), (60, 60));
    assert!(life.states.of.values().all(|state| state.up_to.is_none()));
}
