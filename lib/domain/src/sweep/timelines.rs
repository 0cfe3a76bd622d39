//! The rules by example, one row each, and the parts of an evaluation that the random histories do not show: figures,
//! receivers, due times, limits, dates that a zone skips.

use chrono::{NaiveDate, TimeDelta};
use serde_json::json;

use super::life::{Life, at, date, facts, rule};
use super::*;
use crate::automation::Step;
use crate::dose::DosesLogged;
use crate::id::EndpointId;
use crate::programme::ProgrammePhase;
use crate::tz::tests::zone;

const NO_CHECK_IN: Trigger = Trigger::CheckInInactivity { days: 3 };
const NO_LOG: Trigger = Trigger::DailyLogInactivity { days: 2 };

fn drop_below(threshold: f64) -> Trigger {
    Trigger::ComplianceDrop { threshold, window_days: 7 }
}

fn milestone(threshold: f64) -> Trigger {
    Trigger::ComplianceMilestone { threshold, window_days: 7 }
}

/// An old client with one dose a day, taken from the 27th to the 30th of May, swept by a rule since noon of the 1st of
/// June. Compliance over seven days: 57 % until the 2nd, 43 % on the 3rd, 29 % on the 4th, null from the 6th on.
fn life(trigger: Trigger) -> Life {
    let start = at("2026-06-01T12:00");
    let mut facts = facts(at("2026-01-01T12:00"), zone("UTC"), 1);
    (27..=30).for_each(|day| facts.log(NaiveDate::from_ymd_opt(2026, 5, day).unwrap()));
    let phase = |name: &str, min_days, min_compliance_pct| ProgrammePhase {
        name: name.to_owned(),
        min_days,
        min_compliance_pct,
    };
    facts.phases = vec![phase("Base", 5, Some(57)), phase("Build", 5, None), phase("Keep", 0, None)];
    Life::swept(facts, vec![rule("r", trigger, at("2026-05-01T12:00"))], start)
}

/// An instant of June.
fn june(instant: &str) -> Timestamp {
    at(&format!("2026-06-{instant}"))
}

fn day(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 6, day).unwrap()
}

/// Logs a dose on each of these days, at noon.
fn log(life: &mut Life, days: impl IntoIterator<Item = u32>) {
    days.into_iter().map(day).for_each(|day| life.fact(at(&format!("{day}T12:00")), |facts| facts.log(day)));
}

fn check_in(life: &mut Life, submitted_at: &str) {
    life.fact(june(submitted_at), |facts| facts.last_check_in_at = Some(june(submitted_at)));
}

fn daily_log(life: &mut Life, saved_at: &str, on: u32) {
    life.fact(june(saved_at), |facts| facts.last_daily_log_on = Some(day(on)));
}

fn enter(life: &mut Life, entered_at: &str, name: &str, on: u32) {
    let phase = PhaseEntry { name: name.to_owned(), started_on: day(on), number: 0 };
    life.fact(june(entered_at), |facts| facts.phase = Some(phase));
}

fn edit(life: &mut Life, saved_at: &str, trigger: Trigger) {
    life.save(june(saved_at), life.edited("r", |rule| rule.trigger = trigger));
}

fn untouched(_: &mut Life) {}

#[rstest::rstest]
#[case::once_dated_at_the_midnight_of_the_drop(drop_below(50.0), untouched, &["03T00:00"])]
#[case::not_at_the_threshold(drop_below(43.0), untouched, &["04T00:00"])]
#[case::again_after_compliance_was_back(drop_below(50.0), |life: &mut Life| {
    log(life, 10..=14);
}, &["03T00:00", "18T00:00"])]
#[case::null_is_not_back(drop_below(50.0), |life: &mut Life| log(life, [11, 12]), &["03T00:00"])]
#[case::within_seven_days_of_the_last_emitted_when_they_end(drop_below(50.0), |life: &mut Life| {
    life.fact(june("04T09:00"), |facts| (1..=3).for_each(|n| facts.log(day(n))));
    life.fact(june("05T09:00"), |facts| (1..=3).for_each(|n| facts.unlog(day(n))));
    log(life, [6]);
}, &["03T00:00", "10T00:00"])]
#[case::the_seven_days_outlive_an_edit(drop_below(50.0), |life: &mut Life| {
    life.fact(june("04T09:00"), |facts| (1..=3).for_each(|n| facts.log(day(n))));
    edit(life, "04T12:00", drop_below(45.0));
    life.fact(june("05T09:00"), |facts| (1..=3).for_each(|n| facts.unlog(day(n))));
    log(life, [6]);
}, &["03T00:00", "10T00:00"])]
#[case::dated_by_the_sweep_if_a_fact_made_the_difference(drop_below(50.0), |life: &mut Life| {
    life.fact(june("02T15:20:30"), |facts| facts.unlog(date("2026-05-30")));
}, &["02T15:30"])]
#[case::a_client_is_older_than_the_window(drop_below(50.0), |life: &mut Life| {
    life.facts.created_at = june("01T23:59");
}, &[])]
fn a_drop_is_emitted(#[case] trigger: Trigger, #[case] history: fn(&mut Life), #[case] instants: &[&str]) {
    assert_emitted(trigger, history, instants);
}

#[rstest::rstest]
#[case::once(milestone(57.0), |life: &mut Life| log(life, (3..=8).chain(16..=22)), &["06T12:15"])]
#[case::once_despite_an_edit(milestone(57.0), |life: &mut Life| {
    log(life, 3..=8);
    edit(life, "09T08:00", milestone(90.0));
    log(life, 9..=22);
}, &["06T12:15"])]
#[case::a_silent_seed_is_the_one_event(milestone(90.0), |life: &mut Life| {
    log(life, 3..=6);
    edit(life, "06T12:20", milestone(50.0));
    edit(life, "07T08:00", milestone(80.0));
    log(life, 7..=20);
}, &[])]
#[case::not_for_a_backfill_then_or_later(milestone(57.0), |life: &mut Life| {
    life.backfill(june("06T09:00"), |facts| (1..=5).for_each(|n| facts.log(day(n))));
    log(life, 16..=22);
}, &[])]
fn a_milestone_is_emitted(#[case] trigger: Trigger, #[case] history: fn(&mut Life), #[case] instants: &[&str]) {
    let mut life = life(trigger);
    life.facts.logged = DosesLogged::default();
    history(&mut life);
    assert_eq!(instants_of(life), instants);
}

#[rstest::rstest]
#[case::when_its_days_have_passed(|life: &mut Life| enter(life, "01T13:00", "Build", 1), &["06T00:00"])]
#[case::when_compliance_is_reached(|life: &mut Life| {
    enter(life, "01T13:00", "Base", 1);
    log(life, 5..=8);
}, &["08T12:15"])]
#[case::never_in_the_last_phase(|life: &mut Life| enter(life, "01T13:00", "Keep", 1), &[])]
#[case::once_per_entry(|life: &mut Life| {
    enter(life, "01T13:00", "Build", 1);
    enter(life, "08T08:00", "Keep", 8);
    enter(life, "09T08:00", "Build", 9);
}, &["06T00:00", "14T00:00"])]
#[case::at_once_if_the_programme_asks_for_less(|life: &mut Life| {
    enter(life, "01T13:00", "Build", 1);
    life.change_settings(june("05T09:00"), |facts| facts.phases[1].min_days = 3);
}, &["04T00:00"])]
fn the_end_of_a_phase_is_emitted(#[case] history: fn(&mut Life), #[case] instants: &[&str]) {
    assert_emitted(Trigger::PhaseEligible, history, instants);
}

#[rstest::rstest]
#[case::after_days_of_24_hours(NO_CHECK_IN, |life: &mut Life| check_in(life, "02T09:30:30"), &["05T09:30:30.000Z"])]
#[case::not_if_the_match_ended_before_the_sweep(NO_CHECK_IN, |life: &mut Life| {
    check_in(life, "02T10:03");
    check_in(life, "05T10:06");
}, &["08T10:06"])]
#[case::for_a_later_record_that_is_itself_past_the_limit(NO_LOG, |life: &mut Life| {
    daily_log(life, "02T09:00", 2);
    daily_log(life, "07T09:00", 3);
}, &["05T00:00", "06T00:00"])]
#[case::not_for_an_earlier_record_that_counts_again(NO_CHECK_IN, |life: &mut Life| {
    check_in(life, "02T10:03");
    check_in(life, "06T10:03");
    life.fact(june("07T07:00"), |facts| facts.last_check_in_at = Some(june("02T10:03")));
}, &["05T10:03"])]
#[case::again_under_an_edit_once_its_own_limit_is_reached(NO_CHECK_IN, |life: &mut Life| {
    check_in(life, "02T10:03");
    edit(life, "05T10:20", Trigger::CheckInInactivity { days: 5 });
}, &["05T10:03", "07T10:03"])]
#[case::not_if_the_edit_finds_it(Trigger::CheckInInactivity { days: 9 }, |life: &mut Life| {
    check_in(life, "02T10:03");
    edit(life, "05T10:20", NO_CHECK_IN);
}, &[])]
#[case::not_if_the_return_of_the_client_finds_it(NO_CHECK_IN, |life: &mut Life| {
    check_in(life, "02T10:03");
    life.set_active(june("04T08:00"), false);
    life.set_active(june("06T08:00"), true);
}, &[])]
#[case::not_if_the_hand_over_finds_it(NO_CHECK_IN, |life: &mut Life| {
    check_in(life, "02T10:03");
    life.hand_over(june("05T10:06"), vec![rule("s", NO_CHECK_IN, june("01T09:00"))]);
}, &[])]
fn inactivity_is_emitted(#[case] trigger: Trigger, #[case] history: fn(&mut Life), #[case] instants: &[&str]) {
    assert_emitted(trigger, history, instants);
}

fn assert_emitted(trigger: Trigger, history: fn(&mut Life), instants: &[&str]) {
    let mut life = life(trigger);
    history(&mut life);
    assert_eq!(instants_of(life), instants);
}

/// Returns the timestamps of the events emitted until the end of June.
fn instants_of(mut life: Life) -> Vec<String> {
    life.until(june("30T00:00"));
    life.instants().iter().map(|instant| instant.trim_start_matches("2026-06-").to_owned()).collect()
}

#[rstest::rstest]
#[case::plain("UTC", "2026-06-02", "2026-06-05T00:00")]
#[case::spring_in_new_york("America/New_York", "2026-03-06", "2026-03-09T04:00")]
#[case::a_gap_at_midnight("America/Santiago", "2026-09-03", "2026-09-06T04:00")]
#[case::midnight_twice("America/Havana", "2025-10-30", "2025-11-02T04:00")]
#[case::an_hour_before_midnight_twice("America/Scoresbysund", "2026-10-22", "2026-10-25T02:00")]
#[case::a_skipped_date("Pacific/Apia", "2011-12-27", "2011-12-30T10:00")]
#[case::quarters_of_an_hour("Asia/Kathmandu", "2026-06-02", "2026-06-04T18:15")]
fn whole_local_days_without_a_log_end_at_local_midnight(
    #[case] name: &str,
    #[case] logged: &str,
    #[case] expected: &str,
) {
    let start = at(&format!("{logged}T16:00"));
    let mut facts = facts(at("2010-01-01T12:00"), zone(name), 1);
    facts.last_daily_log_on = Some(date(logged));
    let mut life = Life::swept(facts, vec![rule("r", NO_LOG, start)], start);
    life.until(start + TimeDelta::days(10));
    assert_eq!(life.instants(), [expected]);
}

#[rstest::rstest]
#[case::drop(drop_below(50.0), "03T00:00", json!({ "compliance_pct": 14 }))]
#[case::milestone(milestone_of_a_day(), "05T00:00", json!({ "compliance_pct": 100 }))]
#[case::phase(Trigger::PhaseEligible, "03T00:00", json!({ "current_phase": "Build", "eligible_since": "2026-06-03" }))]
#[case::never_checked_in(NO_CHECK_IN, "04T10:00", json!({ "last_check_in_at": null, "days_inactive": 4 }))]
#[case::never_logged(NO_LOG, "04T00:00", json!({ "last_logged_on": null, "days_inactive": 3 }))]
fn after_an_outage_present_matches_are_emitted_with_present_figures(
    #[case] trigger: Trigger,
    #[case] instant: &str,
    #[case] mut data: serde_json::Value,
) {
    let mut life = life(trigger.clone());
    if !matches!(trigger, Trigger::ComplianceDrop { .. }) {
        life.facts.created_at = june("01T10:00");
        life.facts.logged = DosesLogged::default();
        // The 3rd would be a match of its own. By the sweep it is over.
        [3, 5].into_iter().for_each(|n| life.facts.log(day(n)));
    }
    life.facts.phase = Some(PhaseEntry { name: "Build".to_owned(), started_on: date("2026-05-29"), number: 0 });
    life.until(june("01T13:00"));
    life.outage_until(june("05T12:10"));
    life.until(june("05T12:15"));
    let emitted: Vec<_> =
        life.emitted.iter().map(|emitted| (emitted.computed.at, emitted.computed.data.members())).collect();
    data["automation"] = emitted[0].1["automation"].clone();
    assert_eq!(emitted, [(june(instant), data)]);
}

fn milestone_of_a_day() -> Trigger {
    Trigger::ComplianceMilestone { threshold: 50.0, window_days: 1 }
}

#[test]
fn an_event_has_the_present_name_and_goes_to_the_present_endpoints() {
    let endpoint = |id: &str| EndpointId::parse(id).unwrap();
    let step = |id: &str| Step::Webhook { endpoint_id: endpoint(id) };
    let mut life = life(NO_CHECK_IN);
    life.save(june("02T10:00"), life.edited("r", |automation| automation.steps = vec![step("we_3"), step("we_2")]));
    life.save(june("02T11:00"), life.edited("r", |automation| automation.name = "Renamed".to_owned()));
    check_in(&mut life, "02T12:00");
    life.until(june("09T00:00"));
    let Computed { to, data, .. } = &life.emitted[0].computed;
    assert_eq!(*to, [endpoint("we_2"), endpoint("we_3")]);
    assert_eq!(data.members()["automation"], json!({ "id": "r", "name": "Renamed", "threshold": 3 }));
}

#[rstest::rstest]
#[case::nothing_left_to_happen(drop_below(50.0), untouched, "20T00:00", None)]
#[case::off_the_roster(NO_CHECK_IN, |life: &mut Life| life.set_active(june("02T00:00"), false), "03T00:00", None)]
#[case::without_a_rule(NO_CHECK_IN, |life: &mut Life| life.delete(june("02T00:00"), "r"), "03T00:00", None)]
#[case::a_drop_that_is_over_before_the_seven_days_end(drop_below(50.0), |life: &mut Life| {
    life.fact(june("04T09:00"), |facts| (1..=3).for_each(|n| facts.log(day(n))));
    life.fact(june("05T09:00"), |facts| (1..=3).for_each(|n| facts.unlog(day(n))));
}, "05T10:00", None)]
#[case::a_dose_logged_for_a_far_date(drop_below(50.0), |life: &mut Life| {
    life.facts.logged = DosesLogged::default();
    life.facts.log(date("2126-06-01"));
}, "01T13:00", Some("2026-11-28T00:00"))]
fn a_client_is_due_when_time_alone_makes_a_difference(
    #[case] trigger: Trigger,
    #[case] history: fn(&mut Life),
    #[case] now: &str,
    #[case] due: Option<&str>,
) {
    let mut life = life(trigger);
    history(&mut life);
    life.until(june(now));
    assert_eq!(life.due(), due.map(at));
    assert!(life.evaluated.len() <= 4, "{:?}: the seed, the facts, the match", life.evaluated);
}

#[test]
fn a_hundred_automations_of_a_kind_count() {
    let start = june("01T12:00");
    let of_kind = |letter: char, trigger: &Trigger, count: usize| {
        let rule = |n| rule(&format!("{letter}{n:03}"), trigger.clone(), start);
        (0..count).map(rule).collect::<Vec<_>>()
    };
    let kinds = [('c', NO_CHECK_IN, 105), ('l', NO_LOG, 25), ('m', milestone(10.0), 15)];
    let rules = kinds.iter().flat_map(|(letter, trigger, count)| of_kind(*letter, trigger, *count)).collect();
    let mut life = Life::swept(facts(start, zone("UTC"), 1), rules, start);
    life.until(june("02T00:00"));
    life.outage_until(june("06T00:00"));
    life.fact(june("06T00:01"), |facts| facts.log(day(6)));
    life.until(june("06T00:15"));
    assert_eq!(life.emitted.len(), MAX_SWEPT + 25 + 15);
}

#[test]
fn the_doses_of_the_longest_window_are_read() {
    let of_days = |window_days| Trigger::ComplianceDrop { threshold: 50.0, window_days };
    let now = june("05T10:15");
    let rules = [rule("a", of_days(1), now), rule("b", of_days(60), now), rule("c", NO_CHECK_IN, now)];
    assert_eq!(reads_from(&rules, now), Some(date("2026-03-29")), "60 days, a week of outage and a day for the zones");
    assert_eq!(reads_from(&rules[2..], now), None);
}
