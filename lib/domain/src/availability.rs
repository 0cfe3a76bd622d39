//! The slots of a calendar that can be booked. The list and the check of a booking use one walk, so a listed slot can
//! be booked, and no other.
//!
//! 1. Slots start on a grid of wall-clock times, from each opening on. A start in a gap is left out, not moved. A start
//!    in an overlap is the first of the two. Hours that share time are one opening with one grid; adjacent hours are
//!    two openings.
//! 2. A slot lasts its minutes of real time and ends at the closing instant at the latest.
//! 3. Today in the calendar's zone is the first day of the horizon. A slot starts no sooner than the notice allows.
//! 4. A slot keeps the longer of the two facing buffers to every event of the coach.
//!
//! A moved booking starts where the grid has a slot and keeps its length. It may fit where a slot of today does not.

use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use serde::Serialize;

use crate::busy::{Busy, Span, utc_day};
use crate::calendar::{Buffers, Calendar, MAX_BUFFER_MINUTES, OpeningHours, merged, time_of};
use crate::id::CalendarId;
use crate::time::Timestamp;
use crate::wall_clock::{date_at, local_start, reached_at, show_time};

/// Most slots in an answer for all calendars.
pub const MAX_SLOTS: usize = 20_000;

/// Most slot starts that one answer evaluates. A single calendar has fewer: at most 308 a day, for 400 days.
pub const MAX_CANDIDATES: usize = 150_000;

/// A time that can be booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// On the wall clock of the calendar's zone.
    pub time: NaiveTime,
    pub span: Span,
}

/// The slots of a date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct DaySlots {
    /// In the calendar's zone.
    pub date: NaiveDate,
    /// `HH:MM` in the calendar's zone, ready to be booked.
    pub slots: Vec<String>,
}

/// A calendar with the slots of its horizon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarAvailability {
    /// Names the calendar in requests, as `calendarId`.
    pub id: CalendarId,
    /// The coach's name for the calendar.
    pub name: String,
    /// The IANA name.
    pub timezone: String,
    /// The price of a booking, in hundredths of `currency`. 0: free. The API books free calendars only.
    pub price_cents: u64,
    /// ISO 4217.
    pub currency: String,
    /// The page on which a person books, and pays if the calendar is paid.
    pub booking_url: String,
    /// Every day of the horizon, those without slots included.
    pub days: Vec<DaySlots>,
}

impl CalendarAvailability {
    pub fn new(calendar: &Calendar, days: Vec<DaySlots>) -> Self {
        Self {
            id: calendar.id,
            name: calendar.name.clone(),
            timezone: calendar.time_zone.name().to_owned(),
            price_cents: calendar.price_cents,
            currency: calendar.currency.clone(),
            booking_url: calendar.booking_url.clone(),
            days,
        }
    }
}

/// Free times. The answer reserves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Availability {
    /// Always true.
    pub ok: bool,
    /// The calendar that the request names itself or by its booking, or all active calendars.
    pub calendars: Vec<CalendarAvailability>,
}

impl Availability {
    pub fn new(calendars: Vec<CalendarAvailability>) -> Self {
        Self { ok: true, calendars }
    }

    /// Returns true if there are more slots than an answer for all calendars may have.
    pub fn is_too_long(&self) -> bool {
        let days = self.calendars.iter().flat_map(|calendar| &calendar.days);
        days.map(|day| day.slots.len()).sum::<usize>() > MAX_SLOTS
    }
}

/// Returns the slot at that date and time, if it can be booked. `busy` holds every confirmed event of the coach that
/// could conflict.
pub fn find_slot(calendar: &Calendar, date: NaiveDate, time: NaiveTime, busy: &[Busy], now: Timestamp) -> Option<Slot> {
    Offer::new(calendar, busy, now).find(date, time)
}

/// Returns the number of slot starts on the days of the horizon, free or not. Computed arithmetically, without
/// enumeration.
pub fn candidates(calendar: &Calendar, now: Timestamp) -> usize {
    let interval_min = interval_of(calendar);
    let count = |hours: &[OpeningHours]| {
        let lengths = merged(hours).into_iter().map(|hours| usize::from(hours.closes_min() - hours.opens_min()));
        lengths.map(|minutes| minutes.div_ceil(interval_min)).sum::<usize>()
    };
    Offer::new(calendar, &[], now).dates().map(|date| count(calendar.hours_on(date))).sum()
}

/// Returns the first and the last UTC day whose buckets the horizon needs, in addition to the bucket of long events.
pub fn window(calendar: &Calendar, now: Timestamp) -> (NaiveDate, NaiveDate) {
    let offer = Offer::new(calendar, &[], now);
    let buffer = TimeDelta::minutes(i64::from(MAX_BUFFER_MINUTES));
    let end = offer.last.succ_opt().unwrap_or(offer.last).and_time(NaiveTime::MIN);
    let end = reached_at(calendar.time_zone, end).unwrap_or(offer.earliest);
    let last = utc_day(end + buffer + TimeDelta::milliseconds(-1));
    (utc_day(offer.earliest + -buffer).min(last), last)
}

fn interval_of(calendar: &Calendar) -> usize {
    calendar.slot_interval_minutes.max(1) as usize
}

/// A calendar's bookable time, as seen at one instant.
pub struct Offer<'a> {
    calendar: &'a Calendar,
    blocked: Blocked,
    /// Length of the booking.
    length: TimeDelta,
    /// The first instant at which a booking may start.
    earliest: Timestamp,
    first: NaiveDate,
    last: NaiveDate,
}

impl<'a> Offer<'a> {
    /// Creates the offer of a calendar. `busy` holds every confirmed event of the coach that could conflict.
    pub fn new(calendar: &'a Calendar, busy: &[Busy], now: Timestamp) -> Self {
        let first = date_at(calendar.time_zone, now);
        let more = Days::new(u64::from(calendar.horizon_days.saturating_sub(1)));
        Self {
            calendar,
            blocked: Blocked::new(busy, calendar.buffers),
            length: TimeDelta::minutes(i64::from(calendar.slot_minutes)),
            earliest: now + TimeDelta::minutes(i64::from(calendar.min_notice_minutes)),
            first,
            last: first.checked_add_days(more).unwrap_or(NaiveDate::MAX),
        }
    }

    /// Creates the offer of a calendar for a booking that moves. The booking has that length and leaves room by its own
    /// buffers, too. `others` holds every other confirmed event of the coach that could conflict.
    pub fn to_move(
        calendar: &'a Calendar,
        length: TimeDelta,
        own_buffers: Buffers,
        others: &[Busy],
        now: Timestamp,
    ) -> Self {
        let blocked = Blocked::new(others, calendar.buffers.longer(own_buffers));
        Self { length, blocked, ..Self::new(calendar, &[], now) }
    }

    pub fn dates(&self) -> impl Iterator<Item = NaiveDate> + use<> {
        let last = self.last;
        self.first.iter_days().take_while(move |date| *date <= last)
    }

    pub fn day(&self, date: NaiveDate) -> DaySlots {
        DaySlots { date, slots: self.slots_on(date).into_iter().map(|slot| show_time(slot.time)).collect() }
    }

    /// Returns the slot at that date and time.
    pub(crate) fn find(&self, date: NaiveDate, time: NaiveTime) -> Option<Slot> {
        self.slots_on(date).into_iter().find(|slot| slot.time == time)
    }

    /// Returns the slots of a date in the calendar's zone, in order.
    fn slots_on(&self, date: NaiveDate) -> Vec<Slot> {
        if date < self.first || date > self.last {
            return Vec::new();
        }
        let openings = merged(self.calendar.hours_on(date));
        openings.into_iter().flat_map(|hours| self.slots_in(date, hours)).collect()
    }

    fn slots_in(&self, date: NaiveDate, hours: OpeningHours) -> impl Iterator<Item = Slot> {
        let zone = self.calendar.time_zone;
        let grid = (hours.opens_min()..hours.closes_min()).step_by(interval_of(self.calendar));
        let closing = reached_at(zone, wall_clock(date, hours.closes_min()));
        grid.filter_map(move |minute| {
            let time = time_of(minute)?;
            let starts_at = local_start(zone, date, time)?;
            let span = Span { starts_at, ends_at: starts_at + self.length };
            let offered = starts_at >= self.earliest && span.ends_at <= closing? && self.blocked.is_free(span);
            offered.then_some(Slot { time, span })
        })
    }
}

/// Returns a minute of a date on the wall clock. Minute 1440 is the start of the next date.
fn wall_clock(date: NaiveDate, minute: u16) -> NaiveDateTime {
    date.and_time(NaiveTime::MIN) + TimeDelta::minutes(i64::from(minute))
}

/// The time that events block: disjoint spans in order.
struct Blocked(Vec<Span>);

impl Blocked {
    fn new(busy: &[Busy], buffers: Buffers) -> Self {
        let mut blocked: Vec<Span> = busy.iter().filter_map(|event| event.blocked_for(buffers)).collect();
        blocked.sort_unstable();
        let mut merged: Vec<Span> = Vec::with_capacity(blocked.len());
        for span in blocked {
            match merged.last_mut().filter(|last| span.starts_at <= last.ends_at) {
                Some(last) => last.ends_at = last.ends_at.max(span.ends_at),
                None => merged.push(span),
            }
        }
        Self(merged)
    }

    /// Returns true if no event blocks any part of the span.
    fn is_free(&self, span: Span) -> bool {
        let next = self.0.partition_point(|blocked| blocked.ends_at <= span.starts_at);
        self.0.get(next).is_none_or(|blocked| !blocked.overlaps(span))
    }
}

#[cfg(test)]
mod dst_cases;
#[cfg(test)]
mod oracle;
#[cfg(test)]
pub(crate) mod tests;
