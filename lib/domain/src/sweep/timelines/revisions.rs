//! Automations that are edited, disabled or deleted before a sweep evaluates the client that matched them.

use super::*;
use crate::automation::Step;
use crate::id::EndpointId;

/// A client on the day on which it matches at 10:03, after three days without a check-in. Sweeps run at 10:00 and
/// 10:15.
fn inactive_at_10_03() -> Life {
    let mut life = life(Trigger::CheckInInactivity { days: 3 }, &[]);
    check_in(&mut life, "2026-06-02T10:03");
    life.until(at("2026-06-05T10:01"));
    life
}

fn check_in(life: &mut Life, submitted_at: &str) {
    life.fact(at(submitted_at), |facts| facts.last_check_in_at = Some(at(submitted_at)));
}

/// Edits the automation at that time of the day.
fn edit(life: &mut Life, time: &str, edit: impl FnOnce(&mut Automation)) {
    let edited = life.edited("r", edit);
    life.save(on_that_day(time), edited);
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

fn with_a_step(automation: &mut Automation) {
    automation.steps = vec![Step::Other { kind: "mail".to_owned() }];
}

/// Returns names and timestamps of the events emitted up to the 20th of June.
fn emitted(mut life: Life) -> Vec<(String, String)> {
    life.until(at("2026-06-20T00:00"));
    let names = life.emitted.iter().map(|emitted| emitted.computed.data.members()["automation"]["name"].clone());
    let names = names.map(|name| name.as_str().unwrap().to_owned());
    names.zip(life.instants()).collect()
}

fn by(name: &str, instant: &str) -> (String, String) {
    (name.to_owned(), instant.to_owned())
}

#[test]
fn a_rename_is_no_revision_and_the_event_has_the_present_name() {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", renamed);
    life.until(on_that_day("10:15"));
    assert!(life.emitted[0].computed.episode.starts_with("2026-05-01T12:00"), "{:?}", life.emitted);
    check_in(&mut life, "2026-06-06T08:00");
    assert_eq!(emitted(life), [by("Renamed", "2026-06-05T10:03"), by("Renamed", "2026-06-09T08:00")]);
}

#[test]
fn an_event_goes_to_the_endpoints_of_the_present_revision() {
    let endpoint = |id: &str| EndpointId::parse(id).unwrap();
    let step = |id: &str| Step::Webhook { endpoint_id: endpoint(id) };
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:02", |automation| automation.steps = vec![step("we_1")]);
    edit(&mut life, "10:16", |automation| automation.steps = vec![step("we_3"), step("we_2")]);
    check_in(&mut life, "2026-06-06T08:00");
    life.until(at("2026-06-20T00:00"));
    let to: Vec<_> = life.emitted.iter().map(|emitted| emitted.computed.to.clone()).collect();
    assert_eq!(to, [vec![endpoint("we_2"), endpoint("we_3")]]);
}

#[rstest::rstest]
#[case::of_its_trigger(after_days(2), &[])]
#[case::to_longer(after_days(4), &["2026-06-06T10:03"])]
#[case::of_its_steps(with_a_step, &[])]
fn the_first_evaluation_after_an_edit_is_silent(
    #[case] change: impl FnOnce(&mut Automation),
    #[case] instants: &[&str],
) {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", change);
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), instants);
}

#[test]
fn two_edits_that_cancel_each_other_are_two_revisions() {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", after_days(4));
    edit(&mut life, "10:06", after_days(3));
    assert_eq!(emitted(life), []);
}

#[test]
fn an_edited_automation_emits_the_same_inactivity_again_once_its_own_limit_is_reached() {
    let mut life = inactive_at_10_03();
    life.until(on_that_day("10:15"));
    edit(&mut life, "10:20", after_days(5));
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-05T10:03", "2026-06-07T10:03"]);
    let threshold = |n: usize| life.emitted[n].computed.data.members()["automation"]["threshold"].clone();
    assert_eq!([threshold(0), threshold(1)], [3, 5]);
    assert_ne!(life.emitted[0].computed.episode, life.emitted[1].computed.episode);
}

#[test]
fn an_automation_that_becomes_one_of_another_kind_is_seeded_as_that() {
    let mut life = inactive_at_10_03();
    edit(&mut life, "10:05", |automation| automation.trigger = Trigger::DailyLogInactivity { days: 1 });
    life.fact(at("2026-06-08T08:00"), |facts| facts.last_daily_log_on = Some(date("2026-06-08")));
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-10T00:00"]);
}

#[test]
fn an_emitted_drop_keeps_an_edited_automation_quiet_for_seven_days() {
    let mut life = life(drop_below(50.0), &may(26..=30));
    life.until(at("2026-06-03T00:05"));
    // 3 of 7 from midnight of the 3rd on, emitted before the edit; back for half of the 4th, which rearms the edited
    // automation.
    life.save(at("2026-06-03T00:06"), life.edited("r", |rule| rule.trigger = drop_below(48.0)));
    life.fact(at("2026-06-04T00:10"), |facts| june(1..=3).into_iter().for_each(|day| facts.log(day)));
    life.fact(at("2026-06-04T12:00"), |facts| june(1..=3).into_iter().for_each(|day| facts.unlog(day)));
    life.fact(at("2026-06-06T12:00"), |facts| facts.log(june([6])[0]));
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-03T00:00", "2026-06-10T00:00"]);
}

#[rstest::rstest]
#[case::emitted_before("2026-06-05T12:20", &["2026-06-05T12:15"])]
#[case::seeded_by_the_edit("2026-06-06T12:05", &["2026-06-05T12:15"])]
fn a_milestone_is_emitted_once_despite_edits(#[case] edited_at: &str, #[case] instants: &[&str]) {
    let mut life = life(milestone(50.0), &[]);
    log_at_noon(&mut life, 2..=5);
    life.save(at(edited_at), life.edited("r", |rule| rule.trigger = milestone(40.0)));
    life.save(at("2026-06-07T08:00"), life.edited("r", |rule| rule.trigger = milestone(90.0)));
    log_at_noon(&mut life, 8..=20);
    life.until(at("2026-06-22T00:00"));
    assert_eq!(life.instants(), instants);
}

#[test]
fn a_silent_seed_of_a_milestone_counts_as_its_one_event() {
    let mut life = life(milestone(90.0), &[]);
    log_at_noon(&mut life, 2..=5);
    life.save(at("2026-06-05T12:20"), life.edited("r", |rule| rule.trigger = milestone(50.0)));
    life.save(at("2026-06-06T08:00"), life.edited("r", |rule| rule.trigger = milestone(80.0)));
    log_at_noon(&mut life, 7..=20);
    assert_eq!(emitted(life), []);
}

#[rstest::rstest]
#[case::of_another_computed_kind(drop_below(1.0))]
#[case::of_an_emitted_kind(Trigger::NewClient)]
fn a_milestone_stays_reached_while_its_automation_is_of_another_kind(#[case] between: Trigger) {
    let mut life = life(milestone(50.0), &[]);
    log_at_noon(&mut life, 2..=5);
    for (time, trigger) in [("2026-06-06T08:00", between), ("2026-06-08T08:00", milestone(90.0))] {
        life.save(at(time), life.edited("r", |rule| rule.trigger = trigger));
        life.until(at(time) + TimeDelta::days(1));
    }
    log_at_noon(&mut life, 10..=19);
    life.until(at("2026-06-22T00:00"));
    assert_eq!(life.instants(), ["2026-06-05T12:15"]);
}

#[test]
fn seven_days_are_between_drops_though_the_automation_was_of_another_kind_since() {
    let drop = Trigger::ComplianceDrop { threshold: 50.0, window_days: 3 };
    let mut life = life(drop.clone(), &[may(30..=31), june([1])].concat());
    life.until(at("2026-06-03T08:00"));
    assert_eq!(life.instants(), ["2026-06-03T00:00"]);
    life.save(at("2026-06-03T09:00"), life.edited("r", after_days(30)));
    log_at_noon(&mut life, 4..=5);
    life.save(at("2026-06-05T13:00"), life.edited("r", |rule| rule.trigger = drop));
    // One of three from the 7th on.
    log_at_noon(&mut life, [8]);
    life.until(at("2026-06-30T00:00"));
    assert_eq!(life.instants(), ["2026-06-03T00:00", "2026-06-10T00:00"]);
}

#[rstest::rstest]
#[case::renamed([renamed as Edit, renamed], &["2026-06-03T00:00"])]
#[case::switched_off_for_a_day([switched_off as Edit, switched_on], &["2026-06-03T00:00", "2026-06-11T12:15"])]
#[case::of_another_kind_for_a_day([of_another_kind as Edit, of_drops_below_50], &["2026-06-03T00:00", "2026-06-11T12:15"])]
#[case::of_another_threshold([of_drops_below_49 as Edit, renamed], &["2026-06-03T00:00", "2026-06-11T12:15"])]
fn a_drop_stays_marked_under_one_revision(#[case] edits: [Edit; 2], #[case] instants: &[&str]) {
    let mut life = life(drop_below(50.0), &may(27..=30));
    // Nothing is logged: compliance is null on both days.
    for (day, edit) in [8, 9].into_iter().zip(edits) {
        let time = at(&format!("2026-06-0{day}T08:00"));
        life.save(time, life.edited("r", edit));
        life.until(time + TimeDelta::hours(1));
    }
    log_at_noon(&mut life, [11, 12]);
    life.until(at("2026-06-30T00:00"));
    assert_eq!(life.instants(), instants);
}

#[test]
fn an_automation_that_is_switched_off_or_deleted_before_the_sweep_emits_nothing() {
    let mut off = inactive_at_10_03();
    edit(&mut off, "10:05", switched_off);
    assert_eq!(emitted(off), []);
    let mut deleted = inactive_at_10_03();
    deleted.delete(on_that_day("10:05"), "r");
    assert_eq!(emitted(deleted), []);
    let mut off_and_on = inactive_at_10_03();
    edit(&mut off_and_on, "10:05", switched_off);
    edit(&mut off_and_on, "10:06", switched_on);
    check_in(&mut off_and_on, "2026-06-06T08:00");
    assert_eq!(emitted(off_and_on), [by("Rule r", "2026-06-09T08:00")]);
    let mut emitted_before = inactive_at_10_03();
    emitted_before.until(on_that_day("10:15"));
    edit(&mut emitted_before, "10:16", switched_off);
    assert_eq!(emitted(emitted_before), [by("Rule r", "2026-06-05T10:03")]);
}

#[test]
fn a_match_that_ends_before_the_sweep_is_not_emitted() {
    let mut life = inactive_at_10_03();
    check_in(&mut life, "2026-06-05T10:06");
    assert_eq!(emitted(life), [by("Rule r", "2026-06-08T10:06")]);
}

#[test]
fn a_client_that_was_away_is_seeded_when_it_returns() {
    let mut life = inactive_at_10_03();
    life.set_active(on_that_day("10:02"), false);
    edit(&mut life, "10:05", after_days(4));
    life.set_active(on_that_day("10:10"), true);
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-06T10:03"]);
}

#[test]
fn the_doses_of_the_longest_window_are_read() {
    let day = |window_days| Trigger::ComplianceDrop { threshold: 50.0, window_days };
    let now = at("2026-06-05T10:15");
    let rules = [rule("a", day(1), now), rule("b", day(60), now), rule("c", after_no_check_in(), now)];
    assert_eq!(reads_from(&rules, now), Some(date("2026-03-29")), "60 days, a week of outage and a day for the zones");
    assert_eq!(reads_from(&rules[2..], now), None);
}

fn after_no_check_in() -> Trigger {
    Trigger::CheckInInactivity { days: 3 }
}
