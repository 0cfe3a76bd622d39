//! A client's life under test: timed facts and rules, and sweeps that evaluate the client when it is due, or always.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};

use super::*;
use crate::dose::{DoseSchedule, DosesLogged, Month, ScheduledDose};
use crate::id::{CoachId, DoseId};
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
    Rule { automation, revision: saved_at }
}

/// The facts of a client without history, with a dose to take that many times a day.
pub(super) fn facts(created_at: Timestamp, zone: Tz, per_day: u32) -> Facts {
    let dose = ScheduledDose { dose_id: dose(), per_day, from: date("2000-01-01"), until: None };
    Facts {
        created_at,
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

/// An emitted event, and the sweep that emitted it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Emitted {
    pub(super) swept_at: Timestamp,
    pub(super) computed: Computed,
}

#[derive(Clone)]
pub(super) struct Life {
    pub(super) facts: Facts,
    pub(super) is_active: bool,
    pub(super) rules: Vec<Rule>,
    pub(super) states: States,
    pub(super) emitted: Vec<Emitted>,
    /// The sweeps that evaluated the client.
    pub(super) evaluated: Vec<Timestamp>,
    /// True: sweeps evaluate the client even if it is not due.
    is_always_due: bool,
    /// When a fact last marked the client as due.
    changed_at: Option<Timestamp>,
    /// The time of the last fact about the client, and of the last change of the zone or the programme.
    pub(super) last_changes: (Timestamp, Timestamp),
    /// True: the rules, the zone or the programme changed, so the next sweep evaluates all of the coach's clients.
    passes: bool,
    now: Timestamp,
    /// Intervals without sweeps.
    pub(super) outages: Vec<(Timestamp, Timestamp)>,
}

impl Life {
    /// Creates the life of a new client.
    pub(super) fn swept(facts: Facts, rules: Vec<Rule>, now: Timestamp) -> Self {
        Self {
            facts,
            is_active: true,
            rules,
            states: States::new(),
            emitted: Vec::new(),
            evaluated: Vec::new(),
            is_always_due: false,
            changed_at: Some(now),
            last_changes: (now, now),
            passes: false,
            now,
            outages: Vec::new(),
        }
    }

    /// Creates the same life, evaluated by every sweep.
    pub(super) fn evaluated_by_every_sweep(facts: Facts, rules: Vec<Rule>, now: Timestamp) -> Self {
        Self { is_always_due: true, ..Self::swept(facts, rules, now) }
    }

    /// Returns true if a sweep would evaluate the client at an instant.
    fn is_due(&self, at: Timestamp) -> bool {
        let due = earliest(self.states.due, self.changed_at);
        self.is_active && (self.is_always_due || self.passes || due.is_some_and(|due| due <= at))
    }

    /// Returns the next instant at which the client is due.
    pub(super) fn due(&self) -> Option<Timestamp> {
        earliest(self.states.due, self.changed_at).filter(|_| self.is_active)
    }

    /// Advances the time, with sweeps up to and including `until`.
    pub(super) fn until(&mut self, until: Timestamp) {
        let period_ms = PERIOD.num_milliseconds();
        while self.now < until {
            let sweep = Timestamp::from_ms((self.now.ms().div_euclid(period_ms) + 1) * period_ms);
            self.now = sweep.min(until);
            let is_out = self.outages.iter().any(|(from, to)| *from <= sweep && sweep < *to);
            if self.now == sweep && !is_out {
                self.sweep();
            }
        }
    }

    /// Advances the time without sweeps.
    pub(super) fn outage_until(&mut self, until: Timestamp) {
        self.now = until;
    }

    fn sweep(&mut self) {
        if self.is_due(self.now) {
            self.evaluated.push(self.now);
            let evaluation = self.evaluate();
            let emitted = evaluation.emitted.into_iter();
            self.emitted.extend(emitted.map(|computed| Emitted { swept_at: self.now, computed }));
            // Convert to the stored form and back, like the table.
            let stored = serde_json::to_string(&evaluation.states).unwrap();
            self.states = serde_json::from_str(&stored).unwrap();
            assert_eq!(self.states, evaluation.states);
            self.changed_at = None;
        }
        self.passes = false;
    }

    /// Evaluates the client with only the doses that [`reads_from`] asks for.
    fn evaluate(&self) -> Evaluation {
        let mut facts = self.facts.clone();
        match reads_from(&self.rules, self.now) {
            Some(first) => facts.logged.0.retain(|month, _| *month >= Month::of(first)),
            None => facts.logged = DosesLogged::default(),
        }
        evaluate(&facts, &self.rules, &self.states, self.changed_at, self.now)
    }

    /// Applies a fact about the client.
    pub(super) fn fact(&mut self, at: Timestamp, change: impl FnOnce(&mut Facts)) {
        self.until(at);
        change(&mut self.facts);
        (self.changed_at, self.last_changes.0) = (Some(at), at);
    }

    /// Applies a fact of a backfill.
    pub(super) fn backfill(&mut self, at: Timestamp, change: impl FnOnce(&mut Facts)) {
        self.fact(at, change);
        self.states.silent = true;
    }

    /// Changes the time zone or the programme.
    pub(super) fn change_settings(&mut self, at: Timestamp, change: impl FnOnce(&mut Facts)) {
        self.until(at);
        change(&mut self.facts);
        (self.passes, self.last_changes.1) = (true, at);
    }

    pub(super) fn set_active(&mut self, at: Timestamp, is_active: bool) {
        self.until(at);
        self.is_active = is_active;
        self.states.silent |= is_active;
        self.changed_at = Some(at);
    }

    /// Creates or edits a rule.
    pub(super) fn save(&mut self, at: Timestamp, saved: Rule) {
        self.until(at);
        let id = &saved.automation.id;
        let before = self.rules.iter().position(|rule| rule.automation.id == *id).map(|place| self.rules.remove(place));
        let is_renamed = |before: &Rule| {
            let Automation { active, trigger, steps, .. } = &before.automation;
            let Automation { active: is_active, trigger: becomes, steps: others, .. } = &saved.automation;
            (active, trigger, steps) == (is_active, becomes, others)
        };
        let revision = before.filter(is_renamed).map_or(at, |before| before.revision);
        self.rules.push(Rule { revision, ..saved });
        self.passes = true;
    }

    /// Deletes a rule.
    pub(super) fn delete(&mut self, at: Timestamp, id: &str) {
        self.until(at);
        self.rules.retain(|rule| rule.automation.id.as_str() != id);
        self.passes = true;
    }

    /// Returns the present rule, changed by `edit`.
    pub(super) fn edited(&self, id: &str, edit: impl FnOnce(&mut Automation)) -> Rule {
        let mut rule = self.rules.iter().find(|rule| rule.automation.id.as_str() == id).unwrap().clone();
        edit(&mut rule.automation);
        rule
    }

    /// Hands the client over to a coach with these rules.
    pub(super) fn hand_over(&mut self, at: Timestamp, rules: Vec<Rule>) {
        self.until(at);
        self.rules = rules;
        self.states.silent = true;
        self.changed_at = Some(at);
        self.passes = false;
    }

    /// Returns the timestamps of the emitted events.
    pub(super) fn instants(&self) -> Vec<String> {
        self.emitted.iter().map(|emitted| emitted.computed.at.to_string().replace(":00.000Z", "")).collect()
    }
}
