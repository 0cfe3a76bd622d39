//! The independent reference for the rules: at each sweep it checks whether the client matches, by the rules as worded.
//! It knows no due times, no sums of doses and no local midnights.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDate, TimeDelta};

use super::super::life::{Emitted, Life, PERIOD, at};
use super::super::*;
use crate::compliance::{Compliance, Window};
use crate::id::ClientId;
use crate::programme::ProgrammePhase;
use crate::tz::Tz;
use crate::wall_clock::date_at;

const WEEK: TimeDelta = TimeDelta::days(7);

/// The oracle's memory of a rule.
#[derive(Default, Clone)]
struct Memory {
    revision: Option<Timestamp>,
    below: bool,
    /// The start of the last emitted drop.
    dropped_at: Option<Timestamp>,
    reached: bool,
    /// Date, place in the programme, and number of the last entry that was emitted or seeded.
    phase: Option<(NaiveDate, usize, u64)>,
    check_in: Option<Timestamp>,
    log: Option<NaiveDate>,
}

pub(super) struct Oracle {
    of: BTreeMap<AutomationId, Memory>,
    /// True: the next sweep is silent.
    pub(super) silent: bool,
    /// The sweeps that emitted an event, each with the automation.
    pub(super) emitted: Vec<(Timestamp, AutomationId)>,
    /// The time of the last operation.
    now: Timestamp,
    /// The last sweep that evaluated the client.
    swept_at: Timestamp,
    /// Compliance by date and window, valid until the facts change.
    pct: BTreeMap<(NaiveDate, u32), Option<u8>>,
}

impl Memory {
    /// Returns the part of the memory that outlives the rule.
    fn lasting(&self) -> Self {
        Self { reached: self.reached, dropped_at: self.dropped_at, phase: self.phase, ..Self::default() }
    }
}

impl Oracle {
    /// Creates the oracle of a new client.
    pub(super) fn new(now: Timestamp) -> Self {
        let (of, pct) = (BTreeMap::new(), BTreeMap::new());
        Self { of, silent: true, emitted: Vec::new(), now, swept_at: now, pct }
    }

    /// Runs the sweeps up to the next operation.
    pub(super) fn sweeps_until(&mut self, life: &Life, until: Timestamp) {
        self.pct.clear();
        let period_ms = PERIOD.num_milliseconds();
        let mut sweep = Timestamp::from_ms((self.now.ms().div_euclid(period_ms) + 1) * period_ms);
        while sweep <= until {
            let is_out = life.outages.iter().any(|(from, to)| *from <= sweep && sweep < *to);
            if life.is_active && !is_out {
                self.sweep(life, sweep);
                self.swept_at = sweep;
            }
            sweep = sweep + PERIOD;
        }
        self.now = until;
    }

    fn sweep(&mut self, life: &Life, now: Timestamp) {
        let silent = std::mem::take(&mut self.silent);
        let is_swept = |rule: &&Rule| rule.automation.active && rule.automation.trigger != Trigger::NewClient;
        let mut rules: Vec<&Rule> = life.rules.iter().filter(is_swept).collect();
        rules.sort_by(|a, b| a.automation.id.cmp(&b.automation.id));
        // A rule that is not evaluated keeps only the lasting part of its memory.
        let present: BTreeSet<&AutomationId> = rules.iter().map(|rule| &rule.automation.id).collect();
        for (_, memory) in self.of.iter_mut().filter(|(id, _)| !present.contains(id)) {
            *memory = memory.lasting();
        }
        for rule in rules {
            let memory = self.of.entry(rule.automation.id.clone()).or_default();
            let is_seed = memory.revision != Some(rule.revision);
            if is_seed {
                *memory = Memory { revision: Some(rule.revision), ..memory.lasting() };
            }
            let starts = self.starts_to_match(&life.facts, rule, now, silent || is_seed);
            if starts && !silent && !is_seed {
                self.emitted.push((now, rule.automation.id.clone()));
                self.check_timestamp(life, rule, now);
            }
        }
    }

    /// Asserts the timestamp of an event. The seven days between drops run from it.
    fn check_timestamp(&mut self, life: &Life, rule: &Rule, now: Timestamp) {
        let id = &rule.automation.id;
        let is_it = |emitted: &&Emitted| emitted.swept_at == now && emitted.computed.automation_id == *id;
        let Some(at) = life.emitted.iter().find(is_it).map(|emitted| emitted.computed.at) else { return };
        let facts = &life.facts;
        let began = match rule.automation.trigger {
            Trigger::CheckInInactivity { days } => {
                let since = facts.last_check_in_at.unwrap_or(facts.created_at);
                return assert_eq!(at, since + TimeDelta::days(days.into()), "{rule:?}");
            }
            Trigger::DailyLogInactivity { days } => {
                let since = facts.last_daily_log_on.unwrap_or_else(|| date_at(facts.zone, facts.created_at));
                return assert_eq!(at, begins(facts.zone, since + TimeDelta::days(i64::from(days) + 1)), "{rule:?}");
            }
            Trigger::PhaseEligible if phase_of(facts).is_some_and(|(_, phase)| phase.min_compliance_pct.is_none()) => {
                let (entry, phase) = phase_of(facts).expect("it matches");
                let ready_on = entry.started_on + TimeDelta::days(phase.min_days.into());
                return assert_eq!(at, begins(facts.zone, ready_on), "{rule:?}");
            }
            _ => self.run_began(facts, rule, now),
        };
        let memory = self.of.get_mut(id).expect("it was seeded");
        let began = match rule.automation.trigger {
            Trigger::ComplianceDrop { .. } => {
                memory.dropped_at.replace(at).map_or(began, |last| began.max(last + WEEK))
            }
            _ => began,
        };
        // A midnight or the end of the seven days is the timestamp if that made the difference since the last sweep. A
        // fact that came later can have made it, and the sweep is the timestamp.
        let (fact_at, settings_at) = life.last_changes;
        let changed = began < fact_at || self.swept_at < settings_at;
        let known = if began > self.swept_at { began } else { now };
        assert!(at == known || (changed && at == now), "{at} is neither {known} nor {now}: {rule:?}");
    }

    /// Returns the beginning of the first of the dates up to today on which the rule's condition holds.
    fn run_began(&mut self, facts: &Facts, rule: &Rule, now: Timestamp) -> Timestamp {
        let mut date = date_at(facts.zone, now);
        // A date that the zone skips holds like the date before.
        while self.holds(facts, rule, date - TimeDelta::days(1)) && now.utc().date_naive() - date < TimeDelta::days(9) {
            date -= TimeDelta::days(1);
        }
        begins(facts.zone, date)
    }

    fn pct(&mut self, facts: &Facts, days: u32, today: NaiveDate) -> Option<u8> {
        *self.pct.entry((today, days)).or_insert_with(|| {
            let window = Window { since: today - TimeDelta::days(i64::from(days) - 1), today };
            let client = ClientId::parse("c").unwrap();
            Compliance::of(client, days, window, &facts.schedule, &facts.logged).compliance_pct
        })
    }

    /// Returns true if the condition of a rule on compliance or phases holds on a date.
    fn holds(&mut self, facts: &Facts, rule: &Rule, date: NaiveDate) -> bool {
        match rule.automation.trigger {
            Trigger::ComplianceDrop { threshold, window_days } => {
                let created_on = date_at(facts.zone, facts.created_at);
                let is_young = created_on >= date - TimeDelta::days(i64::from(window_days) - 1);
                !is_young && self.pct(facts, window_days, date).is_some_and(|pct| f64::from(pct) < threshold)
            }
            Trigger::ComplianceMilestone { threshold, window_days } => {
                self.pct(facts, window_days, date).is_some_and(|pct| f64::from(pct) >= threshold)
            }
            Trigger::PhaseEligible => phase_of(facts).is_some_and(|(entry, phase)| {
                let has_passed = date - entry.started_on >= TimeDelta::days(phase.min_days.into());
                let pct = self.pct(facts, 7, date).map(u32::from);
                has_passed && phase.min_compliance_pct.is_none_or(|least| pct.is_some_and(|pct| pct >= least))
            }),
            _ => unreachable!("inactivity has no dates"),
        }
    }

    /// Returns true if the client starts to match.
    fn starts_to_match(&mut self, facts: &Facts, rule: &Rule, now: Timestamp, silent: bool) -> bool {
        let today = date_at(facts.zone, now);
        let mut memory = self.of[&rule.automation.id].clone();
        let starts = match rule.automation.trigger {
            Trigger::ComplianceDrop { threshold, window_days } => {
                let is_back = self.pct(facts, window_days, today).is_some_and(|pct| f64::from(pct) >= threshold);
                let is_spaced = memory.dropped_at.is_none_or(|at| now >= at + WEEK);
                let drops = self.holds(facts, rule, today) && !memory.below && (is_spaced || silent);
                memory.below = (memory.below || drops) && !is_back;
                drops
            }
            Trigger::ComplianceMilestone { .. } => {
                let reaches = !memory.reached && self.holds(facts, rule, today);
                memory.reached |= reaches;
                reaches
            }
            Trigger::PhaseEligible => {
                let Some((entry, _)) = phase_of(facts).filter(|_| self.holds(facts, rule, today)) else { return false };
                let place = facts.phases.iter().position(|phase| phase.name == entry.name).expect("it is in a phase");
                let is_new = memory.phase.is_none_or(|(date, index, number)| {
                    entry.number > number || (entry.started_on, place) > (date, index)
                });
                if is_new {
                    memory.phase = Some((entry.started_on, place, entry.number));
                }
                is_new
            }
            Trigger::CheckInInactivity { days } => {
                let since = facts.last_check_in_at.unwrap_or(facts.created_at);
                let is_new =
                    memory.check_in.is_none_or(|emitted| facts.last_check_in_at.is_some_and(|last| last > emitted));
                let starts = is_new && now.ms() - since.ms() >= i64::from(days) * 86_400_000;
                if starts {
                    memory.check_in = Some(since);
                }
                starts
            }
            Trigger::DailyLogInactivity { days } => {
                let since = facts.last_daily_log_on.unwrap_or_else(|| date_at(facts.zone, facts.created_at));
                let is_new =
                    memory.log.is_none_or(|emitted| facts.last_daily_log_on.is_some_and(|last| last > emitted));
                let whole_days = since.iter_days().skip(1).take_while(|date| *date < today).count();
                let starts = is_new && whole_days >= days as usize;
                if starts {
                    memory.log = Some(since);
                }
                starts
            }
            _ => false,
        };
        self.of.insert(rule.automation.id.clone(), memory);
        starts
    }
}

/// Returns the client's phase, unless it is the last one or of another programme.
fn phase_of(facts: &Facts) -> Option<(&PhaseEntry, &ProgrammePhase)> {
    let entry = facts.phase.as_ref()?;
    let index = facts.phases.iter().position(|phase| phase.name == entry.name)?;
    (index + 1 < facts.phases.len()).then(|| (entry, &facts.phases[index]))
}

/// Returns the first quarter of an hour whose local date is this one or later: clocks change by quarters of an hour.
fn begins(zone: Tz, date: NaiveDate) -> Timestamp {
    let before = at(&format!("{}T00:00", date - TimeDelta::days(2)));
    (0..).map(|n| before + PERIOD * n).find(|at| date_at(zone, *at) >= date).expect("it begins")
}
