//! The sweep's rules: who comes to match an automation on a computed event, what is told of it, and when to look again.
//!
//! [`evaluate`] judges a client at an instant. Nothing can come to match before [`States::due`], so whoever is not due is not looked at.
//! - A fact makes its client due at the next whole minute ([`States::touch`]); what comes within a minute is judged as one. Where the
//!   client is due already, it is judged as it stood before the fact ([`States::comes_first`]): a check-in a minute after its deadline
//!   swallows nothing. So the sweeps tell what a look every minute would tell, at most a sweep's period late.
//! - A rule that the client has no state for, or one of another revision, is judged silently, as of its saving.
//! - [`Computed::at`] is when the client came to match, whenever that is found: it names the episode, and the seven days count from it.
//! - What came and went while nothing swept is not told; a run of matching that still holds is, with the instant at which it began.

mod days;
mod judge;
mod state;

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::automation::{Automation, MAX_TRIGGERED, Trigger};
use crate::client::Measure;
use crate::dose::{DoseSchedule, DosesLogged};
use crate::id::{AutomationId, CoachId};
use crate::programme::ProgrammePhase;
use crate::time::Timestamp;

use days::Days;
use judge::{Judge, Span};
pub use state::{Mark, State, States};

/// Window of the compliance that a phase asks for.
const PHASE_WINDOW_DAYS: u32 = 7;
/// Most that one evaluation tells, so that it fits a transaction. What is over waits for the next.
pub const MAX_TOLD: usize = 40;
/// Most states that are kept of automations that are not judged.
const MAX_KEPT: usize = 100;

/// What is known of a client, as far as the rules ask.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub created_at: Timestamp,
    pub is_active: bool,
    /// Of the workspace.
    pub zone: Tz,
    /// When the latest check-in was submitted.
    pub last_check_in_at: Option<Timestamp>,
    /// The latest date with a daily log.
    pub last_daily_log_on: Option<NaiveDate>,
    pub phase: Option<PhaseEntry>,
    /// Those of the client's programme, in order.
    pub phases: Vec<ProgrammePhase>,
    pub schedule: DoseSchedule,
    /// From the month of [`reads_from`] on, later ones too.
    pub logged: DosesLogged,
}

/// That a client came to a phase on a date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseEntry {
    pub name: String,
    pub started_on: NaiveDate,
}

/// An automation, and since when it is as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub automation: Automation,
    /// When it was said to be so. Another revision is another rule: who matches it already is not told of.
    pub revision: Timestamp,
    /// When it was stored, as of which that is judged.
    pub saved_at: Timestamp,
}

/// That a client came to match an automation.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    pub coach_id: CoachId,
    pub automation_id: AutomationId,
    pub name: String,
    /// In percent or days; `None` where the automation has none.
    pub threshold: Option<Measure>,
    /// When the client came to match.
    pub at: Timestamp,
    pub found: Found,
    /// Tells this time from every other at which this client comes to match this automation.
    pub episode: String,
}

/// The figures of a computed event, as they are when it is found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Found {
    ComplianceDrop {
        compliance_pct: u8,
    },
    ComplianceMilestone {
        compliance_pct: u8,
    },
    PhaseEligible {
        current_phase: String,
        /// The local date on which the client came to match.
        eligible_since: NaiveDate,
    },
    CheckInInactivity {
        last_check_in_at: Option<Timestamp>,
        /// Whole spans of 24 hours since the last check-in, or the creation.
        days_inactive: i64,
    },
    DailyLogInactivity {
        last_logged_on: Option<NaiveDate>,
        /// Whole local days without a log.
        days_inactive: i64,
    },
}

/// What an evaluation comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    pub told: Vec<Computed>,
    /// To be stored in one transaction with what is told, on condition that those that were judged are still stored.
    pub states: States,
}

/// Judges a client by its coach's rules, the inactive ones included. A client off the active roster is left as it is.
pub fn evaluate(facts: &Facts, rules: &[Rule], states: &States, now: Timestamp) -> Evaluation {
    if !facts.is_active {
        return Evaluation { told: Vec::new(), states: States { due: None, ..states.clone() } };
    }
    let now = now.max(states.at);
    let due = states.due.map_or(now, |due| due.clamp(states.at, now));
    let considered = considered(rules);
    let judge = Judge { facts, days: Days::of(facts, doses_read(&considered, states, now), now) };
    let mut told = Vec::new();
    let mut next = States { at: now, due: None, silent: false, of: kept(states, rules, &considered) };
    for rule in considered {
        let id = &rule.automation.id;
        if told.len() == MAX_TOLD {
            next.of.extend(states.of.get(id).map(|state| (id.clone(), state.clone())));
            next.due = Some(now);
            continue;
        }
        let (mark, from) = stood(&judge, rule, states, due, now);
        let (mark, computed) = judge.at(rule, mark, Span { from, now });
        next.due = earliest(next.due, judge.due(rule, &mark, now));
        next.of.insert(id.clone(), State { revision: rule.revision, mark });
        told.extend(computed);
    }
    Evaluation { told, states: next }
}

/// How a rule stood with the client, and the instant before which nothing is new: what was seeded or comes from a backfill is judged
/// here, silently.
fn stood(judge: &Judge<'_>, rule: &Rule, states: &States, due: Timestamp, now: Timestamp) -> (Mark, Timestamp) {
    let trigger = &rule.automation.trigger;
    let stored = states.of.get(&rule.automation.id);
    let (mark, from) = match stored.filter(|state| state.revision == rule.revision && state.mark.is_of(trigger)) {
        Some(state) => (state.mark.clone(), due),
        None => {
            let as_of = rule.saved_at.clamp(states.at, now);
            let fresh = Mark::fresh(trigger, stored.map(|state| &state.mark));
            (judge.silently(trigger, fresh, as_of), as_of)
        }
    };
    if !states.silent {
        return (mark, from);
    }
    let from = from.max(due);
    (judge.silently(trigger, mark, from), from)
}

/// The first date whose doses an evaluation looks at; `None` where no rule asks for doses. It is early enough for any time zone.
pub fn reads_from(rules: &[Rule], states: &States, now: Timestamp) -> Option<NaiveDate> {
    doses_read(&considered(rules), states, now).map(|(first, _)| first)
}

/// The first date whose doses are looked at, and the longest window.
fn doses_read(considered: &[&Rule], states: &States, now: Timestamp) -> Option<(NaiveDate, u32)> {
    let window = considered.iter().filter_map(|rule| window_days(&rule.automation.trigger)).max()?;
    let is_new = |rule: &&&Rule| states.of.get(&rule.automation.id).is_none_or(|state| state.revision != rule.revision);
    let seeded_as_of = considered.iter().filter(is_new).map(|rule| rule.saved_at);
    let earliest = seeded_as_of.chain(states.due).fold(now, Timestamp::min).max(states.at);
    let first = earliest.utc().date_naive().checked_sub_signed(TimeDelta::days(i64::from(window) + 1))?;
    Some((first, window))
}

/// The dates that the doses are counted over, where the rule asks for them.
fn window_days(trigger: &Trigger) -> Option<u32> {
    match trigger {
        Trigger::ComplianceDrop { window_days, .. } | Trigger::ComplianceMilestone { window_days, .. } => {
            Some(*window_days)
        }
        Trigger::PhaseEligible => Some(PHASE_WINDOW_DAYS),
        _ => None,
    }
}

/// The active rules that a sweep judges, by id, as many of each kind as count.
fn considered(rules: &[Rule]) -> Vec<&Rule> {
    let swept = |rule: &&Rule| rule.automation.active && rule.automation.trigger.emitted().is_none();
    let mut swept: Vec<&Rule> = rules.iter().filter(swept).collect();
    swept.sort_by(|a, b| a.automation.id.cmp(&b.automation.id));
    let mut kinds: Vec<(std::mem::Discriminant<Trigger>, usize)> = Vec::new();
    swept.retain(|rule| {
        let kind = std::mem::discriminant(&rule.automation.trigger);
        let Some((_, count)) = kinds.iter_mut().find(|(known, _)| *known == kind) else {
            kinds.push((kind, 1));
            return true;
        };
        *count += 1;
        *count <= MAX_TRIGGERED
    });
    swept
}

/// What stays of automations that are not judged now: that a milestone was reached, once for ever, even by another coach's; and of those
/// that are switched off, when the last drop was told.
fn kept(states: &States, rules: &[Rule], considered: &[&Rule]) -> BTreeMap<AutomationId, State> {
    let judged = |id: &AutomationId| considered.iter().any(|rule| rule.automation.id == *id);
    let is_kept = |id: &AutomationId, mark: &Mark| match mark {
        Mark::ComplianceMilestone { reached } => *reached,
        Mark::ComplianceDrop { fired_at, .. } => {
            fired_at.is_some() && rules.iter().any(|rule| rule.automation.id == *id)
        }
        _ => false,
    };
    let kept = states.of.iter().filter(|(id, state)| !judged(id) && is_kept(id, &state.mark));
    kept.take(MAX_KEPT).map(|(id, state)| (id.clone(), state.clone())).collect()
}

/// The earlier of two instants that may not come.
fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod history;
#[cfg(test)]
mod life;
#[cfg(test)]
mod timelines;
