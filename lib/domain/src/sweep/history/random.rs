//! Random histories: facts, early, late and repeated, changes of zone and programme, edits, hand-overs and backfills at
//! random instants.

use chrono::{NaiveDate, TimeDelta};
use proptest::prelude::*;

use super::super::life::{Life, MINUTE, at, facts, rule};
use super::super::*;
use crate::programme::ProgrammePhase;
use crate::tz::Tz;
use crate::tz::tests::zone;
use crate::wall_clock::date_at;

const ZONES: [&str; 14] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "America/Havana",
    "America/Scoresbysund",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Pacific/Honolulu",
];
/// Start times, most of them shortly before a clock change.
const STARTS: [&str; 5] =
    ["2026-03-01T09:00", "2026-03-22T15:00", "2026-08-30T03:00", "2026-10-18T20:00", "2026-06-01T12:00"];

#[derive(Debug, Clone)]
pub(super) enum Op {
    /// Doses that many days before today, logged or deleted.
    Doses(Vec<(i64, bool)>),
    BackfilledDoses(Vec<i64>),
    /// Submitted that many minutes before.
    CheckIn(i64),
    CheckInsDeleted,
    DailyLog(i64),
    /// Enters a phase that many days before, by a fact that counts the entry or by the application's record.
    Phase(usize, i64, bool),
    MinDays(u32),
    PerDay(u32),
    Zone(usize),
    Active(bool),
    Edit(usize, Edit),
    HandOver(bool),
}

/// An edit of an automation.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    /// Creates the automation if it does not exist.
    Other(Trigger),
    /// Takes the figures of this trigger, if it is of the same kind.
    Threshold(Trigger),
    Renamed,
    SwitchedOff,
    SwitchedOn,
    Deleted,
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
        1 => Just(Trigger::NewClient),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => prop::collection::vec((-2i64..5, prop::bool::weighted(0.8)), 1..5).prop_map(Op::Doses),
        1 => prop::collection::vec(-1i64..5, 1..5).prop_map(Op::BackfilledDoses),
        2 => (-60i64..3000).prop_map(Op::CheckIn),
        1 => Just(Op::CheckInsDeleted),
        3 => (-1i64..4).prop_map(Op::DailyLog),
        2 => (0usize..4, 0i64..8, any::<bool>()).prop_map(|(phase, ago, counts)| Op::Phase(phase, ago, counts)),
        1 => (0u32..6).prop_map(Op::MinDays),
        1 => (0u32..4).prop_map(Op::PerDay),
        1 => (0..ZONES.len()).prop_map(Op::Zone),
        1 => any::<bool>().prop_map(Op::Active),
        2 => (0usize..5, edit()).prop_map(|(slot, edit)| Op::Edit(slot, edit)),
        1 => any::<bool>().prop_map(Op::HandOver),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        2 => trigger().prop_map(Edit::Other),
        2 => trigger().prop_map(Edit::Threshold),
        3 => Just(Edit::Renamed),
        1 => Just(Edit::SwitchedOff),
        2 => Just(Edit::SwitchedOn),
        1 => Just(Edit::Deleted),
    ]
}

/// Generates edits of an automation that follow an operation, seconds or minutes apart.
fn edits() -> impl Strategy<Value = (usize, Vec<(i64, Edit)>)> {
    let gap_s = prop_oneof![1i64..60, 60i64..300];
    (0usize..4, prop_oneof![Just(Vec::new()), prop::collection::vec((gap_s, edit()), 1..6)])
}

/// Generates the time to the next operation: minutes, and a millisecond of that minute.
fn gap() -> impl Strategy<Value = (i64, i64)> {
    (prop_oneof![3 => 0i64..40, 3 => 40i64..1000, 2 => 1000i64..4000], 0i64..60_000)
}

/// Generates an outage: its start in minutes, and its length from a quarter of an hour to two days.
fn outage() -> impl Strategy<Value = (i64, i64)> {
    (0i64..28_800, 15i64..2_880)
}

#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) start: Timestamp,
    zone: Tz,
    pub(super) rules: Vec<Trigger>,
    ops: Vec<(Timestamp, Op)>,
    outages: Vec<(Timestamp, Timestamp)>,
    pub(super) end: Timestamp,
}

pub(super) fn history(days: i64) -> impl Strategy<Value = History> {
    let rules = prop::collection::vec(trigger(), 1..5);
    let ops = prop::collection::vec((gap(), op(), prop::bool::weighted(0.1), edits()), 0..60);
    let outages = prop::collection::vec(outage(), 0..3);
    let start = (0..STARTS.len(), 0i64..10_000);
    (start, 0..ZONES.len(), rules, ops, outages).prop_map(move |((start, offset), index, rules, gaps, outages)| {
        let start = at(STARTS[start]) + TimeDelta::minutes(offset);
        let end = start + TimeDelta::days(days);
        let mut last = start;
        let mut ops = Vec::new();
        for ((minutes, ms), op, is_repeated, (slot, edits)) in gaps {
            last = last + TimeDelta::minutes(minutes) + TimeDelta::milliseconds(ms);
            ops.push((last, op.clone()));
            if is_repeated {
                last = last + TimeDelta::minutes(minutes);
                ops.push((last, op));
            }
            for (seconds, edit) in edits {
                last = last + TimeDelta::seconds(seconds);
                ops.push((last, Op::Edit(slot, edit)));
            }
        }
        ops.retain(|(at, _)| *at < end);
        let outage = |(from, minutes)| {
            let from = start + TimeDelta::minutes(from);
            (from, from + TimeDelta::minutes(minutes))
        };
        let outages = outages.into_iter().map(outage).collect();
        History { start, zone: zone(ZONES[index]), rules, ops, outages, end }
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
    pub(super) fn life(&self, swept: impl Fn(Facts, Vec<Rule>, Timestamp) -> Life) -> Life {
        let mut facts = facts(self.start + TimeDelta::days(-4), self.zone, 1);
        facts.phases = phases(2);
        let rules = self.rules.iter().enumerate();
        let rules = rules.map(|(slot, trigger)| rule(&format!("r{slot}"), trigger.clone(), self.start)).collect();
        let mut life = swept(facts, rules, self.start);
        life.outages = self.outages.clone();
        life
    }

    /// Runs the history. `watch` is called before each operation and at the end, with the present state of the life.
    pub(super) fn run(&self, life: &mut Life, mut watch: impl FnMut(&Life, Timestamp, Option<&Op>)) {
        let mut other: Vec<Rule> = Vec::new();
        for (at, op) in &self.ops {
            life.until(*at);
            watch(life, *at, Some(op));
            let today = date_at(life.facts.zone, *at);
            match op.clone() {
                Op::Edit(slot, to) => edited(life, *at, &format!("r{slot}"), to),
                Op::HandOver(fresh) => {
                    let theirs =
                        if fresh { vec![rule("o", Trigger::CheckInInactivity { days: 2 }, self.start)] } else { other };
                    other = life.rules.clone();
                    life.hand_over(*at, theirs);
                }
                Op::BackfilledDoses(ago) => life.backfill(*at, |facts| {
                    ago.iter().for_each(|days| facts.log(today - TimeDelta::days(*days)));
                }),
                Op::Active(is_active) if life.is_active == is_active => {}
                Op::Active(is_active) => life.set_active(*at, is_active),
                Op::MinDays(days) => life.change_settings(*at, |facts| facts.phases = phases(days)),
                Op::Zone(index) => life.change_settings(*at, |facts| facts.zone = zone(ZONES[index])),
                op => life.fact(*at, |facts| change(facts, op, *at, today)),
            }
        }
        life.until(self.end);
        watch(life, self.end, None);
    }
}

fn edited(life: &mut Life, at: Timestamp, id: &str, to: Edit) {
    if matches!(to, Edit::Deleted) {
        return life.delete(at, id);
    }
    let is_known = life.rules.iter().any(|rule| rule.automation.id.as_str() == id);
    let saved = match to {
        Edit::Other(trigger) if !is_known => rule(id, trigger, at),
        _ if !is_known => return,
        to => life.edited(id, |automation| match to {
            Edit::Other(trigger) => automation.trigger = trigger,
            Edit::Threshold(trigger) if is_alike(&trigger, &automation.trigger) => automation.trigger = trigger,
            Edit::SwitchedOff => automation.active = false,
            Edit::SwitchedOn => automation.active = true,
            _ => automation.name.push('x'),
        }),
    };
    life.save(at, saved);
}

fn is_alike(a: &Trigger, b: &Trigger) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
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
            facts.last_check_in_at = facts.last_check_in_at.max(Some(at + MINUTE * -(minutes as i32)));
        }
        Op::CheckInsDeleted => facts.last_check_in_at = None,
        Op::DailyLog(ago) => facts.last_daily_log_on = facts.last_daily_log_on.max(Some(today - TimeDelta::days(ago))),
        Op::Phase(phase, ago, counts) => {
            let started_on = today - TimeDelta::days(ago);
            let number = facts.phase.as_ref().map_or(0, |before| before.number) + u64::from(counts);
            facts.phase = Some(PhaseEntry { name: format!("p{phase}"), started_on, number });
        }
        Op::PerDay(per_day) => facts.schedule.0[0].per_day = per_day,
        op => unreachable!("{op:?} is no fact about the client"),
    }
}
