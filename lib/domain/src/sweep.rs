//! Evaluation of automations on computed events: the automations that a client newly matches, and the next due time.
//!
//! [`evaluate`] is edge-triggered: an event is emitted when a client starts to match, and not again while it keeps
//! matching. A match that begins and ends between two sweeps is not emitted. An evaluation before [`States::due`]
//! changes nothing unless a fact, a rule, the time zone or the programme changed meanwhile. So the sweep reads due
//! clients alone; `history` compares this with sweeps of everybody.
//!
//! The first evaluation under a revision of an automation is silent (it seeds the state), and so is every rule while
//! [`States::silent`] holds. The seven days between drops, milestones and phase entries outlive revisions.
//!
//! Rules: the table of computed events in `functions/docs/pages/events.md`.

mod days;
mod facts;
mod matching;
mod state;

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};

use crate::automation::{Automation, Trigger};
use crate::event::ComputedType;
use crate::id::AutomationId;
use crate::time::Timestamp;

use days::{Days, DosesRead, LOOK_BACK_DAYS};
pub use facts::{Facts, PhaseEntry};
pub use matching::{Computed, Rule};
use matching::{Matching, PHASE_WINDOW_DAYS};
pub use state::{Lasting, Mark, State, States};

/// Limit on a coach's evaluated automations per computed event; beyond it, those with the first ids are evaluated.
pub const MAX_SWEPT: usize = 100;
/// Most stored states of automations that are not evaluated.
const MAX_KEPT: usize = 100;

/// The result of an evaluation. Both parts are committed in one transaction, on condition that the evaluated states are
/// still stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    pub emitted: Vec<Computed>,
    pub states: States,
}

/// Evaluates an active client under its coach's active rules at `now`. `changed_at` is when a fact last marked the
/// client as due.
pub fn evaluate(
    facts: &Facts,
    rules: &[Rule],
    states: &States,
    changed_at: Option<Timestamp>,
    now: Timestamp,
) -> Evaluation {
    let considered = considered(rules);
    let matching = Matching {
        facts,
        days: Days::of(facts, doses_read(&considered, now), now),
        from: earliest(states.due, changed_at).unwrap_or(now),
        now,
    };
    let mut emitted = Vec::new();
    let lasting = lasting(states, &considered, facts, now);
    let mut next = States { lasting, ..States::default() };
    for rule in considered {
        let Rule { automation, revision } = rule;
        let last = states.of.get(&automation.id);
        let known = last.filter(|last| last.revision == *revision);
        let lasting = last.map(|last| &last.mark.lasting).or_else(|| states.lasting.get(&automation.id));
        let silent = states.silent || known.is_none();
        let mut mark = known.map_or_else(|| Mark::seed(lasting), |known| known.mark.clone());
        let started = matching.start(rule, &mut mark, silent);
        emitted.extend(started.filter(|_| !silent));
        next.due = earliest(next.due, matching.due(&automation.trigger, &mark));
        next.of.insert(automation.id.clone(), State { revision: *revision, mark });
    }
    Evaluation { emitted, states: next }
}

/// Returns the first date whose doses an evaluation reads; `None`: no rule reads doses. Early enough for any time zone.
pub fn reads_from(rules: &[Rule], now: Timestamp) -> Option<NaiveDate> {
    doses_read(&considered(rules), now).map(|read| read.first)
}

/// Returns true if these rules can match anything.
pub fn is_watched(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| is_swept(&rule.automation))
}

/// Returns true if a rule reads the phases of a client's programme.
pub fn asks_for_phases(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.automation.trigger == Trigger::PhaseEligible)
}

fn doses_read(considered: &[&Rule], now: Timestamp) -> Option<DosesRead> {
    let windows = considered.iter().filter_map(|rule| window_days(&rule.automation.trigger));
    let longest_window_days = windows.max()?;
    let days = i64::from(longest_window_days) + LOOK_BACK_DAYS + 1;
    let first = now.utc().date_naive().checked_sub_signed(TimeDelta::days(days))?;
    Some(DosesRead { first, longest_window_days })
}

/// Returns the length of the compliance window, if the rule has one.
fn window_days(trigger: &Trigger) -> Option<u32> {
    match trigger {
        Trigger::ComplianceDrop { window_days, .. } | Trigger::ComplianceMilestone { window_days, .. } => {
            Some(*window_days)
        }
        Trigger::PhaseEligible => Some(PHASE_WINDOW_DAYS),
        _ => None,
    }
}

fn is_swept(automation: &Automation) -> bool {
    automation.active && automation.trigger.computed().is_some()
}

/// Returns the active rules on computed events by id, up to [`MAX_SWEPT`] of each kind.
fn considered(rules: &[Rule]) -> Vec<&Rule> {
    let mut swept: Vec<&Rule> = rules.iter().filter(|rule| is_swept(&rule.automation)).collect();
    swept.sort_by(|a, b| a.automation.id.cmp(&b.automation.id));
    let mut counts: BTreeMap<Option<ComputedType>, usize> = BTreeMap::new();
    swept.retain(|rule| {
        let count = counts.entry(rule.automation.trigger.computed()).or_default();
        *count += 1;
        *count <= MAX_SWEPT
    });
    swept
}

/// Returns the lasting parts of the states of automations that are not evaluated now: disabled, deleted, of another
/// kind, or another coach's.
fn lasting(states: &States, considered: &[&Rule], facts: &Facts, now: Timestamp) -> BTreeMap<AutomationId, Lasting> {
    let is_evaluated = |id: &AutomationId| considered.iter().any(|rule| rule.automation.id == *id);
    let of = states.of.iter().map(|(id, state)| (id, &state.mark.lasting)).chain(&states.lasting);
    let mut kept: Vec<(&AutomationId, &Lasting)> =
        of.filter(|(id, lasting)| !is_evaluated(id) && lasting.still_counts(facts.phase.as_ref(), now)).collect();
    kept.sort_by_key(|(_, lasting)| !lasting.reached);
    kept.into_iter().take(MAX_KEPT).map(|(id, lasting)| (id.clone(), lasting.clone())).collect()
}

/// Returns the earlier of two optional instants.
fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod history;
#[cfg(test)]
mod life;
#[cfg(test)]
mod timelines;
