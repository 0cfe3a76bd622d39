//! An oracle without due times: at each sweep it checks whether the client matches, by the rules as worded.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDate, TimeDelta};

use super::super::life::{Life, PERIOD};
use super::super::*;
use crate::compliance::{Compliance, Window};
use crate::id::ClientId;
use crate::wall_clock::date_at;

/// The oracle's memory of a rule.
#[derive(Default, Clone)]
struct Memory {
    revision: Option<Timestamp>,
    below: bool,
    /// The start of the last emitted drop.
    dropped_at: Option<Timestamp>,
    reached: bool,
    phase: Option<(NaiveDate, usize)>,
    check_in: Option<Timestamp>,
    log: Option<NaiveDate>,
}

pub(super) struct Oracle {
    of: BTreeMap<AutomationId, Memory>,
    /// True: the next sweep is silent.
    pub(super) silent: bool,
    /// The sweeps that emitted an event, each with the automation.
    pub(super) emitted: Vec<(Timestamp, AutomationId)>,
    /// The time of the last sweep.
    now: Timestamp,
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
        Self { of: BTreeMap::new(), silent: true, emitted: Vec::new(), now, pct: BTreeMap::new() }
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
            }
            sweep = sweep + PERIOD;
        }
        self.now = until;
    }

    fn sweep(&mut self, life: &Life, now: Timestamp) {
        let silent = std::mem::take(&mut self.silent);
        let mut rules: Vec<&Rule> = life.rules.iter().filter(|rule| rule.automation.active).collect();
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
                self.note_drop(life, rule, now);
            }
        }
    }

    /// Records a drop. The seven days run from the event's timestamp, which the swept life has.
    fn note_drop(&mut self, life: &Life, rule: &Rule, now: Timestamp) {
        let id = &rule.automation.id;
        let emitted =
            life.emitted.iter().find(|emitted| emitted.swept_at == now && emitted.computed.automation_id == *id);
        if let (Some(memory), Trigger::ComplianceDrop { .. }) = (self.of.get_mut(id), &rule.automation.trigger) {
            memory.dropped_at = Some(emitted.map_or(now, |emitted| emitted.computed.at));
        }
    }

    fn pct(&mut self, facts: &Facts, days: u32, now: Timestamp) -> Option<u8> {
        let window = Window::ending(now, facts.zone, days);
        *self.pct.entry((window.today, days)).or_insert_with(|| {
            let client = ClientId::parse("c").unwrap();
            Compliance::of(client, days, window, &facts.schedule, &facts.logged).compliance_pct
        })
    }

    /// Returns true if the client starts to match.
    fn starts_to_match(&mut self, facts: &Facts, rule: &Rule, now: Timestamp, silent: bool) -> bool {
        let today = date_at(facts.zone, now);
        let created_on = date_at(facts.zone, facts.created_at);
        let pct = match rule.automation.trigger {
            Trigger::ComplianceDrop { window_days, .. } | Trigger::ComplianceMilestone { window_days, .. } => {
                self.pct(facts, window_days, now)
            }
            Trigger::PhaseEligible => self.pct(facts, 7, now),
            _ => None,
        };
        let memory = self.of.get_mut(&rule.automation.id).expect("it was seeded");
        match rule.automation.trigger {
            Trigger::ComplianceDrop { threshold, window_days } => {
                let Some(pct) = pct else { return false };
                if f64::from(pct) >= threshold {
                    memory.below = false;
                    return false;
                }
                let young = created_on >= today - TimeDelta::days(i64::from(window_days) - 1);
                let spaced = memory.dropped_at.is_none_or(|at| now >= at + TimeDelta::days(7));
                if young || memory.below || !(spaced || silent) {
                    return false;
                }
                memory.below = true;
                true
            }
            Trigger::ComplianceMilestone { threshold, .. } => {
                let comes = !memory.reached && pct.is_some_and(|pct| f64::from(pct) >= threshold);
                memory.reached |= comes;
                comes
            }
            Trigger::PhaseEligible => {
                let Some(entry) = &facts.phase else { return false };
                let Some(index) = facts.phases.iter().position(|phase| phase.name == entry.name) else { return false };
                let phase = &facts.phases[index];
                let passed = today - entry.started_on >= TimeDelta::days(i64::from(phase.min_days));
                let complies =
                    phase.min_compliance_pct.is_none_or(|least| pct.is_some_and(|pct| u32::from(pct) >= least));
                let is_last = index + 1 == facts.phases.len();
                let entered = Some((entry.started_on, index));
                if is_last || !passed || !complies || memory.phase >= entered {
                    return false;
                }
                memory.phase = entered;
                true
            }
            Trigger::CheckInInactivity { days } => {
                let since = facts.last_check_in_at.unwrap_or(facts.created_at);
                let is_new =
                    memory.check_in.is_none_or(|emitted| facts.last_check_in_at.is_some_and(|last| last > emitted));
                if !is_new || now.ms() - since.ms() < i64::from(days) * 86_400_000 {
                    return false;
                }
                memory.check_in = Some(since);
                true
            }
            Trigger::DailyLogInactivity { days } => {
                let since = facts.last_daily_log_on.unwrap_or(created_on);
                let is_new =
                    memory.log.is_none_or(|emitted| facts.last_daily_log_on.is_some_and(|last| last > emitted));
                let whole_days = since.iter_days().skip(1).take_while(|date| *date < today).count();
                if !is_new || whole_days < days as usize {
                    return false;
                }
                memory.log = Some(since);
                true
            }
            _ => false,
        }
    }
}
