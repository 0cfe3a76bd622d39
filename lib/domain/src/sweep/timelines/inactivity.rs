//! Timelines of missing check-ins and daily logs.

use super::*;
use crate::tz::Tz;

const NO_CHECK_IN: Trigger = Trigger::CheckInInactivity { days: 3 };
const NO_LOG: Trigger = Trigger::DailyLogInactivity { days: 2 };

fn check_in(life: &mut Life, submitted_at: &str) {
    life.fact(at(submitted_at), |facts| facts.last_check_in_at = Some(at(submitted_at)));
}

#[test]
fn the_deadline_is_exact_and_each_check_in_has_its_own() {
    let mut life = life(NO_CHECK_IN, &[]);
    check_in(&mut life, "2026-06-02T09:30:30");
    check_in(&mut life, "2026-06-06T07:00");
    life.until(at("2026-06-30T00:00"));
    assert_eq!(life.instants(), ["2026-06-05T09:30:30.000Z", "2026-06-09T07:00"]);
    assert_eq!(life.emitted[0].swept_at, at("2026-06-05T09:45"));
    let mut data = life.emitted[0].computed.data.members();
    assert_eq!(data["automation"].take()["threshold"], 3);
    let found = json!({"last_check_in_at": "2026-06-02T09:30:30.000Z", "days_inactive": 3, "automation": null});
    assert_eq!(data, found);
}

#[test]
fn a_check_in_between_a_deadline_and_the_sweep_ends_the_match() {
    let mut late = life(NO_CHECK_IN, &[]);
    check_in(&mut late, "2026-06-02T09:32");
    check_in(&mut late, "2026-06-05T09:33");
    late.until(at("2026-06-08T00:00"));
    assert_eq!(late.instants(), [""; 0]);
}

#[test]
fn a_later_check_in_that_is_itself_past_the_limit_begins_another_episode() {
    let mut life = life(NO_CHECK_IN, &[]);
    life.until(at("2026-06-10T00:00"));
    life.fact(at("2026-06-10T09:00"), |facts| facts.last_check_in_at = Some(at("2026-06-03T09:00")));
    life.until(at("2026-06-20T00:00"));
    assert_eq!(life.instants(), ["2026-06-06T09:00"]);
    assert_eq!(life.emitted[0].swept_at, at("2026-06-10T09:15"));
}

#[test]
fn who_never_checked_in_is_inactive_since_the_creation() {
    let facts = facts(at("2026-06-01T12:00"), zone("UTC"), 1);
    let rules = [NO_CHECK_IN, NO_LOG].into_iter().zip(["c", "l"]);
    let rules = rules.map(|(trigger, id)| rule(id, trigger, at("2026-05-01T12:00"))).collect();
    let mut life = Life::swept(facts, rules, at("2026-06-01T12:00"));
    life.until(at("2026-06-30T00:00"));
    assert_eq!(life.instants(), ["2026-06-04T00:00", "2026-06-04T12:00"]);
    let found = |n: usize| {
        let mut data = life.emitted[n].computed.data.members();
        data["automation"].take();
        data
    };
    assert_eq!(found(0), json!({"last_logged_on": null, "days_inactive": 2, "automation": null}));
    assert_eq!(found(1), json!({"last_check_in_at": null, "days_inactive": 3, "automation": null}));
}

#[test]
fn a_record_that_is_deleted_or_comes_late_begins_no_other_episode() {
    let mut life = life(NO_CHECK_IN, &[]);
    check_in(&mut life, "2026-06-02T09:30");
    check_in(&mut life, "2026-06-06T07:00");
    life.fact(at("2026-06-07T07:00"), |facts| facts.last_check_in_at = Some(at("2026-06-02T09:30")));
    life.fact(at("2026-06-08T07:00"), |facts| facts.last_check_in_at = None);
    life.until(at("2026-06-30T00:00"));
    assert_eq!(life.instants(), ["2026-06-05T09:30"]);
}

#[rstest::rstest]
#[case::plain(zone("UTC"), "2026-06-02", "2026-06-05T00:00")]
#[case::spring_in_new_york(zone("America/New_York"), "2026-03-06", "2026-03-09T04:00")]
#[case::a_gap_at_midnight(zone("America/Santiago"), "2026-09-03", "2026-09-06T04:00")]
#[case::another(zone("Asia/Beirut"), "2026-03-26", "2026-03-28T22:00")]
#[case::midnight_twice(zone("America/Havana"), "2025-10-30", "2025-11-02T04:00")]
#[case::an_hour_before_midnight_twice(zone("America/Scoresbysund"), "2026-10-22", "2026-10-25T02:00")]
#[case::a_skipped_date(zone("Pacific/Apia"), "2011-12-27", "2011-12-30T10:00")]
#[case::quarters_of_an_hour(zone("Asia/Kathmandu"), "2026-06-02", "2026-06-04T18:15")]
fn whole_local_days_without_a_log_end_at_local_midnight(
    #[case] zone: Tz,
    #[case] logged: &str,
    #[case] expected: &str,
) {
    let start = at(&format!("{logged}T16:00"));
    let mut facts = facts(at("2010-01-01T12:00"), zone, 1);
    facts.last_daily_log_on = Some(date(logged));
    let mut life = Life::swept(facts, vec![rule("r", NO_LOG, start)], start);
    life.until(start + TimeDelta::days(10));
    assert_eq!(life.instants(), [expected]);
}

#[test]
fn the_time_zone_determines_the_end_of_a_day() {
    let in_zone = |changed_at: &str, zone: Tz| {
        let mut life = life(NO_LOG, &[]);
        life.fact(at("2026-06-02T09:00"), |facts| facts.last_daily_log_on = Some(date("2026-06-02")));
        life.change_settings(at(changed_at), |facts| facts.zone = zone);
        life.until(at("2026-06-20T00:00"));
        life.instants()
    };
    assert_eq!(in_zone("2026-06-04T20:00", zone("Asia/Tokyo")), ["2026-06-04T15:00"]);
    assert_eq!(in_zone("2026-06-04T20:00", zone("Pacific/Honolulu")), ["2026-06-05T10:00"]);
    assert_eq!(in_zone("2026-06-05T00:16", zone("Pacific/Honolulu")), ["2026-06-05T00:00"]);
}

#[test]
fn an_older_log_that_comes_late_changes_nothing_and_a_newer_one_begins_anew() {
    let mut life = life(NO_LOG, &[]);
    life.fact(at("2026-06-02T09:00"), |facts| facts.last_daily_log_on = Some(date("2026-06-02")));
    life.fact(at("2026-06-06T09:00"), |facts| facts.last_daily_log_on = Some(date("2026-06-03")));
    life.until(at("2026-06-20T00:00"));
    // The log of the 3rd is a new one: its inactivity comes after two days without another.
    assert_eq!(life.instants(), ["2026-06-05T00:00", "2026-06-06T00:00"]);
    assert_eq!(life.emitted[1].computed.data.members()["days_inactive"], 2);
}
