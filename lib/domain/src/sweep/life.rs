//! A client's life under test: facts and rules at their instants, and sweeps over it, either by the index or every minute.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;

use super::*;
use crate::dose::{Month, ScheduledDose};
use crate::id::DoseId;

pub(super) const MINUTE: TimeDelta = TimeDelta::minutes(1);
pub(super) const PERIOD: TimeDelta = TimeDelta::minutes(15);

pub(super) fn at(text: &str) -> Timestamp {
    Timestamp::parse(&format!("{text}Z")).or(Timestamp::parse(&format!("{text}:00Z"))).unwrap()
}

pub(super) fn date(text: &str) -> NaiveDate {
    crate::daily_log::parse_date(text).unwrap()
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
    Rule { automation, revision: saved_at, saved_at }
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
#[derive(Debug, Clone)]
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
    pub(super) evaluations: usize,
    /// While nothing sweeps.
    pub(super) asleep: Option<(Timestamp, Timestamp)>,
    /// Between two sweeps.
    every: TimeDelta,
    /// Whoever is due, or everybody.
    by_index: bool,
    now: Timestamp,
    rules_saved_at: Option<Timestamp>,
    /// When the pass over a coach's clients that follows a saved rule comes to this one.
    pass_at: Option<Timestamp>,
}

impl Life {
    pub(super) fn swept(facts: Facts, rules: Vec<Rule>, now: Timestamp) -> Self {
        let (states, told) = (States::new(now), Vec::new());
        let (rules_saved_at, pass_at) = (None, None);
        let (every, by_index, evaluations) = (PERIOD, true, 0);
        Self { facts, rules, states, told, evaluations, asleep: None, every, by_index, now, rules_saved_at, pass_at }
    }

    pub(super) fn watched_every_minute(facts: Facts, rules: Vec<Rule>, now: Timestamp) -> Self {
        Self { every: MINUTE, by_index: false, ..Self::swept(facts, rules, now) }
    }

    /// Time passes, with sweeps; one that is due now takes place.
    pub(super) fn until(&mut self, until: Timestamp) {
        let every_ms = self.every.num_milliseconds();
        while self.now < until {
            let sweep = Timestamp::from_ms((self.now.ms().div_euclid(every_ms) + 1) * every_ms);
            let next = earliest(Some(sweep), self.pass_at.filter(|pass| *pass > self.now)).unwrap().min(until);
            self.now = next;
            let is_passed = self.pass_at == Some(next);
            let is_due = self.states.due.is_some_and(|due| due <= next) || !self.by_index;
            if is_passed {
                self.states.wake(next);
            }
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

    /// Judges the client, twice, of which one counts: a sweep that overlaps, or that is repeated a minute later, finds the same.
    pub(super) fn evaluate(&mut self) {
        self.evaluations += 1;
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
        let stored = serde_json::to_string(&evaluation.states).unwrap();
        assert_eq!(serde_json::from_str::<States>(&stored).unwrap(), evaluation.states);
        if evaluation.told.len() < MAX_TOLD {
            assert!(evaluation.states.due.is_none_or(|due| due > self.now));
            let settled = super::evaluate(&self.facts, &self.rules, &evaluation.states, self.now);
            assert_eq!((settled.told.len(), &settled.states), (0, &evaluation.states));
        }
        let told = evaluation.told.into_iter().map(|computed| Told { found_at: self.now, computed });
        self.told.extend(told);
        self.states = evaluation.states;
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
            (false, true) => self.states.restart(self.now),
            (_, true) => self.states.touch(self.now, backfill),
            (_, false) => self.states.due = None,
        }
    }

    /// A rule is saved; the pass over the coach's clients comes to this one some time later.
    pub(super) fn save(&mut self, at: Timestamp, saved: Rule, pass_after: TimeDelta) {
        self.until(at);
        let saved = Rule { revision: at, saved_at: at, ..saved };
        // What is due is judged by the rules as they were, as with any fact.
        if self.facts.is_active && self.states.comes_first(at, self.rules_saved_at, false) {
            self.evaluate();
        }
        self.rules.retain(|rule| rule.automation.id != saved.automation.id);
        self.rules.push(saved);
        self.rules_saved_at = Some(at);
        if self.facts.is_active {
            self.pass_at = Some(at + pass_after);
        }
    }

    /// The client is with another coach, who has these rules.
    pub(super) fn hand_over(&mut self, at: Timestamp, rules: Vec<Rule>) {
        self.until(at);
        if self.facts.is_active && self.states.comes_first(at, self.rules_saved_at, false) {
            self.evaluate();
        }
        self.rules = rules;
        self.rules_saved_at = None;
        self.states.restart(at);
    }

    /// What was told of: the automation and when the client came to match it.
    pub(super) fn episodes(&self) -> Vec<(String, Timestamp)> {
        let told = self.told.iter();
        told.map(|told| (told.computed.automation_id.as_str().to_owned(), told.computed.at)).collect()
    }

    /// The instants of [`Life::episodes`].
    pub(super) fn instants(&self) -> Vec<String> {
        self.told.iter().map(|told| told.computed.at.to_string().replace(":00.000Z", "")).collect()
    }
}
