//! The oracle knows neither due times nor states: minute by minute it asks whether the client matches, as the rules are worded.
//!
//! One thing depends on when the client was judged, which it is given: what a client has come to match since then is not told, and is not
//! remembered, where the automation is switched off or deleted before the client is judged again.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDate, TimeDelta};

use super::super::life::{Life, MINUTE};
use super::super::*;
use crate::compliance::{Compliance, Window};
use crate::id::ClientId;
use crate::wall_clock::date_at;

/// What the oracle remembers of a rule.
#[derive(Default, Clone)]
struct Memory {
    seen: Option<Timestamp>,
    trigger: Option<Trigger>,
    below: bool,
    fired_at: Option<Timestamp>,
    reached: bool,
    phase: Option<(NaiveDate, usize)>,
    check_in: Option<Timestamp>,
    log: Option<NaiveDate>,
}

impl Memory {
    /// What is remembered whatever becomes of the rule.
    fn lasting(&self) -> Self {
        Self { reached: self.reached, fired_at: self.fired_at, phase: self.phase, ..Self::default() }
    }
}

#[derive(Default)]
pub(super) struct Oracle {
    of: BTreeMap<AutomationId, Memory>,
    /// What was remembered when the client was last judged.
    judged: BTreeMap<AutomationId, Memory>,
    /// When the client is still to be judged.
    to_judge: BTreeSet<Timestamp>,
    pub(super) told: Vec<(AutomationId, Timestamp)>,
    /// What the client has come to match since it was last judged.
    matched: Vec<(AutomationId, Timestamp)>,
    /// For how long something had been matched that is not told because the automation was switched off or deleted.
    pub(super) untold: Vec<TimeDelta>,
    /// What came last is a backfill.
    pub(super) silent: bool,
    /// By date and window, while facts stay.
    pct: BTreeMap<(NaiveDate, u32), Option<u8>>,
}

impl Oracle {
    /// Of a client that is judged at these instants.
    pub(super) fn new(judged: &[Timestamp]) -> Self {
        Self { to_judge: judged.iter().copied().collect(), ..Self::default() }
    }

    /// Every minute up to what happens next.
    pub(super) fn watch(&mut self, life: &Life, from: Timestamp, to: Timestamp) {
        self.pct.clear();
        let mut minute = Timestamp::from_ms((from.ms().div_euclid(60_000) + 1) * 60_000);
        while minute <= to {
            self.judged_before(life, minute);
            if life.facts.is_active {
                let silent = std::mem::take(&mut self.silent);
                self.look(life, minute, silent);
            }
            minute = minute + MINUTE;
        }
    }

    /// What the client matches is told once it is judged; what it was told of by automations that are gone is forgotten.
    pub(super) fn judged_before(&mut self, life: &Life, until: Timestamp) {
        let later = self.to_judge.split_off(&until);
        if std::mem::replace(&mut self.to_judge, later).is_empty() {
            return;
        }
        self.told.append(&mut self.matched);
        let listed: BTreeSet<&AutomationId> = life.rules.iter().map(|rule| &rule.automation.id).collect();
        self.of.retain(|id, memory| listed.contains(id) || memory.reached);
        for (_, memory) in self.of.iter_mut().filter(|(id, _)| !listed.contains(id)) {
            *memory = memory.lasting();
        }
        self.judged = self.of.clone();
    }

    /// Rules that are new to the client are met without a word by what it matches. One that was renamed is not, unless the client was away.
    pub(super) fn seed(&mut self, life: &Life, now: Timestamp, was_away: bool) {
        self.pct.clear();
        let active: BTreeSet<&AutomationId> =
            life.rules.iter().filter(|rule| rule.automation.active).map(|rule| &rule.automation.id).collect();
        let gone = |id: &AutomationId| !active.contains(id);
        let untold = self.matched.extract_if(.., |(id, _)| gone(id));
        self.untold.extend(untold.map(|(_, at)| TimeDelta::milliseconds(now.ms() - at.ms())));
        self.of.retain(|id, _| !gone(id));
        for (id, memory) in self.judged.iter().filter(|(id, _)| gone(id)) {
            self.of.insert(id.clone(), memory.lasting());
        }
        for rule in life.rules.iter().filter(|rule| rule.automation.active) {
            let memory = self.of.entry(rule.automation.id.clone()).or_default();
            if memory.seen != Some(rule.revision) {
                let trigger = Some(rule.automation.trigger.clone());
                if was_away || memory.trigger != trigger {
                    *memory = Memory { trigger, ..memory.lasting() };
                }
                memory.seen = Some(rule.revision);
                self.judge(&life.facts, rule, now, true);
            }
        }
        self.pct.clear();
    }

    pub(super) fn look(&mut self, life: &Life, now: Timestamp, silent: bool) {
        for rule in life.rules.iter().filter(|rule| rule.automation.active) {
            if self.judge(&life.facts, rule, now, silent) && !silent {
                self.matched.push((rule.automation.id.clone(), now));
            }
        }
    }

    fn pct(&mut self, facts: &Facts, days: u32, now: Timestamp) -> Option<u8> {
        let window = Window::ending(now, facts.zone, days);
        *self.pct.entry((window.today, days)).or_insert_with(|| {
            let client = ClientId::parse("c").unwrap();
            Compliance::of(client, days, window, &facts.schedule, &facts.logged).compliance_pct
        })
    }

    /// Whether the client comes to match.
    fn judge(&mut self, facts: &Facts, rule: &Rule, now: Timestamp, silent: bool) -> bool {
        let today = date_at(facts.zone, now);
        let created_on = date_at(facts.zone, facts.created_at);
        let pct = match rule.automation.trigger {
            Trigger::ComplianceDrop { window_days, .. } | Trigger::ComplianceMilestone { window_days, .. } => {
                self.pct(facts, window_days, now)
            }
            Trigger::PhaseEligible => self.pct(facts, 7, now),
            _ => None,
        };
        let memory = self.of.get_mut(&rule.automation.id).unwrap();
        match rule.automation.trigger {
            Trigger::ComplianceDrop { threshold, window_days } => {
                let Some(pct) = pct else { return false };
                if f64::from(pct) >= threshold {
                    memory.below = false;
                    return false;
                }
                let young = created_on >= today - TimeDelta::days(i64::from(window_days) - 1);
                let spaced = memory.fired_at.is_none_or(|fired_at| now >= fired_at + TimeDelta::days(7));
                if young || memory.below || !(spaced || silent) {
                    return false;
                }
                memory.below = true;
                if !silent {
                    memory.fired_at = Some(now);
                }
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
                let is_new = memory.check_in.is_none_or(|told| facts.last_check_in_at.is_some_and(|last| last > told));
                if !is_new || now.ms() - since.ms() < i64::from(days) * 86_400_000 {
                    return false;
                }
                memory.check_in = Some(since);
                true
            }
            Trigger::DailyLogInactivity { days } => {
                let since = facts.last_daily_log_on.unwrap_or(created_on);
                let is_new = memory.log.is_none_or(|told| facts.last_daily_log_on.is_some_and(|last| last > told));
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
