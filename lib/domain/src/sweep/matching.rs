//! The five rules: the start of a match, and the next instant at which one could start by time alone.

use chrono::{NaiveDate, TimeDelta};

use super::days::Days;
use super::facts::{Facts, PhaseEntry};
use super::state::{DROP_SPACING, Mark};
use crate::automation::{Automation, Trigger};
use crate::client::Client;
use crate::event::{
    CheckInInactivity, ComplianceCrossed, ComputedType, DailyLogInactivity, Event, EventData, PhaseEligible,
};
use crate::id::{AutomationId, CoachId, EndpointId};
use crate::time::Timestamp;

/// Window of the compliance that a phase asks for.
pub(super) const PHASE_WINDOW_DAYS: u32 = 7;

/// An automation and its revision. A change of trigger, `active` or steps makes another revision; a new name does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub automation: Automation,
    /// When this revision was stored. Unique among the automation's revisions.
    pub revision: Timestamp,
}

/// The start of a match: one computed event.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    pub coach_id: CoachId,
    pub automation_id: AutomationId,
    pub event_type: ComputedType,
    /// When the client started to match.
    pub at: Timestamp,
    /// The figures at the evaluation, with the automation.
    pub data: EventData,
    /// Identifies this match among all of this client and automation. The event's id derives from it.
    pub episode: String,
    /// The endpoints that the automation's Webhook steps name.
    pub to: Vec<EndpointId>,
}

impl Computed {
    /// Returns the event of the match, once per automation and episode, for the automation's Webhook steps. `None`:
    /// there is no such step.
    pub fn event(&self, client: &Client) -> Option<Event> {
        if self.to.is_empty() {
            return None;
        }
        let cause = [self.automation_id.as_str(), &self.episode];
        let event = Event::of(client, self.event_type, &cause, self.at, self.data.clone());
        Some(Event { coach_id: self.coach_id.clone(), to: self.to.clone(), ..event })
    }
}

/// A client's facts at the instant of an evaluation.
pub(super) struct Matching<'a> {
    pub(super) facts: &'a Facts,
    pub(super) days: Days,
    /// No match could have started before this instant. If the matching dates began earlier, a change started the
    /// match, which then has the time `now`.
    pub(super) from: Timestamp,
    pub(super) now: Timestamp,
}

/// The start of a match.
struct Started {
    at: Timestamp,
    data: EventData,
    /// Unique among the matches of one revision and client.
    episode: String,
}

/// The side of a threshold that a signal is on.
#[derive(PartialEq, Eq)]
enum Side {
    Below,
    Reached,
    /// No signal, or the client is too new for a low one to count.
    Neither,
}

impl Matching<'_> {
    /// Updates the mark, and returns the match if one starts. A silent evaluation marks a match like an emitted one.
    pub(super) fn start(&self, rule: &Rule, mark: &mut Mark, silent: bool) -> Option<Computed> {
        let Rule { automation, revision } = rule;
        // Automations on emitted events are evaluated with their cause.
        let event_type = automation.trigger.computed()?;
        let started = match automation.trigger {
            Trigger::ComplianceDrop { threshold, window_days } => {
                let at = self.drop(threshold, window_days, mark, silent)?;
                self.crossed(automation, threshold, window_days, at)
            }
            Trigger::ComplianceMilestone { threshold, window_days } => {
                let at = self.milestone(threshold, window_days, &mut mark.lasting.reached)?;
                self.crossed(automation, threshold, window_days, at)
            }
            Trigger::PhaseEligible => self.phase(automation, &mut mark.lasting.phase),
            Trigger::CheckInInactivity { days } => self.check_in(automation, days, &mut mark.check_in),
            Trigger::DailyLogInactivity { days } => self.daily_log(automation, days, &mut mark.daily_log),
            _ => None,
        }?;
        Some(Computed {
            coach_id: automation.coach_id.clone(),
            automation_id: automation.id.clone(),
            event_type,
            at: started.at,
            data: started.data,
            episode: format!("{revision}/{}", started.episode),
            to: automation.endpoints(),
        })
    }

    /// Returns the earliest later instant at which a match could start or the mark would change by time alone.
    pub(super) fn due(&self, trigger: &Trigger, mark: &Mark) -> Option<Timestamp> {
        let due = match *trigger {
            Trigger::ComplianceDrop { threshold, window_days } => self.drop_due(threshold, window_days, mark),
            Trigger::ComplianceMilestone { threshold, window_days } if !mark.lasting.reached => {
                self.first_day(window_days, |date| self.side(threshold, window_days, date) == Side::Reached)
            }
            Trigger::PhaseEligible => self.phase_due(mark.lasting.phase.as_ref()),
            Trigger::CheckInInactivity { days } => {
                self.unmarked_check_in(mark.check_in).map(|since| since + TimeDelta::days(i64::from(days)))
            }
            Trigger::DailyLogInactivity { days } => {
                self.unmarked_log(mark.daily_log).and_then(|since| self.inactive_from(since, days))
            }
            _ => None,
        };
        due.filter(|due| *due > self.now)
    }

    fn today(&self) -> NaiveDate {
        self.days.today(self.now)
    }

    /// Returns the instant if it can have started the match, else the evaluation's.
    fn dated(&self, started: Option<Timestamp>) -> Timestamp {
        started.filter(|at| *at >= self.from).unwrap_or(self.now)
    }

    // Compliance

    fn side(&self, threshold: f64, window_days: u32, date: NaiveDate) -> Side {
        // On the date of the creation, doses could not be logged for the whole day.
        let is_older = || (date - self.days.today(self.facts.created_at)).num_days() >= i64::from(window_days);
        match self.days.pct(date, window_days) {
            Some(pct) if f64::from(pct) >= threshold => Side::Reached,
            Some(_) if is_older() => Side::Below,
            _ => Side::Neither,
        }
    }

    fn crossed(&self, automation: &Automation, threshold: f64, window_days: u32, at: Timestamp) -> Option<Started> {
        let compliance_pct = self.days.pct(self.today(), window_days)?;
        let automation = automation.with_threshold(threshold);
        let data = EventData::Compliance(ComplianceCrossed { compliance_pct, automation });
        Some(Started { at, data, episode: at.to_string() })
    }

    fn drop(&self, threshold: f64, window_days: u32, mark: &mut Mark, silent: bool) -> Option<Timestamp> {
        let spaced = mark.lasting.dropped_at.map(|at| at + DROP_SPACING);
        let is_below = |date| self.side(threshold, window_days, date) == Side::Below;
        match self.side(threshold, window_days, self.today()) {
            Side::Reached => mark.below = false,
            Side::Below if silent => mark.below = true,
            Side::Below if !mark.below && spaced.is_none_or(|end| end <= self.now) => {
                let at = self.dated(self.days.run_began(self.now, is_below).max(spaced));
                (mark.below, mark.lasting.dropped_at) = (true, Some(at));
                return Some(at);
            }
            Side::Below | Side::Neither => {}
        }
        None
    }

    fn drop_due(&self, threshold: f64, window_days: u32, mark: &Mark) -> Option<Timestamp> {
        if mark.below {
            return self.first_day(window_days, |date| self.side(threshold, window_days, date) == Side::Reached);
        }
        let spaced = mark.lasting.dropped_at.map(|at| at + DROP_SPACING);
        self.days.ahead(self.now, window_days, |day| {
            let at = spaced.map_or(day.begins, |end| end.max(day.begins));
            let is_met = self.side(threshold, window_days, day.date) == Side::Below;
            (is_met && at > self.now && at < day.ends).then_some(at)
        })
    }

    fn milestone(&self, threshold: f64, window_days: u32, reached: &mut bool) -> Option<Timestamp> {
        let is_reached = |date| self.side(threshold, window_days, date) == Side::Reached;
        if *reached || !is_reached(self.today()) {
            return None;
        }
        *reached = true;
        Some(self.dated(self.days.run_began(self.now, is_reached)))
    }

    /// Returns the beginning of the first day after today on which `holds` is true.
    fn first_day(&self, window_days: u32, holds: impl Fn(NaiveDate) -> bool) -> Option<Timestamp> {
        self.days.ahead(self.now, window_days, |day| (day.begins > self.now && holds(day.date)).then_some(day.begins))
    }

    // Phases

    /// Returns the client's phase if the client may leave it and entered it after the marked entry.
    fn leavable_phase(&self, marked: Option<&PhaseEntry>) -> Option<LeavablePhase<'_>> {
        let entry = self.facts.phase.as_ref()?;
        let (_last, others) = self.facts.phases.split_last()?;
        let phase = others.iter().find(|phase| phase.name == entry.name)?;
        let ready_on = entry.started_on.checked_add_signed(TimeDelta::days(i64::from(phase.min_days)))?;
        let phase = LeavablePhase { entry, ready_on, min_compliance_pct: phase.min_compliance_pct };
        marked.is_none_or(|marked| self.is_entered_after(marked, entry)).then_some(phase)
    }

    /// Returns true for a later entry: a higher number, a later date, or further on in the programme on the same date.
    fn is_entered_after(&self, marked: &PhaseEntry, entry: &PhaseEntry) -> bool {
        let place = |entry: &PhaseEntry| {
            (entry.started_on, self.facts.phases.iter().position(|phase| phase.name == entry.name))
        };
        entry.number > marked.number || place(entry) > place(marked)
    }

    fn may_leave(&self, phase: &LeavablePhase<'_>, date: NaiveDate) -> bool {
        let pct = || self.days.pct(date, PHASE_WINDOW_DAYS).map(u32::from);
        date >= phase.ready_on && phase.min_compliance_pct.is_none_or(|least| pct().is_some_and(|pct| pct >= least))
    }

    fn phase(&self, automation: &Automation, marked: &mut Option<PhaseEntry>) -> Option<Started> {
        let phase = self.leavable_phase(marked.as_ref()).filter(|phase| self.may_leave(phase, self.today()))?;
        let at = match phase.min_compliance_pct {
            None => self.days.begins(phase.ready_on)?,
            Some(_) => self.dated(self.days.run_began(self.now, |date| self.may_leave(&phase, date))),
        };
        let entry = phase.entry.clone();
        let data = EventData::PhaseEligible(PhaseEligible {
            current_phase: entry.name.clone(),
            eligible_since: self.days.today(at),
            automation: automation.named(),
        });
        let episode = format!("{}#{}#{}", entry.started_on, entry.name, entry.number);
        *marked = Some(entry);
        Some(Started { at, data, episode })
    }

    fn phase_due(&self, marked: Option<&PhaseEntry>) -> Option<Timestamp> {
        let phase = self.leavable_phase(marked)?;
        match phase.min_compliance_pct {
            None => self.days.begins(phase.ready_on),
            Some(_) => self.first_day(PHASE_WINDOW_DAYS, |date| self.may_leave(&phase, date)),
        }
    }

    // Inactivity. Once an episode is marked, only a later record begins another. A deleted record, a late one, or a
    // creation whose date moves with the time zone does not.

    /// Returns the check-in from which inactivity counts, or the creation, unless the mark covers it.
    fn unmarked_check_in(&self, marked: Option<Timestamp>) -> Option<Timestamp> {
        let last = self.facts.last_check_in_at;
        (marked.is_none() || last > marked).then(|| last.unwrap_or(self.facts.created_at))
    }

    fn check_in(&self, automation: &Automation, days: u32, marked: &mut Option<Timestamp>) -> Option<Started> {
        let since = self.unmarked_check_in(*marked)?;
        let at = since + TimeDelta::days(i64::from(days));
        if self.now < at {
            return None;
        }
        *marked = Some(since);
        let data = EventData::CheckInInactivity(CheckInInactivity {
            last_check_in_at: self.facts.last_check_in_at,
            days_inactive: TimeDelta::milliseconds(self.now.ms() - since.ms()).num_days(),
            automation: automation.with_threshold(days.into()),
        });
        Some(Started { at, data, episode: since.to_string() })
    }

    /// Returns the date of the log from which inactivity counts, or of the creation, unless the mark covers it.
    fn unmarked_log(&self, marked: Option<NaiveDate>) -> Option<NaiveDate> {
        let last = self.facts.last_daily_log_on;
        (marked.is_none() || last > marked).then(|| last.unwrap_or_else(|| self.days.today(self.facts.created_at)))
    }

    /// Returns the first instant after that many whole local days without a log. The dates of the log and of the
    /// instant do not count.
    fn inactive_from(&self, since: NaiveDate, days: u32) -> Option<Timestamp> {
        self.days.begins(since.checked_add_signed(TimeDelta::days(i64::from(days) + 1))?)
    }

    fn daily_log(&self, automation: &Automation, days: u32, marked: &mut Option<NaiveDate>) -> Option<Started> {
        let since = self.unmarked_log(*marked)?;
        let at = self.inactive_from(since, days).filter(|at| *at <= self.now)?;
        *marked = Some(since);
        let data = EventData::DailyLogInactivity(DailyLogInactivity {
            last_logged_on: self.facts.last_daily_log_on,
            days_inactive: (self.today() - since).num_days() - 1,
            automation: automation.with_threshold(days.into()),
        });
        Some(Started { at, data, episode: since.to_string() })
    }
}

/// A phase that a client may leave.
struct LeavablePhase<'a> {
    entry: &'a PhaseEntry,
    /// The first local date after the phase's `min_days`.
    ready_on: NaiveDate,
    min_compliance_pct: Option<u32>,
}
