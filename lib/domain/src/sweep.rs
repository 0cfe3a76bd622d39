//! The sweep's rules: who comes to match an automation on a computed event, what is told of it, and when to look again.
//!
//! [`evaluate`] judges a client at an instant. Nothing can come to match before [`States::due`], so whoever is not due is not looked at.
//! - A fact makes its client due at the next whole minute ([`States::touch`]); what comes within a minute is judged as one. Where the
//!   client is due already, it is judged as it stood before the fact ([`States::comes_first`]): a check-in a minute after its deadline
//!   swallows nothing. So the sweeps tell what a look every minute would tell, at most a sweep's period late.
//! - An automation that is new to the client or saved anew is judged silently, as of its saving; up to then the client is judged by what it
//!   was before ([`Rule::former`]). One that is switched off or deleted tells nothing any more, not even what the client has come to match
//!   since it was last judged. That stays so when it is switched on again.
//! - [`Computed::at`] is when the client came to match, whenever that is found: it names the episode, and the seven days count from it.
//! - What came and went while nothing swept is not told; a run of matching that still holds is, with the instant at which it began.

mod days;
mod judge;
mod state;

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use crate::automation::{Automation, Trigger};
use crate::client::Measure;
use crate::dose::{DoseSchedule, DosesLogged};
use crate::id::{AutomationId, CoachId, EndpointId};
use crate::programme::ProgrammePhase;
use crate::time::Timestamp;
use crate::tz::Tz;

use days::Days;
use judge::{Judge, Span};
pub use state::{Lasting, Mark, State, States};

/// Window of the compliance that a phase asks for.
const PHASE_WINDOW_DAYS: u32 = 7;
/// Most that one evaluation tells, so that it fits a transaction. What is over waits for the next.
pub const MAX_TOLD: usize = 40;
/// Active automations of a coach on one computed event that are judged; of more, those with the first ids.
pub const MAX_SWEPT: usize = 100;
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
    /// Counts the client's entries: a phase may be left and entered again on one date.
    #[serde(default)]
    pub number: u64,
}

/// An automation, and since when it is as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub automation: Automation,
    /// Tells it from what it was before. Another revision is another rule: who matches it already is not told of.
    pub revision: Timestamp,
    /// When it was stored, as of which that is judged.
    pub saved_at: Timestamp,
    /// What it was before, oldest first, as long as a client may still have to be judged by it. A deletion leaves none.
    pub former: Vec<Former>,
}

/// What an automation was from one saving to the next. What is known of the client is the same ever since: a fact that comes after a saving
/// makes the client be judged first.
#[derive(Debug, Clone, PartialEq)]
pub struct Former {
    pub automation: Automation,
    pub revision: Timestamp,
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
    /// The endpoints that the automation's Webhook steps name.
    pub to: Vec<EndpointId>,
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

/// Judges a client by its coach's rules, the inactive ones included. A client off the active roster is left as it is. Where more is to be
/// told than fits, the states say how far each rule came, and that the client is due: the next evaluation goes on from there.
pub fn evaluate(facts: &Facts, rules: &[Rule], states: &States, now: Timestamp) -> Evaluation {
    if !facts.is_active {
        return Evaluation { told: Vec::new(), states: States { due: None, ..states.clone() } };
    }
    let now = now.max(states.at);
    let due = states.due.map_or(now, |due| due.clamp(states.at, now));
    let considered = considered(rules);
    let judge = Judge { facts, days: Days::of(facts, doses_read(&considered, states, now), now) };
    let (mut told, mut waits) = (Vec::new(), false);
    let lasting = lasting(states, rules, &considered);
    let mut next = States { at: now, due: None, silent: false, fresh: false, of: BTreeMap::new(), lasting };
    for rule in considered {
        let id = &rule.automation.id;
        let mut last = states.of.get(id).cloned();
        for revision in revisions(rule, states, now) {
            let (mark, from) = stood(&judge, &revision, last, states, due);
            if told.len() == MAX_TOLD {
                waits = true;
                last = Some(State { revision: revision.id, mark, up_to: Some(from) });
                break;
            }
            let (mark, computed) = judge.at(&revision, mark, Span { from, now: revision.ends });
            told.extend(computed);
            last = Some(State { revision: revision.id, mark, up_to: None });
        }
        if let Some(state) = last {
            next.due = earliest(next.due, judge.due(&rule.automation.trigger, &state.mark, now));
            next.of.insert(id.clone(), state);
        }
    }
    if waits {
        next.of.values_mut().for_each(|state| state.up_to = state.up_to.or(Some(now)));
        next = States { at: states.at, due: Some(due), silent: states.silent, ..next };
    }
    Evaluation { told, states: next }
}

/// An automation as it is or was, and the part of its time that the client was not judged in.
struct Revision<'a> {
    automation: &'a Automation,
    id: Timestamp,
    begins: Timestamp,
    ends: Timestamp,
    /// The one before, if the client was judged by it up to this one.
    follows: Option<Timestamp>,
}

impl Revision<'_> {
    /// Whether a client's state is of it.
    fn is_of(&self, state: &State) -> bool {
        state.revision == self.id && state.mark.trigger == self.automation.trigger
    }
}

/// What a rule was and is, oldest first, as far as the client is still to be judged by it: from the revision on that its state is of, and
/// without those that ended before the client was last judged. One that is not swept silences those before it.
fn revisions<'a>(rule: &'a Rule, states: &States, now: Timestamp) -> Vec<Revision<'a>> {
    let former = rule.former.iter().map(|former| (&former.automation, former.revision, former.saved_at));
    let saved: Vec<_> = former.chain([(&rule.automation, rule.revision, rule.saved_at)]).collect();
    let ends = saved.iter().skip(1).map(|(.., saved_at)| *saved_at).chain([now]);
    let all = ends.enumerate().map(|(number, ends)| {
        let (automation, id, saved_at) = saved[number];
        let [begins, ends] = [saved_at, ends].map(|at| at.clamp(states.at, now));
        // Who was away when it was saved comes to it anew.
        let was_there = !states.fresh || saved_at > states.at;
        let before = number.checked_sub(1).map(|before| saved[before]);
        let follows = before.filter(|(before, ..)| was_there && is_swept(before)).map(|(_, id, _)| id);
        Revision { automation, id, begins, ends, follows }
    });
    let mut all: Vec<Revision<'_>> = all.collect();
    let (state, present) = (states.of.get(&rule.automation.id), all.len() - 1);
    let over = all[..present].iter().take_while(|revision| revision.ends <= states.at).count();
    let not_swept =
        all[..present].iter().rposition(|revision| !is_swept(revision.automation)).map_or(0, |last| last + 1);
    let known = all.iter().rposition(|revision| state.is_some_and(|state| revision.is_of(state))).unwrap_or(0);
    all.split_off(over.max(not_swept).max(known))
}

/// How a revision stood with the client, and the instant before which nothing is new: what was seeded or comes from a backfill is judged
/// here, silently.
fn stood(
    judge: &Judge<'_>,
    revision: &Revision<'_>,
    last: Option<State>,
    states: &States,
    due: Timestamp,
) -> (Mark, Timestamp) {
    let trigger = &revision.automation.trigger;
    let (mark, from) = match last {
        Some(state) if revision.is_of(&state) => (state.mark, state.up_to.unwrap_or(due).max(due)),
        // Another name is no news.
        Some(State { revision: last, mark, .. }) if revision.follows == Some(last) && mark.trigger == *trigger => {
            (judge.silently(trigger, mark, revision.begins), revision.begins)
        }
        last => {
            let lasting = last.as_ref().map(|state| &state.mark.lasting);
            let lasting = lasting.or_else(|| states.lasting.get(&revision.automation.id));
            (judge.silently(trigger, Mark::fresh(trigger, lasting), revision.begins), revision.begins)
        }
    };
    if !states.silent {
        return (mark, from);
    }
    let from = from.max(due);
    if from > revision.ends { (mark, from) } else { (judge.silently(trigger, mark, from), from) }
}

/// The first date whose doses an evaluation looks at; `None` where no rule asks for doses. It is early enough for any time zone.
pub fn reads_from(rules: &[Rule], states: &States, now: Timestamp) -> Option<NaiveDate> {
    // Who was judged since is judged as of then.
    doses_read(&considered(rules), states, now.max(states.at)).map(|(first, _)| first)
}

/// The first date whose doses are looked at, and the longest window.
fn doses_read(considered: &[&Rule], states: &States, now: Timestamp) -> Option<(NaiveDate, u32)> {
    let judged: Vec<Revision<'_>> = considered.iter().flat_map(|rule| revisions(rule, states, now)).collect();
    let window = judged.iter().filter_map(|revision| window_days(&revision.automation.trigger)).max()?;
    let is_seeded =
        |revision: &&Revision<'_>| states.of.get(&revision.automation.id).is_none_or(|state| !revision.is_of(state));
    let seeded_as_of = judged.iter().filter(is_seeded).map(|revision| revision.begins);
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

/// Whether a sweep judges by an automation.
fn is_swept(automation: &Automation) -> bool {
    automation.active && automation.trigger.computed().is_some()
}

/// The active rules that a sweep judges, by id, as many of each kind as count.
fn considered(rules: &[Rule]) -> Vec<&Rule> {
    let mut swept: Vec<&Rule> = rules.iter().filter(|rule| is_swept(&rule.automation)).collect();
    swept.sort_by(|a, b| a.automation.id.cmp(&b.automation.id));
    let mut kinds: Vec<(std::mem::Discriminant<Trigger>, usize)> = Vec::new();
    swept.retain(|rule| {
        let kind = std::mem::discriminant(&rule.automation.trigger);
        let Some((_, count)) = kinds.iter_mut().find(|(known, _)| *known == kind) else {
            kinds.push((kind, 1));
            return true;
        };
        *count += 1;
        *count <= MAX_SWEPT
    });
    swept
}

/// What stays of automations that are not judged now: that a milestone was reached, and of those that the coach still has, all that lasts.
fn lasting(states: &States, rules: &[Rule], considered: &[&Rule]) -> BTreeMap<AutomationId, Lasting> {
    let is_of = |rule: &Rule, id: &AutomationId| rule.automation.id == *id;
    let is_kept = |id: &AutomationId, lasting: &Lasting| {
        let is_judged = considered.iter().any(|rule| is_of(rule, id));
        let is_listed = rules.iter().any(|rule| is_of(rule, id));
        !is_judged && (lasting.reached || (is_listed && *lasting != Lasting::default()))
    };
    let of = states.of.iter().map(|(id, state)| (id, &state.mark.lasting));
    let kept = of.chain(&states.lasting).filter(|(id, lasting)| is_kept(id, lasting));
    kept.take(MAX_KEPT).map(|(id, lasting)| (id.clone(), lasting.clone())).collect()
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
