//! A calendar: the times at which a coach can be booked, the length and the price. Opening hours are wall-clock times
//! in the calendar's zone.

use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate, NaiveTime, Timelike, Weekday};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::CalendarId;
use crate::tz::Tz;
use crate::wall_clock::{parse_time, show_time};

/// Bounds of a slot's length and of the interval between slot starts, in minutes.
pub const SLOT_MINUTES: std::ops::RangeInclusive<u32> = 5..=1_440;

/// Longest buffer before or after a booking, in minutes.
pub const MAX_BUFFER_MINUTES: u32 = 240;

/// Longest notice for a booking, in minutes: a year.
pub const MAX_NOTICE_MINUTES: u32 = 525_600;

/// Bounds of a calendar's horizon in days, today included.
pub const HORIZON_DAYS: std::ops::RangeInclusive<u32> = 1..=400;

/// Most opening hours in a day.
pub const MAX_HOURS_A_DAY: usize = 24;

/// Most dates with hours of their own: as many as the longest horizon shows, and as many past dates.
pub const MAX_OVERRIDES: usize = 800;

/// Highest price, in cents: every JSON reader holds it exactly.
pub const MAX_PRICE_CENTS: u64 = (1 << 53) - 1;

/// A calendar that takes bookings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calendar {
    pub id: CalendarId,
    pub name: String,
    pub time_zone: Tz,
    pub price_cents: u64,
    /// ISO 4217, three upper-case letters.
    pub currency: String,
    /// The page on which a paid calendar is booked.
    pub booking_url: String,
    pub active: bool,
    /// Length of a booking, in minutes.
    pub slot_minutes: u32,
    /// Interval between slot starts.
    pub slot_interval_minutes: u32,
    pub buffers: Buffers,
    pub min_notice_minutes: u32,
    /// Days that can be booked. The first is today in the calendar's zone.
    pub horizon_days: u32,
    pub weekly: Weekly,
    /// Dates with hours of their own. No hours: closed.
    pub overrides: BTreeMap<NaiveDate, Vec<OpeningHours>>,
}

/// Time to keep free around an event, in minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Buffers {
    pub before_min: u32,
    pub after_min: u32,
}

impl Buffers {
    /// Returns the longer buffer of either side.
    #[must_use]
    pub(crate) fn longer(self, other: Self) -> Self {
        Self { before_min: self.before_min.max(other.before_min), after_min: self.after_min.max(other.after_min) }
    }
}

/// The opening hours of each weekday. An omitted day is closed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Weekly {
    #[serde(deserialize_with = "hours")]
    pub mon: Vec<OpeningHours>,
    #[serde(deserialize_with = "hours")]
    pub tue: Vec<OpeningHours>,
    #[serde(deserialize_with = "hours")]
    pub wed: Vec<OpeningHours>,
    #[serde(deserialize_with = "hours")]
    pub thu: Vec<OpeningHours>,
    #[serde(deserialize_with = "hours")]
    pub fri: Vec<OpeningHours>,
    #[serde(deserialize_with = "hours")]
    pub sat: Vec<OpeningHours>,
    #[serde(deserialize_with = "hours")]
    pub sun: Vec<OpeningHours>,
}

impl Weekly {
    pub fn on(&self, day: Weekday) -> &[OpeningHours] {
        match day {
            Weekday::Mon => &self.mon,
            Weekday::Tue => &self.tue,
            Weekday::Wed => &self.wed,
            Weekday::Thu => &self.thu,
            Weekday::Fri => &self.fri,
            Weekday::Sat => &self.sat,
            Weekday::Sun => &self.sun,
        }
    }
}

/// Reads the opening hours of a day. An empty list closes it.
pub(crate) fn hours<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<OpeningHours>, D::Error> {
    let rule = || D::Error::custom(format_args!("must be an array of at most {MAX_HOURS_A_DAY} pairs of times HH:MM"));
    let pairs = Vec::<(String, String)>::deserialize(input).map_err(|_| rule())?;
    if pairs.len() > MAX_HOURS_A_DAY {
        return Err(rule());
    }
    pairs.into_iter().map(|pair| pair.try_into().map_err(D::Error::custom)).collect()
}

const MINUTES_A_DAY: u16 = 1_440;

/// A part of a wall-clock day in which a calendar can be booked. It closes after it opens, and at the day's end at the
/// latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(String, String)", into = "(String, String)")]
pub struct OpeningHours {
    opens_min: u16,
    closes_min: u16,
}

impl OpeningHours {
    /// Parses hours from `HH:MM` to `HH:MM`. `24:00`, the start of the next date, is a closing time only.
    pub fn parse(opens: &str, closes: &str) -> Result<Self, &'static str> {
        const RULE: &str = "must be pairs of times HH:MM, opening and closing; a closing time may be 24:00";
        let opens_min = parse_time(opens).map(minute_of).ok_or(RULE)?;
        let closes_min = match closes {
            "24:00" => MINUTES_A_DAY,
            closes => parse_time(closes).map(minute_of).ok_or(RULE)?,
        };
        if opens_min < closes_min { Ok(Self { opens_min, closes_min }) } else { Err("must close after they open") }
    }

    /// Returns the opening minute of the wall-clock day.
    pub fn opens_min(self) -> u16 {
        self.opens_min
    }

    /// Returns the closing minute of the wall-clock day: at most 1440, the start of the next date.
    pub fn closes_min(self) -> u16 {
        self.closes_min
    }
}

impl TryFrom<(String, String)> for OpeningHours {
    type Error = &'static str;
    fn try_from((opens, closes): (String, String)) -> Result<Self, Self::Error> {
        Self::parse(&opens, &closes)
    }
}

impl From<OpeningHours> for (String, String) {
    fn from(hours: OpeningHours) -> Self {
        let show = |minute| time_of(minute).map_or_else(|| "24:00".to_owned(), show_time);
        (show(hours.opens_min), show(hours.closes_min))
    }
}

/// Returns the openings of a day's hours, in order. Hours that share time are one opening, from the earliest start to
/// the latest end, with one grid of slots. Adjacent hours stay two openings, each with its own grid.
pub fn merged(hours: &[OpeningHours]) -> Vec<OpeningHours> {
    let mut hours = hours.to_vec();
    hours.sort_unstable_by_key(|hours| hours.opens_min);
    let mut openings: Vec<OpeningHours> = Vec::with_capacity(hours.len());
    for next in hours {
        match openings.last_mut().filter(|last| next.opens_min < last.closes_min) {
            Some(last) => last.closes_min = last.closes_min.max(next.closes_min),
            None => openings.push(next),
        }
    }
    openings
}

fn minute_of(time: NaiveTime) -> u16 {
    (time.hour() * 60 + time.minute()) as u16
}

/// Returns the time of day at a minute of the wall-clock day. `None`: the day is over.
pub fn time_of(minute: u16) -> Option<NaiveTime> {
    NaiveTime::from_num_seconds_from_midnight_opt(u32::from(minute) * 60, 0)
}

impl Calendar {
    /// Returns the hours of a date: its own, or those of its weekday.
    pub fn hours_on(&self, date: NaiveDate) -> &[OpeningHours] {
        self.overrides.get(&date).map_or_else(|| self.weekly.on(date.weekday()), Vec::as_slice)
    }

    /// Returns true if a booking costs money. The API takes no payments.
    pub fn is_paid(&self) -> bool {
        self.price_cents > 0
    }

    pub fn view(&self) -> CalendarView {
        CalendarView {
            id: self.id,
            name: self.name.clone(),
            timezone: self.time_zone.name().to_owned(),
            price_cents: self.price_cents,
            currency: self.currency.clone(),
            booking_url: self.booking_url.clone(),
            duration_minutes: self.slot_minutes,
        }
    }
}

/// A calendar that can be booked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Calendar)]
#[serde(rename_all = "camelCase")]
pub struct CalendarView {
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
    /// Length of a booking, in minutes.
    pub duration_minutes: u32,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::availability::tests::{closed, date, hours};
    use crate::tz::tests::zone;

    proptest! {
        #[test]
        fn openings_hold_the_minutes_of_their_hours_and_part_where_no_hours_go_on(
            bounds in prop::collection::vec((0..1_440_u16, 1..600_u16), 0..12),
        ) {
            let hours = bounds.iter().map(|(opens, length)| OpeningHours {
                opens_min: *opens,
                closes_min: (opens + length).min(MINUTES_A_DAY),
            });
            let hours: Vec<OpeningHours> = hours.collect();
            let openings = merged(&hours);
            prop_assert_eq!(merged(&openings), openings.clone());
            prop_assert!(openings.windows(2).all(|pair| pair[0].closes_min <= pair[1].opens_min));
            let holds = |hours: &[OpeningHours], minutes: std::ops::RangeInclusive<u16>| {
                let holds = |one: &OpeningHours| one.opens_min <= *minutes.start() && *minutes.end() < one.closes_min;
                hours.iter().any(holds)
            };
            for minute in 0..MINUTES_A_DAY {
                prop_assert_eq!(holds(&openings, minute..=minute), holds(&hours, minute..=minute), "{}", minute);
                let next = minute..=minute + 1;
                prop_assert_eq!(holds(&openings, next.clone()), holds(&hours, next), "{} goes on", minute);
            }
        }
    }

    #[test]
    fn a_date_has_its_own_hours_or_those_of_its_weekday() {
        let mut calendar = closed(zone("UTC"));
        for (n, day) in (0..).zip([
            &mut calendar.weekly.mon,
            &mut calendar.weekly.tue,
            &mut calendar.weekly.wed,
            &mut calendar.weekly.thu,
            &mut calendar.weekly.fri,
            &mut calendar.weekly.sat,
            &mut calendar.weekly.sun,
        ]) {
            *day = hours(&format!("0{n}:00-24:00"));
        }
        calendar.overrides.insert(date("2026-11-21"), Vec::new());
        // From a Monday on.
        let opens = date("2026-11-16").iter_days().take(8).map(|day| Some(calendar.hours_on(day).first()?.opens_min()));
        assert_eq!(
            opens.collect::<Vec<_>>(),
            [Some(0), Some(60), Some(120), Some(180), Some(240), None, Some(360), Some(0)]
        );
    }

    #[test]
    fn hours_that_break_their_rules_are_not_read_back() {
        let read = |text: &str| serde_json::from_str::<OpeningHours>(text).is_ok();
        assert!(read(r#"["09:00","24:00"]"#));
        assert!(!read(r#"["09:00","09:00"]"#) && !read(r#"["24:00","24:00"]"#) && !read(r#"["9:00","10:00"]"#));
    }
}
