//! Random histories: sweeps that look at whoever is due tell what a look every minute tells.

use std::collections::BTreeSet;

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use proptest::prelude::*;

use super::life::{Life, MINUTE, PERIOD, at, facts, rule};
use super::*;
use crate::wall_clock::date_at;
use oracle::Oracle;

mod oracle;

const ZONES: [Tz; 14] = [
    Tz::UTC,
    Tz::Europe__Berlin,
    Tz::America__New_York,
    Tz::America__Santiago,
    Tz::America__Havana,
    Tz::America__Scoresbysund,
    Tz::Asia__Beirut,
    Tz::Asia__Kathmandu,
    Tz::Africa__Cairo,
    Tz::Africa__Casablanca,
    Tz::Australia__Lord_Howe,
    Tz::Pacific__Chatham,
    Tz::Pacific__Kiritimati,
    Tz::Pacific__Honolulu,
];
/// Before clocks are set ahead or back in many of them.
const STARTS: [&str; 5] =
    ["2026-03-01T09:00", "2026-03-22T15:00", "2026-08-30T03:00", "2026-10-18T20:00", "2026-06-01T12:00"];
const PASS: TimeDelta = TimeDelta::minutes(5);

#[derive(Debug, Clone)]
enum Op {
    /// Doses of so many days before today, logged or deleted.
    Doses(Vec<(i64, bool)>),
    BackfilledDoses(Vec<i64>),
    /// Submitted so many minutes before.
    CheckIn(i64),
    CheckInsDeleted,
    DailyLog(i64),
    Phase(usize, i64),
    MinDays(u32),
    PerDay(u32),
    Zone(usize),
    OffAndOn,
    Save(usize, Trigger, bool),
    HandOver(bool),
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let window = prop_oneof![Just(1u32), Just(3), Just(7)];
    let threshold = prop_oneof![Just(33.0), Just(50.0), Just(66.7), Just(90.0)];
    prop_oneof![
        4 => (threshold.clone(), window.clone())
            .prop_map(|(threshold, window_days)| Trigger::ComplianceDrop { threshold, window_days }),
        2 => (threshold, window).prop_map(|(threshold, window_days)| Trigger::ComplianceMilestone { threshold, window_days }),
        2 => Just(Trigger::PhaseEligible),
        1 => (1u32..5).prop_map(|days| Trigger::CheckInInactivity { days }),
        1 => (1u32..4).prop_map(|days| Trigger::DailyLogInactivity { days }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => prop::collection::vec((-2i64..5, prop::bool::weighted(0.8)), 1..5).prop_map(Op::Doses),
        1 => prop::collection::vec(-1i64..5, 1..5).prop_map(Op::BackfilledDoses),
        2 => (0i64..3000).prop_map(Op::CheckIn),
        1 => Just(Op::CheckInsDeleted),
        3 => (-1i64..4).prop_map(Op::DailyLog),
        2 => (0usize..4, 0i64..8).prop_map(|(phase, ago)| Op::Phase(phase, ago)),
        1 => (0u32..6).prop_map(Op::MinDays),
        1 => (0u32..4).prop_map(Op::PerDay),
        1 => (0..ZONES.len()).prop_map(Op::Zone),
        1 => Just(Op::OffAndOn),
        2 => (0usize..5, trigger(), prop::bool::weighted(0.8)).prop_map(|(slot, to, active)| Op::Save(slot, to, active)),
        1 => any::<bool>().prop_map(Op::HandOver),
    ]
}

/// When something happens: so many minutes after what happened before, at a millisecond of that minute.
fn gap() -> impl Strategy<Value = (i64, i64)> {
    (prop_oneof![3 => 1i64..40, 3 => 40i64..1000, 2 => 1000i64..4000], 0i64..59_000)
}

#[derive(Debug, Clone)]
struct History {
    start: Timestamp,
    zone: Tz,
    rules: Vec<Trigger>,
    ops: Vec<(Timestamp, Op)>,
    end: Timestamp,
}

fn history(days: i64) -> impl Strategy<Value = History> {
    let rules = prop::collection::vec(trigger(), 1..5);
    let ops = prop::collection::vec((gap(), op()), 0..60);
    (0..STARTS.len(), 0i64..10_000, 0..ZONES.len(), rules, ops).prop_map(move |(start, offset, zone, rules, gaps)| {
        let start = at(STARTS[start]) + TimeDelta::minutes(offset);
        let end = start + TimeDelta::days(days);
        let mut minute = start;
        let mut ops = Vec::new();
        for ((minutes, ms), op) in gaps {
            minute = minute + TimeDelta::minutes(minutes);
            if minute < end {
                ops.push((minute + TimeDelta::milliseconds(ms), op));
            }
        }
        History { start, zone: ZONES[zone], rules, ops, end }
    })
}

fn phases(min_days: u32) -> Vec<ProgrammePhase> {
    let phase = |name: &str, min_days, min_compliance_pct| ProgrammePhase {
        name: name.to_owned(),
        min_days,
        min_compliance_pct,
    };
    vec![phase("p0", min_days, Some(50)), phase("p1", min_days + 1, None), phase("p2", 0, None)]
}

impl History {
    fn life(&self, swept: impl Fn(Facts, Vec<Rule>, Timestamp) -> Life) -> Life {
        let mut facts = facts(self.start + TimeDelta::days(-4), self.zone, 1);
        facts.phases = phases(2);
        let rules = self.rules.iter().enumerate();
        let rules = rules.map(|(slot, trigger)| rule(&format!("r{slot}"), trigger.clone(), self.start)).collect();
        swept(facts, rules, self.start)
    }

    /// The history as a swept life has it. `watch` sees it before each operation and at the end.
    fn run(&self, life: &mut Life, mut watch: impl FnMut(&mut Life, Timestamp, Option<&Op>)) {
        let mut other: Vec<Rule> = Vec::new();
        for (at, op) in &self.ops {
            watch(life, *at, Some(op));
            let today = date_at(life.facts.zone, *at);
            match op.clone() {
                Op::Save(slot, trigger, active) => {
                    let mut saved = rule(&format!("r{slot}"), trigger, *at);
                    saved.automation.active = active;
                    life.save(*at, saved, PASS);
                }
                Op::HandOver(fresh) => {
                    let theirs =
                        if fresh { vec![rule("o", Trigger::CheckInInactivity { days: 2 }, self.start)] } else { other };
                    other = life.rules.clone();
                    life.hand_over(*at, theirs);
                }
                Op::BackfilledDoses(ago) => life.backfill(*at, |facts| {
                    ago.iter().for_each(|days| facts.log(today - TimeDelta::days(*days)));
                }),
                op => life.fact(*at, |facts| change(facts, op, *at, today)),
            }
        }
        watch(life, self.end, None);
        life.until(self.end);
    }
}

fn change(facts: &mut Facts, op: Op, at: Timestamp, today: NaiveDate) {
    match op {
        Op::Doses(doses) => {
            for (ago, logged) in doses {
                let date = today - TimeDelta::days(ago);
                if logged { facts.log(date) } else { facts.unlog(date) }
            }
        }
        Op::CheckIn(minutes) => {
            facts.last_check_in_at = facts.last_check_in_at.max(Some(at + MINUTE * -(minutes as i32)))
        }
        Op::CheckInsDeleted => facts.last_check_in_at = None,
        Op::DailyLog(ago) => facts.last_daily_log_on = facts.last_daily_log_on.max(Some(today - TimeDelta::days(ago))),
        Op::Phase(phase, ago) => {
            facts.phase = Some(PhaseEntry { name: format!("p{phase}"), started_on: today - TimeDelta::days(ago) });
        }
        Op::MinDays(days) => facts.phases = phases(days),
        Op::PerDay(per_day) => facts.schedule.0[0].per_day = per_day,
        Op::Zone(zone) => facts.zone = ZONES[zone],
        Op::OffAndOn => facts.is_active = !facts.is_active,
        Op::BackfilledDoses(_) | Op::Save(..) | Op::HandOver(_) => unreachable!("not a change of facts"),
    }
}

/// What a look every minute tells, by automation and minute.
fn told_minute_by_minute(history: &History) -> Vec<(String, Timestamp)> {
    let mut oracle = Oracle::default();
    let mut life = history.life(Life::swept);
    oracle.seed(&life, history.start);
    let mut from = history.start;
    // The life beside the oracle only keeps the facts and the rules: nothing sweeps it.
    let mut seeds = false;
    history.run(&mut life, |life, at, op| {
        if seeds {
            oracle.seed(life, from);
        }
        oracle.watch(life, from, at);
        life.outage_until(at);
        from = at;
        if matches!(op, Some(Op::BackfilledDoses(_))) && life.facts.is_active {
            // What the client matches before a backfill is not of it.
            oracle.look(life, at, false);
            oracle.silent = true;
        }
        seeds = matches!(op, Some(Op::Save(..) | Op::HandOver(_)) if life.facts.is_active)
            || matches!(op, Some(Op::OffAndOn) if !life.facts.is_active);
    });
    oracle.told.into_iter().map(|(id, at)| (id, minute_of(at))).collect()
}

fn minute_of(at: Timestamp) -> Timestamp {
    Timestamp::from_ms(at.ms().div_euclid(60_000) * 60_000 + if at.ms() % 60_000 == 0 { 0 } else { 60_000 })
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}

/// Each once: the automation with the text that tells its episodes apart.
fn none_is_told_twice(life: &Life) -> bool {
    let told = life.told.iter().map(|told| (&told.computed.automation_id, &told.computed.episode));
    told.collect::<BTreeSet<_>>().len() == life.told.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn sweeps_of_the_due_tell_what_a_look_every_minute_tells(history in history(21)) {
        let mut life = history.life(Life::swept);
        history.run(&mut life, |_, _, _| {});
        let end = minute_of(history.end + PERIOD * -2 + PASS * -1);
        let settled = |told: Vec<(String, Timestamp)>| sorted(told.into_iter().filter(|(_, at)| *at < end).collect());
        let found = life.told.iter().map(|told| (told.computed.automation_id.to_string(), minute_of(told.computed.at)));
        prop_assert_eq!(settled(found.collect()), settled(told_minute_by_minute(&history)));
        let rules_change = history.ops.iter().any(|(_, op)| matches!(op, Op::Save(..)));
        let latest = if rules_change { PERIOD + PASS } else { PERIOD };
        for told in &life.told {
            let late = told.found_at.ms() - told.computed.at.ms();
            prop_assert!(0 <= late && late <= latest.num_milliseconds(), "{:?}", told);
        }
        prop_assert!(none_is_told_twice(&life), "{:?}", life.told);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn the_same_evaluation_every_minute_tells_the_same_episodes(history in history(5)) {
        let [mut swept, mut watched] = [history.life(Life::swept), history.life(Life::watched_every_minute)];
        for life in [&mut swept, &mut watched] {
            history.run(life, |_, _, _| {});
        }
        let end = history.end + PERIOD * -2 + PASS * -1;
        let told = |life: &Life| {
            let told = life.told.iter().map(|told| &told.computed).filter(|computed| computed.at < end);
            sorted(told.map(|computed| (computed.automation_id.clone(), computed.episode.clone())).collect())
        };
        prop_assert_eq!(told(&swept), told(&watched));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn sweeps_that_fail_for_days_lose_no_inactivity_and_tell_nothing_twice_or_that_is_over(
        history in history(21), asleep in (0i64..20_000, 0i64..10_000)
    ) {
        let mut life = history.life(Life::swept);
        let from = history.start + TimeDelta::minutes(asleep.0);
        life.asleep = Some((from, from + TimeDelta::minutes(asleep.1)));
        history.run(&mut life, |_, _, _| {});
        prop_assert!(none_is_told_twice(&life), "{:?}", life.told);
        let mut inactive = Vec::new();
        for told in &life.told {
            let Computed { automation_id, at, found, threshold, .. } = &told.computed;
            let threshold = threshold.map_or(0.0, |threshold| threshold.0);
            prop_assert!(*at <= told.found_at);
            match found {
                Found::ComplianceDrop { compliance_pct } => prop_assert!(f64::from(*compliance_pct) < threshold),
                Found::ComplianceMilestone { compliance_pct } => prop_assert!(f64::from(*compliance_pct) >= threshold),
                Found::PhaseEligible { .. } => {}
                _ => inactive.push((automation_id.to_string(), minute_of(*at))),
            }
        }
        let end = minute_of(history.end + PERIOD * -2 + PASS * -1).min(minute_of(from));
        let settled = |told: Vec<(String, Timestamp)>| sorted(told.into_iter().filter(|(_, at)| *at < end).collect());
        let told = settled(told_minute_by_minute(&history));
        let all = settled(life.episodes().into_iter().map(|(id, at)| (id, minute_of(at))).collect());
        prop_assert_eq!(all, told);
        let own = |id: &str| history.rules.iter().enumerate().any(|(slot, rule)| {
            matches!(rule, Trigger::CheckInInactivity { .. } | Trigger::DailyLogInactivity { .. })
                && id == format!("r{slot}")
                && !history.ops.iter().any(|(_, op)| matches!(op, Op::Save(saved, ..) if *saved == slot))
        });
        let end = minute_of(history.end + PERIOD * -2 + PASS * -1);
        prop_assume!(from + TimeDelta::minutes(asleep.1) < end);
        let judged = |told: Vec<(String, Timestamp)>| {
            sorted(told.into_iter().filter(|(id, at)| *at < end && own(id)).collect::<Vec<_>>())
        };
        prop_assert_eq!(judged(inactive), judged(told_minute_by_minute(&history)));
    }
}
