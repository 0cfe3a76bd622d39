//! A client's life under test: facts and rules at their instants, and sweeps over it, either by the index or every minute.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDate, TimeDelta};

use super::*;
use crate::dose::{Month, ScheduledDose};
use crate::id::DoseId;
use crate::tz::Tz;

pub(super) const MINUTE: TimeDelta = TimeDelta::minutes(1);
pub(super) const PERIOD: TimeDelta = TimeDelta::minutes(15);

pub(super) fn at(text: &str) -> Timestamp {
    Timestamp::parse(&format!("{text}Z")).or(Timestamp::parse(&format!("{text}:00Z"))).unwrap()
}

pub(super) fn date(text: &str) -> NaiveDate {
    crate::time::parse_date(text).unwrap()
}

pub(super) fn automation_id(text: &str) -> AutomationId {
    AutomationId::parse(text).unwrap()
}

/// An active rule of a coach.
pub(super) fn rule(id: &str, trigger: Trigger, saved_at: Timestamp) -> Rule {
    let automation = Automation {
        id: automation_id(id),
        coach_id: CoachId::parse("coach").unwrap(),
        name: format!("Rule {id}"),
        active: true,
        trigger,
        steps: Vec::new(),
    };
    Rule { automation, revision: saved_at, saved_at, former: Vec::new() }
}

/// A client of whom nothing is known, with a dose to be taken so often a day.
pub(super) fn facts(created_at: Timestamp, zone: Tz, per_day: u32) -> Facts {
    let dose = ScheduledDose { dose_id: dose(), per_day, from: date("2000-01-01"), until: None };
    Facts {
        created_at,
        is_active: true,
        zone,
        last_check_in_at: None,
        last_daily_log_on: None,
        phase: None,
        phases: Vec::new(),
        schedule: DoseSchedule(vec![dose]),
        logged: DosesLogged(BTreeMap::new()),
    }
}

fn dose() -> DoseId {
    DoseId::parse("d").unwrap()
}

impl Facts {
    pub(super) fn log(&mut self, date: NaiveDate) {
        self.logged.0.entry(Month::of(date)).or_default().add(&dose(), date);
    }

    pub(super) fn unlog(&mut self, date: NaiveDate) {
        self.logged.0.entry(Month::of(date)).or_default().remove(&dose(), date);
    }
}

/// Something that was told, and when it was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    pub(super) found_at: Timestamp,
    pub(super) computed: Computed,
}

#[derive(Clone)]
pub(super) struct Life {
    pub(super) facts: Facts,
    pub(super) rules: Vec<Rule>,
    pub(super) states: States,
    pub(super) told: Vec<Told>,
    /// The instants at which the client was judged.
    pub(super) judged: Vec<Timestamp>,
    /// While nothing sweeps.
    pub(super) asleep: Option<(Timestamp, Timestamp)>,
    /// Between two sweeps.
    every: TimeDelta,
    /// Whoever is due, or everybody.
    by_index: bool,
    now: Timestamp,
    rules_saved_at: Option<Timestamp>,
    /// When the passes over a coach's clients that follow saved rules come to this one.
    passes: BTreeSet<Timestamp>,
    /// Whether states go through their stored form whenever they change.
    pub(super) is_stored: bool,
}

/// As many former revisions as are kept of a rule.
const MAX_FORMER: usize = 10;

impl Life {
    pub(super) fn swept(facts: Facts, rules: Vec<Rule>, now: Timestamp) -> Self {
        let (states, told) = (States::new(now), Vec::new());
        let (judged, passes) = (Vec::new(), BTreeSet::new());
        Self {
            facts,
            rules,
            states,
            told,
            judged,
            asleep: None,
            every: PERIOD,
            by_index: true,
            now,
            rules_saved_at: None,
            passes,
            is_stored: false,
        }
    }

    pub(super) fn watched_every_minute(facts: Facts, rules: Vec<Rule>, now: Timestamp) -> Self {
        Self { every: MINUTE, by_index: false, ..Self::swept(facts, rules, now) }
    }

    /// Time passes, with sweeps; one that is due now takes place.
    pub(super) fn until(&mut self, until: Timestamp) {
        let every_ms = self.every.num_milliseconds();
        while self.now < until {
            let sweep = Timestamp::from_ms((self.now.ms().div_euclid(every_ms) + 1) * every_ms);
            let pass = self.passes.iter().find(|pass| **pass > self.now).copied();
            let next = earliest(Some(sweep), pass).unwrap().min(until);
            self.now = next;
            if self.passes.remove(&next) {
                self.states.wake(next);
                self.store();
            }
            let is_due = self.states.due.is_some_and(|due| due <= next) || !self.by_index;
            let is_asleep = self.asleep.is_some_and(|(from, to)| from <= next && next < to);
            if next == sweep && is_due && !is_asleep {
                self.evaluate();
            }
        }
    }

    /// Time passes, and nothing sweeps.
    pub(super) fn outage_until(&mut self, until: Timestamp) {
        self.now = until;
    }

    fn store(&mut self) {
        if self.is_stored {
            let stored = serde_json::to_string(&self.states).unwrap();
            self.states = serde_json::from_str(&stored).unwrap();
        }
    }

    /// Judges the client, twice, of which one counts: a sweep that overlaps, or that is repeated a minute later, finds the same.
    pub(super) fn evaluate(&mut self) {
        if self.facts.is_active {
            self.judged.push(self.now);
        }
        let evaluation = super::evaluate(&self.facts, &self.rules, &self.states, self.now);
        let again = super::evaluate(&self.facts, &self.rules, &self.states, self.now + MINUTE);
        let day = |at: Timestamp| crate::wall_clock::date_at(self.facts.zone, at);
        if day(self.now) == day(self.now + MINUTE) && self.states.due.is_some_and(|due| due <= self.now) {
            for told in &evaluation.told {
                let same = |other: &&Computed| {
                    (&other.automation_id, other.at, &other.episode) == (&told.automation_id, told.at, &told.episode)
                };
                assert!(again.told.iter().any(|other| same(&other)), "{told:?} is not in {:?}", again.told);
            }
        }
        assert_eq!(super::evaluate(&self.facts, &self.rules_needed(), &self.states, self.now), evaluation);
        if evaluation.told.len() < MAX_TOLD {
            assert!(evaluation.states.due.is_none_or(|due| due > self.now));
            let settled = super::evaluate(&self.facts, &self.rules, &evaluation.states, self.now);
            assert_eq!((settled.told.len(), &settled.states), (0, &evaluation.states));
        }
        let told = evaluation.told.into_iter().map(|computed| Told { found_at: self.now, computed });
        self.told.extend(told);
        self.states = evaluation.states;
        self.store();
    }

    /// The rules without the former revisions that were over when the client was last judged.
    fn rules_needed(&self) -> Vec<Rule> {
        let mut rules = self.rules.clone();
        for rule in &mut rules {
            let ends: Vec<Timestamp> = rule.former.iter().skip(1).map(|former| former.saved_at).collect();
            let mut ends = ends.into_iter().chain([rule.saved_at]);
            rule.former.retain(|_| ends.next().is_some_and(|ends| ends > self.states.at));
        }
        rules
    }

    pub(super) fn fact(&mut self, at: Timestamp, change: impl FnOnce(&mut Facts)) {
        self.until(at);
        self.apply(false, change);
    }

    pub(super) fn backfill(&mut self, at: Timestamp, change: impl FnOnce(&mut Facts)) {
        self.until(at);
        self.apply(true, change);
    }

    /// As ingest takes a fact: what stood before it comes first.
    pub(super) fn apply(&mut self, backfill: bool, change: impl FnOnce(&mut Facts)) {
        if self.facts.is_active && self.states.comes_first(self.now, self.rules_saved_at, backfill) {
            self.evaluate();
        }
        let was_active = self.facts.is_active;
        change(&mut self.facts);
        match (was_active, self.facts.is_active) {
            (false, true) => self.states.restart(self.now, backfill),
            (_, true) => self.states.touch(self.now, backfill),
            (_, false) => self.states.due = None,
        }
        self.store();
    }

    /// A rule is saved; the pass over the coach's clients comes to this one some time later. Until then nobody is judged for it.
    pub(super) fn save(&mut self, at: Timestamp, saved: Rule, pass_after: TimeDelta) {
        self.until(at);
        let mut former = Vec::new();
        if let Some(place) = self.rules.iter().position(|rule| rule.automation.id == saved.automation.id) {
            let Rule { automation, revision, saved_at, former: before } = self.rules.remove(place);
            former = before;
            former.push(Former { automation, revision, saved_at });
            former.drain(..former.len().saturating_sub(MAX_FORMER));
        }
        self.rules.push(Rule { revision: at, saved_at: at, former, ..saved });
        self.rules_saved_at = Some(at);
        if self.facts.is_active {
            self.passes.insert(at + pass_after);
        }
    }

    /// A rule is deleted, of which nobody is told.
    pub(super) fn delete(&mut self, at: Timestamp, id: &str) {
        self.until(at);
        self.rules.retain(|rule| rule.automation.id.as_str() != id);
    }

    /// A rule as it is now, to be saved as another.
    pub(super) fn edited(&self, id: &str, edit: impl FnOnce(&mut Automation)) -> Rule {
        let mut rule = self.rules.iter().find(|rule| rule.automation.id.as_str() == id).unwrap().clone();
        edit(&mut rule.automation);
        rule
    }

    /// The client is with another coach, who has these rules.
    pub(super) fn hand_over(&mut self, at: Timestamp, rules: Vec<Rule>) {
        self.until(at);
        if self.facts.is_active && self.states.comes_first(at, self.rules_saved_at, false) {
            self.evaluate();
        }
        self.rules = rules;
        self.rules_saved_at = None;
        self.states.restart(at, false);
        self.store();
    }

    /// What was told of: the automation and when the client came to match it.
    pub(super) fn episodes(&self) -> Vec<(AutomationId, Timestamp)> {
        self.told.iter().map(|told| (told.computed.automation_id.clone(), told.computed.at)).collect()
    }

    /// The instants of [`Life::episodes`].
    pub(super) fn instants(&self) -> Vec<String> {
        self.told.iter().map(|told| told.computed.at.to_string().replace(":00.000Z", "")).collect()
    }
}
