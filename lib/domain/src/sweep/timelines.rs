//! Timelines of each computed event: the facts, and the instants of the emitted events.

use chrono::{NaiveDate, TimeDelta};
use serde_json::json;

use super::life::{Life, at, automation_id, date, facts, rule};
use super::*;
use crate::tz::tests::zone;

mod any_rule;
mod inactivity;
mod revisions;

fn drop_below(threshold: f64) -> Trigger {
    Trigger::ComplianceDrop { threshold, window_days: 7 }
}

fn milestone(threshold: f64) -> Trigger {
    Trigger::ComplianceMilestone { threshold, window_days: 7 }
}

/// An old client with one dose a day, taken on these dates, swept by a rule since noon of the 1st of June.
fn life(trigger: Trigger, logged: &[NaiveDate]) -> Life {
    let mut facts = facts(at("2026-01-01T12:00"), zone("UTC"), 1);
    logged.iter().for_each(|day| facts.log(*day));
    let start = at("2026-06-01T12:00");
    Life::swept(facts, vec![rule("r", trigger, at("2026-05-01T12:00"))], start)
}

fn may(days: std::ops::RangeInclusive<u32>) -> Vec<NaiveDate> {
    days.map(|day| NaiveDate::from_ymd_opt(2026, 5, day).unwrap()).collect()
}

fn june(days: impl IntoIterator<Item = u32>) -> Vec<NaiveDate> {
    days.into_iter().map(|day| NaiveDate::from_ymd_opt(2026, 6, day).unwrap()).collect()
}

/// Logs a dose on each of these days of June, at noon.
fn log_at_noon(life: &mut Life, days: impl IntoIterator<Item = u32>) {
    for day in june(days) {
        life.fact(at(&format!("{day}T12:00")), |facts| facts.log(day));
    }
}

mod compliance_drop {
    use super::*;

    #[test]
    fn a_drop_is_emitted_once_dated_at_its_midnight() {
        let mut life = life(drop_below(50.0), &may(26..=30));
        life.until(at("2026-06-20T00:00"));
        // 5 of 7 on the 1st, 3 of 7 on the 3rd, nothing from the 6th on.
        assert_eq!(life.instants(), ["2026-06-03T00:00"]);
        let expected = &life.emitted[0].computed;
        let automation = json!({"id": "r", "name": "Rule r", "threshold": 50});
        assert_eq!(expected.data.members(), json!({"compliance_pct": 43, "automation": automation}));
        assert!(life.evaluated.len() <= 4, "{:?}: the seed and the drop", life.evaluated);
        assert_eq!(life.due(), None);
    }

    #[rstest::rstest]
    #[case::equal_to_it(43.0, &["2026-06-04T00:00"])]
    #[case::a_shade_above_it(43.1, &["2026-06-03T00:00"])]
    #[case::none_is_below_zero(0.0, &[])]
    fn a_drop_is_below_its_threshold(#[case] threshold: f64, #[case] expected: &[&str]) {
        let mut life = life(drop_below(threshold), &may(26..=30));
        life.until(at("2026-06-20T00:00"));
        assert_eq!(life.instants(), expected);
    }

    #[test]
    fn a_drop_is_emitted_again_only_after_compliance_was_back() {
        let mut life = life(drop_below(50.0), &may(27..=30));
        // Back at 4 of 7 on the 13th, 3 of 7 on the 18th. Between the drop and the 13th, compliance is null or low.
        log_at_noon(&mut life, 10..=14);
        life.until(at("2026-06-30T00:00"));
        assert_eq!(life.instants(), ["2026-06-03T00:00", "2026-06-18T00:00"]);
        assert_ne!(life.emitted[0].computed.episode, life.emitted[1].computed.episode);
    }

    #[test]
    fn compliance_at_the_threshold_is_back() {
        let mut life = life(drop_below(57.0), &may(27..=30));
        log_at_noon(&mut life, 10..=13);
        life.until(at("2026-06-30T00:00"));
        assert_eq!(life.instants(), ["2026-06-03T00:00", "2026-06-17T00:00"]);
    }

    #[test]
    fn null_in_between_changes_nothing() {
        let mut life = life(drop_below(50.0), &may(27..=30));
        log_at_noon(&mut life, [11, 12]);
        life.until(at("2026-06-30T00:00"));
        assert_eq!(life.instants(), ["2026-06-03T00:00"]);
    }

    #[test]
    fn compliance_that_is_back_for_a_day_by_time_alone_arms_again() {
        let mut life = life(drop_below(50.0), &may(27..=30));
        // Emitted on the 3rd. Only doses logged ahead lift the 13th over the threshold.
        life.fact(at("2026-06-04T09:00"), |facts| june([7, 11, 12, 13]).into_iter().for_each(|day| facts.log(day)));
        life.until(at("2026-06-13T12:00"));
        assert_eq!(life.instants(), ["2026-06-03T00:00"]);
        life.until(at("2026-06-30T00:00"));
        assert_eq!(life.instants(), ["2026-06-03T00:00", "2026-06-14T00:00"]);
    }

    #[rstest::rstest]
    #[case::still_low(&[6], &["2026-06-03T00:00", "2026-06-10T00:00"])]
    #[case::back_by_then(&[6, 7, 8, 9], &["2026-06-03T00:00", "2026-06-13T00:00"])]
    #[case::null_by_then(&[12], &["2026-06-03T00:00", "2026-06-12T12:15"])]
    fn a_drop_within_seven_days_of_the_last_is_emitted_at_their_end_if_it_persists(
        #[case] logged: &[u32],
        #[case] expected: &[&str],
    ) {
        let mut life = life(drop_below(50.0), &may(27..=30));
        life.fact(at("2026-06-04T09:00"), |facts| june(1..=3).into_iter().for_each(|day| facts.log(day)));
        life.fact(at("2026-06-05T09:00"), |facts| june(1..=3).into_iter().for_each(|day| facts.unlog(day)));
        log_at_noon(&mut life, logged.iter().copied());
        life.until(at("2026-06-16T00:00"));
        assert_eq!(life.instants(), expected);
    }

    #[test]
    fn a_drop_that_is_over_before_the_seven_days_end_has_no_due_time() {
        let mut life = life(drop_below(50.0), &may(27..=30));
        life.fact(at("2026-06-04T09:00"), |facts| june(1..=3).into_iter().for_each(|day| facts.log(day)));
        life.fact(at("2026-06-05T09:00"), |facts| june(1..=3).into_iter().for_each(|day| facts.unlog(day)));
        life.until(at("2026-06-05T10:00"));
        assert_eq!(life.due(), None);
    }

    #[rstest::rstest]
    #[case::first_day_before_the_window("2026-06-01T00:00", "2026-06-08T00:00")]
    #[case::late_on_that_day("2026-06-01T23:59", "2026-06-08T00:00")]
    #[case::a_minute_later("2026-06-02T00:00", "2026-06-09T00:00")]
    fn a_client_is_older_than_the_window_once_it_was_created_before_its_first_date(
        #[case] created_at: &str,
        #[case] expected: &str,
    ) {
        let mut facts = facts(at(created_at), zone("UTC"), 1);
        facts.log(june([6])[0]);
        let mut life = Life::swept(facts, vec![rule("r", drop_below(50.0), at("2026-05-01T12:00"))], at(created_at));
        life.until(at("2026-06-20T00:00"));
        assert_eq!(life.instants(), [expected]);
    }

    #[test]
    fn a_dose_deleted_late_counts_at_the_next_sweep() {
        let mut life = life(drop_below(50.0), &may(28..=31));
        life.fact(at("2026-06-02T15:20:30"), |facts| facts.unlog(may(30..=30)[0]));
        life.until(at("2026-06-02T15:30"));
        assert_eq!(life.instants(), ["2026-06-02T15:30"]);
        assert_eq!(life.emitted[0].swept_at, at("2026-06-02T15:30"));
    }

    #[test]
    fn doses_that_come_between_two_sweeps_are_evaluated_together() {
        let mut life = life(drop_below(50.0), &[]);
        life.fact(at("2026-06-06T09:01"), |facts| facts.log(june([6])[0]));
        life.fact(at("2026-06-06T09:13"), |facts| june(1..=5).into_iter().for_each(|day| facts.log(day)));
        life.until(at("2026-06-08T12:00"));
        assert_eq!(life.instants(), [""; 0]);
    }
}

mod compliance_milestone {
    use super::*;

    #[rstest::rstest]
    #[case::equal_to_it(57.0, &["2026-06-05T12:15"])]
    #[case::a_shade_below_it(57.1, &["2026-06-06T12:15"])]
    #[case::only_a_signal_reaches_zero(0.0, &["2026-06-02T12:15"])]
    fn a_milestone_is_emitted_once_when_it_is_reached(#[case] threshold: f64, #[case] expected: &[&str]) {
        let mut life = life(milestone(threshold), &[]);
        log_at_noon(&mut life, (2..=8).chain(16..=22));
        life.until(at("2026-06-30T00:00"));
        assert_eq!(life.instants(), expected);
    }

    #[test]
    fn a_milestone_stays_reached_through_edits_switching_and_another_coach() {
        let mut life = life(milestone(50.0), &[]);
        log_at_noon(&mut life, 2..=8);
        let own = life.rules[0].clone();
        life.save(at("2026-06-09T12:00"), rule("r", milestone(80.0), at("2026-06-09T12:00")));
        let mut off = own.clone();
        off.automation.active = false;
        life.save(at("2026-06-10T12:00"), off);
        life.save(at("2026-06-12T12:00"), own.clone());
        life.hand_over(at("2026-06-14T12:00"), vec![rule("other", drop_below(1.0), at("2026-06-01T12:00"))]);
        life.hand_over(at("2026-06-15T12:00"), vec![own]);
        log_at_noon(&mut life, 16..=22);
        life.until(at("2026-06-30T00:00"));
        assert_eq!(life.instants(), ["2026-06-05T12:15"]);
    }

    #[test]
    fn a_backfill_emits_nothing_then_or_later() {
        let mut life = life(milestone(50.0), &[]);
        life.backfill(at("2026-06-06T09:00"), |facts| june(1..=5).into_iter().for_each(|day| facts.log(day)));
        life.until(at("2026-06-07T00:00"));
        log_at_noon(&mut life, 16..=22);
        life.until(at("2026-06-30T00:00"));
        assert_eq!(life.instants(), [""; 0]);
    }
}

mod phase_eligible {
    use super::*;
    use crate::programme::ProgrammePhase;

    const NEVER: std::ops::Range<u32> = 0..0;

    fn in_phase(name: &str, started_on: &str, logged: &[NaiveDate]) -> Life {
        let mut life = life(Trigger::PhaseEligible, logged);
        let phase = |name: &str, min_days, min_compliance_pct| ProgrammePhase {
            name: name.to_owned(),
            min_days,
            min_compliance_pct,
        };
        life.facts.phases = vec![phase("Base", 14, Some(57)), phase("Build", 7, None), phase("Keep", 0, None)];
        life.facts.phase = Some(entry(name, started_on));
        life
    }

    fn entry(name: &str, started_on: &str) -> PhaseEntry {
        PhaseEntry { name: name.to_owned(), started_on: date(started_on), number: 0 }
    }

    #[rstest::rstest]
    #[case::compliance_was_there_before("Base", 9..16, &["2026-06-15T00:00"])]
    #[case::compliance_comes_later("Base", 14..19, &["2026-06-17T12:15"])]
    #[case::compliance_was_there_and_went("Base", 1..11, &[])]
    #[case::no_signal_reaches_nothing("Base", NEVER, &[])]
    #[case::only_days_matter("Build", NEVER, &["2026-06-08T00:00"])]
    #[case::never_in_the_last_phase("Keep", 1..31, &[])]
    #[case::not_in_a_phase_of_another_programme("Other", 1..31, &[])]
    fn a_client_may_leave_a_phase_after_its_days_with_its_compliance(
        #[case] phase: &str,
        #[case] logged: std::ops::Range<u32>,
        #[case] expected: &[&str],
    ) {
        let mut life = in_phase(phase, "2026-06-01", &[]);
        log_at_noon(&mut life, logged);
        life.until(at("2026-07-30T00:00"));
        assert_eq!(life.instants(), expected);
    }

    #[test]
    fn each_entry_into_a_phase_is_emitted_once() {
        let mut life = in_phase("Base", "2026-06-01", &[]);
        log_at_noon(&mut life, (9..=15).chain(20..=26));
        life.fact(at("2026-06-27T08:00"), |facts| facts.phase = Some(entry("Build", "2026-06-27")));
        life.until(at("2026-07-10T00:00"));
        life.fact(at("2026-07-10T08:00"), |facts| facts.phase = Some(entry("Keep", "2026-07-10")));
        life.fact(at("2026-07-11T08:00"), |facts| facts.phase = Some(entry("Build", "2026-07-11")));
        life.until(at("2026-07-30T00:00"));
        assert_eq!(life.instants(), ["2026-06-15T00:00", "2026-07-04T00:00", "2026-07-18T00:00"]);
        let automation = json!({"id": "r", "name": "Rule r"});
        let data = json!({"current_phase": "Build", "eligible_since": "2026-07-04", "automation": automation});
        assert_eq!(life.emitted[1].computed.data.members(), data);
    }

    #[test]
    fn an_emitted_entry_is_not_emitted_again_after_an_edit() {
        let mut life = in_phase("Base", "2026-06-01", &[]);
        log_at_noon(&mut life, 9..=15);
        life.until(at("2026-06-20T08:00"));
        for (time, active) in [("2026-06-20T09:00", true), ("2026-06-20T10:00", false), ("2026-06-20T11:00", true)] {
            life.save(at(time), life.edited("r", |rule| rule.active = active));
            life.until(at(time) + TimeDelta::minutes(15));
        }
        log_at_noon(&mut life, 21..=28);
        assert_eq!(life.instants(), ["2026-06-15T00:00"]);
    }

    #[test]
    fn a_programme_that_asks_for_less_makes_a_client_eligible_at_once() {
        let mut life = in_phase("Build", "2026-06-01", &[]);
        life.change_settings(at("2026-06-05T09:00"), |facts| facts.phases[1].min_days = 3);
        life.until(at("2026-06-30T00:00"));
        assert_eq!(life.instants(), ["2026-06-04T00:00"]);
        assert_eq!(life.emitted[0].swept_at, at("2026-06-05T09:15"));
    }
}
