//! Local dates, the instants at which they begin, and compliance over any window of them.

use chrono::{NaiveDate, NaiveTime, TimeDelta};

use super::facts::Facts;
use crate::compliance::{WINDOW_DAYS, compliance_pct};
use crate::time::Timestamp;
use crate::tz::Tz;
use crate::wall_clock::{date_at, reached_at};

/// Number of dates to look ahead. No window is longer. Only doses logged for future dates reach further; then the
/// client is evaluated again.
const MAX_AHEAD_DAYS: i64 = 2 * WINDOW_DAYS.max as i64;

/// Number of dates to look back for the beginning of a run. Sweeps run every 15 minutes, so only an outage hides an
/// older run. The match is then dated by the evaluation.
pub(super) const LOOK_BACK_DAYS: i64 = 7;

/// The range of doses that an evaluation reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct DosesRead {
    pub(super) first: NaiveDate,
    pub(super) longest_window_days: u32,
}

/// A local date, from its first instant to that of the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Day {
    pub(super) date: NaiveDate,
    pub(super) begins: Timestamp,
    pub(super) ends: Timestamp,
}

/// The dates of a client, with doses.
pub(super) struct Days {
    zone: Tz,
    /// The last date with a log.
    last_logged_on: Option<NaiveDate>,
    first: NaiveDate,
    /// Logged and expected doses before each date, from the first on.
    before: Vec<(u64, u64)>,
}

impl Days {
    /// Computes the days of the doses that were read, up to the last date to look ahead to.
    pub(super) fn of(facts: &Facts, read: Option<DosesRead>, now: Timestamp) -> Self {
        let today = date_at(facts.zone, now);
        let last_logged_on = facts.logged.last_logged_on();
        let first = read.map_or(today, |read| read.first);
        let mut days = Self { zone: facts.zone, last_logged_on, first, before: vec![(0, 0)] };
        let Some(DosesRead { longest_window_days, .. }) = read.filter(|_| last_logged_on.is_some()) else {
            return days;
        };
        let (last, _) = days.horizon(today, longest_window_days);
        let mut sum = (0, 0);
        for date in days.first.iter_days().take_while(|date| *date <= last) {
            sum.0 += facts.logged.counting_on(date, &facts.schedule);
            sum.1 += facts.schedule.expected_on(date);
            days.before.push(sum);
        }
        days
    }

    pub(super) fn today(&self, at: Timestamp) -> NaiveDate {
        date_at(self.zone, at)
    }

    pub(super) fn begins(&self, date: NaiveDate) -> Option<Timestamp> {
        reached_at(self.zone, date.and_time(NaiveTime::MIN))
    }

    /// Returns compliance over the window that ends with a date, in percent.
    pub(super) fn pct(&self, date: NaiveDate, window_days: u32) -> Option<u8> {
        let before = |date: NaiveDate| {
            let index = usize::try_from((date - self.first).num_days()).unwrap_or(0);
            self.before.get(index).or(self.before.last()).copied().unwrap_or_default()
        };
        let (since, until) = (date - TimeDelta::days(i64::from(window_days)) + TimeDelta::days(1), date.succ_opt()?);
        let (earlier, all) = (before(since), before(until));
        compliance_pct(all.0 - earlier.0, all.1 - earlier.1)
    }

    /// Returns the first instant of the run of dates up to today on which `holds` is true. `None`: false today, or true
    /// for longer than [`LOOK_BACK_DAYS`].
    pub(super) fn run_began(&self, now: Timestamp, holds: impl Fn(NaiveDate) -> bool) -> Option<Timestamp> {
        let today = self.today(now);
        let mut date = today;
        if !holds(date) {
            return None;
        }
        while (today - date).num_days() < LOOK_BACK_DAYS {
            let begins = self.begins(date)?;
            // The day before, or the one before that if the zone skipped it.
            let before = self.today(begins + TimeDelta::milliseconds(-1));
            if before >= date || !holds(before) {
                return Some(begins);
            }
            date = before;
        }
        None
    }

    /// Returns the first instant that `find` gives for the days from today on, as long as their windows can contain a
    /// log. Assumes that no further doses are logged.
    pub(super) fn ahead(
        &self,
        now: Timestamp,
        window_days: u32,
        find: impl Fn(Day) -> Option<Timestamp>,
    ) -> Option<Timestamp> {
        let (last, is_cut) = self.horizon(self.today(now), window_days);
        let dates = self.today(now).iter_days().take_while(|date| *date <= last);
        let days = dates.filter_map(|date| {
            let (begins, ends) = (self.begins(date)?, self.begins(date.succ_opt()?)?);
            // A date that the zone skips has no instant.
            (begins < ends).then_some(Day { date, begins, ends })
        });
        let found = days.into_iter().find_map(find);
        found.or_else(|| if is_cut { self.begins(last) } else { None })
    }

    /// Returns the last date whose window can contain a log, capped at the look-ahead, and true if it was capped.
    fn horizon(&self, today: NaiveDate, window_days: u32) -> (NaiveDate, bool) {
        let cut = today + TimeDelta::days(MAX_AHEAD_DAYS);
        let Some(last_logged_on) = self.last_logged_on else { return (today, false) };
        let last = last_logged_on.checked_add_signed(TimeDelta::days(i64::from(window_days) - 1)).unwrap_or(cut);
        if last > cut { (cut, true) } else { (last.max(today), false) }
    }
}
