//! The five rules: whether a client comes to match an automation, and when it could.

use chrono::{NaiveDate, TimeDelta};

use super::days::Days;
use super::state::Mark;
use super::{Computed, Facts, Found, PHASE_WINDOW_DAYS, PhaseEntry, Revision};
use crate::automation::Trigger;
use crate::client::Measure;
use crate::time::Timestamp;

/// Between two drops that an automation tells of.
const SPACING: TimeDelta = TimeDelta::days(7);
/// How late a sweep may be and still tell what has gone since: its period, and as long again to get round.
const ON_TIME: TimeDelta = TimeDelta::minutes(30);

/// From the instant before which nothing is new to the one that is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: Timestamp,
    pub(super) now: Timestamp,
}

/// A client's facts, to be judged.
pub(super) struct Judge<'a> {
    pub(super) facts: &'a Facts,
    pub(super) days: Days,
}

/// That an automation is met: since when, and with which figures.
type Met = (Timestamp, Found);

/// On which side of a threshold there is a signal.
#[derive(PartialEq, Eq)]
enum Side {
    Below,
    Reached,
    /// No signal, or the client is not old enough for a low one to count.
    Neither,
}

impl Judge<'_> {
    /// How an automation stands at the end of the span, and what is told of it. A sweep that is on time goes through the instants at
    /// which something could change, so that nothing is lost that holds for less than its period; one that is late sees the end alone.
    pub(super) fn at(&self, revision: &Revision<'_>, mut mark: Mark, mut span: Span) -> (Mark, Option<Computed>) {
        let (trigger, now) = (&revision.automation.trigger, span.now);
        let mut met = None;
        if now < span.from {
            return (mark, None);
        }
        if now <= span.from + ON_TIME {
            let mut step = Some(span.from);
            while let Some(at) = step.filter(|at| *at < now) {
                span.from = at;
                met = self.met(trigger, &mut mark, Span { from: at, now: at }, false).or(met);
                step = self.due(trigger, &mark, at);
            }
        }
        let met = self.met(trigger, &mut mark, span, false).or(met);
        (mark, met.map(|met| computed(revision, met)))
    }

    /// How an automation stands at an instant of which nothing is told.
    pub(super) fn silently(&self, trigger: &Trigger, mut mark: Mark, at: Timestamp) -> Mark {
        self.met(trigger, &mut mark, Span { from: at, now: at }, true);
        mark
    }

    fn met(&self, trigger: &Trigger, mark: &mut Mark, span: Span, silent: bool) -> Option<Met> {
        match *trigger {
            Trigger::ComplianceDrop { threshold, window_days } => self.drop(threshold, window_days, mark, span, silent),
            Trigger::ComplianceMilestone { threshold, window_days } => {
                self.milestone(threshold, window_days, &mut mark.lasting.reached, span)
            }
            Trigger::PhaseEligible => self.phase(&mut mark.lasting.phase, span),
            Trigger::CheckInInactivity { days } => self.check_in(days, &mut mark.check_in, span),
            Trigger::DailyLogInactivity { days } => self.daily_log(days, &mut mark.daily_log, span),
            // The rest are judged when their cause comes in.
            _ => None,
        }
    }

    /// The earliest instant after now at which an automation could be met, or its mark would change.
    pub(super) fn due(&self, trigger: &Trigger, mark: &Mark, now: Timestamp) -> Option<Timestamp> {
        let due = match *trigger {
            Trigger::ComplianceDrop { threshold, window_days } => self.drop_due(threshold, window_days, mark, now),
            Trigger::ComplianceMilestone { threshold, window_days } if !mark.lasting.reached => {
                self.first_day(now, window_days, |date| self.side(threshold, window_days, date) == Side::Reached)
            }
            Trigger::PhaseEligible => self.phase_due(mark.lasting.phase.as_ref(), now),
            Trigger::CheckInInactivity { days } => {
                let (since, is_new) = self.last_check_in(mark.check_in.as_ref());
                is_new.then(|| since + TimeDelta::days(i64::from(days)))
            }
            Trigger::DailyLogInactivity { days } => {
                let (since, is_new) = self.last_log(mark.daily_log.as_ref());
                let date = since.checked_add_signed(TimeDelta::days(i64::from(days) + 1)).filter(|_| is_new);
                date.and_then(|date| self.days.begins(date))
            }
            _ => None,
        };
        due.filter(|due| *due > now)
    }

    // Compliance

    fn side(&self, threshold: f64, window_days: u32, date: NaiveDate) -> Side {
        // The creation's own date is not one that doses could be logged on in full.
        let is_older = || (date - self.days.today(self.facts.created_at)).num_days() >= i64::from(window_days);
        match self.days.pct(date, window_days) {
            Some(pct) if f64::from(pct) >= threshold => Side::Reached,
            Some(_) if is_older() => Side::Below,
            _ => Side::Neither,
        }
    }

    fn drop(&self, threshold: f64, window_days: u32, mark: &mut Mark, span: Span, silent: bool) -> Option<Met> {
        let spaced = mark.lasting.dropped_at.map(|at| at + SPACING);
        match self.side(threshold, window_days, self.days.today(span.now)) {
            Side::Reached => mark.below = false,
            Side::Below if silent => mark.below = true,
            Side::Below if !mark.below && spaced.is_none_or(|end| end <= span.now) => {
                let is_below = |date| self.side(threshold, window_days, date) == Side::Below;
                let since = self.days.held_since(span.from, span.now, is_below)?;
                let at = spaced.map_or(since, |end| end.max(since));
                (mark.below, mark.lasting.dropped_at) = (true, Some(at));
                let compliance_pct = self.days.pct(self.days.today(span.now), window_days)?;
                return Some((at, Found::ComplianceDrop { compliance_pct }));
            }
            Side::Below | Side::Neither => {}
        }
        None
    }

    fn drop_due(&self, threshold: f64, window_days: u32, mark: &Mark, now: Timestamp) -> Option<Timestamp> {
        if mark.below {
            return self.first_day(now, window_days, |date| self.side(threshold, window_days, date) == Side::Reached);
        }
        let spaced = mark.lasting.dropped_at.map(|at| at + SPACING);
        self.days.ahead(now, window_days, |day| {
            let at = spaced.map_or(day.begins, |end| end.max(day.begins));
            let is_met = self.side(threshold, window_days, day.date) == Side::Below;
            (is_met && at > now && at < day.ends).then_some(at)
        })
    }

    fn milestone(&self, threshold: f64, window_days: u32, reached: &mut bool, span: Span) -> Option<Met> {
        if *reached {
            return None;
        }
        let is_reached = |date| self.side(threshold, window_days, date) == Side::Reached;
        let at = self.days.held_since(span.from, span.now, is_reached)?;
        *reached = true;
        let compliance_pct = self.days.pct(self.days.today(span.now), window_days)?;
        Some((at, Found::ComplianceMilestone { compliance_pct }))
    }

    /// The beginning of the first day after today on which something holds.
    fn first_day(&self, now: Timestamp, window_days: u32, holds: impl Fn(NaiveDate) -> bool) -> Option<Timestamp> {
        self.days.ahead(now, window_days, |day| (day.begins > now && holds(day.date)).then_some(day.begins))
    }

    // Phases

    /// The phase that the client is in and may leave: its entry, the first date on which it can, and the compliance that it takes.
    fn leaving(&self) -> Option<(&PhaseEntry, NaiveDate, Option<u32>)> {
        let entry = self.facts.phase.as_ref()?;
        let (_last, others) = self.facts.phases.split_last()?;
        let phase = others.iter().find(|phase| phase.name == entry.name)?;
        let ready_on = entry.started_on.checked_add_signed(TimeDelta::days(i64::from(phase.min_days)))?;
        Some((entry, ready_on, phase.min_compliance_pct))
    }

    /// Whether a phase was come to after the one that was told of: on a later date, or on the same one further on in the programme.
    fn is_entered_since(&self, told: Option<&PhaseEntry>, entry: &PhaseEntry) -> bool {
        let place = |entry: &PhaseEntry| {
            (entry.started_on, self.facts.phases.iter().position(|phase| phase.name == entry.name))
        };
        told.is_none_or(|told| entry.number > told.number || place(entry) > place(told))
    }

    fn may_leave(&self, ready_on: NaiveDate, least: Option<u32>, date: NaiveDate) -> bool {
        let complies = |least| self.days.pct(date, PHASE_WINDOW_DAYS).is_some_and(|pct| u32::from(pct) >= least);
        date >= ready_on && least.is_none_or(complies)
    }

    fn phase(&self, told: &mut Option<PhaseEntry>, span: Span) -> Option<Met> {
        let (entry, ready_on, least) =
            self.leaving().filter(|(entry, ..)| self.is_entered_since(told.as_ref(), entry))?;
        let at = self.days.held_since(span.from, span.now, |date| self.may_leave(ready_on, least, date))?;
        *told = Some(entry.clone());
        let found = Found::PhaseEligible { current_phase: entry.name.clone(), eligible_since: self.days.today(at) };
        Some((at, found))
    }

    fn phase_due(&self, told: Option<&PhaseEntry>, now: Timestamp) -> Option<Timestamp> {
        let (_, ready_on, least) = self.leaving().filter(|(entry, ..)| self.is_entered_since(told, entry))?;
        match least {
            None => self.days.begins(ready_on),
            Some(_) => self.first_day(now, PHASE_WINDOW_DAYS, |date| self.may_leave(ready_on, least, date)),
        }
    }

    // Inactivity: once something was told, only a later record begins another episode. A record that is deleted or told late does not,
    // nor does a creation whose date moves with the time zone.

    fn last_check_in(&self, told: Option<&Timestamp>) -> (Timestamp, bool) {
        let last = self.facts.last_check_in_at;
        (last.unwrap_or(self.facts.created_at), told.is_none() || last.as_ref() > told)
    }

    fn check_in(&self, days: u32, told: &mut Option<Timestamp>, span: Span) -> Option<Met> {
        let (since, is_new) = self.last_check_in(told.as_ref());
        let deadline = since + TimeDelta::days(i64::from(days));
        if !is_new || span.now < deadline {
            return None;
        }
        *told = Some(since);
        let days_inactive = TimeDelta::milliseconds(span.now.ms() - since.ms()).num_days();
        let found = Found::CheckInInactivity { last_check_in_at: self.facts.last_check_in_at, days_inactive };
        Some((deadline.max(span.from), found))
    }

    fn last_log(&self, told: Option<&NaiveDate>) -> (NaiveDate, bool) {
        let last = self.facts.last_daily_log_on;
        let since = last.unwrap_or_else(|| self.days.today(self.facts.created_at));
        (since, told.is_none() || last.as_ref() > told)
    }

    fn daily_log(&self, days: u32, told: &mut Option<NaiveDate>, span: Span) -> Option<Met> {
        let (since, is_new) = self.last_log(told.as_ref());
        // Neither the date of the log nor today is a whole day without one.
        let whole_days = |date: NaiveDate| (date - since).num_days() - 1;
        if !is_new {
            return None;
        }
        let at = self.days.held_since(span.from, span.now, |date| whole_days(date) >= i64::from(days))?;
        *told = Some(since);
        let days_inactive = whole_days(self.days.today(span.now));
        let found = Found::DailyLogInactivity { last_logged_on: self.facts.last_daily_log_on, days_inactive };
        Some((at, found))
    }
}

fn computed(revision: &Revision<'_>, (at, found): Met) -> Computed {
    let automation = revision.automation;
    Computed {
        coach_id: automation.coach_id.clone(),
        automation_id: automation.id.clone(),
        name: automation.name.clone(),
        threshold: threshold(&automation.trigger),
        at,
        found,
        episode: format!("{}/{at}", revision.id),
        to: automation.endpoints(),
    }
}

/// What an automation compares with, in percent or days.
fn threshold(trigger: &Trigger) -> Option<Measure> {
    match trigger {
        Trigger::ComplianceDrop { threshold, .. } | Trigger::ComplianceMilestone { threshold, .. } => {
            Some(Measure(*threshold))
        }
        Trigger::CheckInInactivity { days } | Trigger::DailyLogInactivity { days } => Some(Measure(f64::from(*days))),
        _ => None,
    }
}
