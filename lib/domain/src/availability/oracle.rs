//! The rules of availability again, as slowly and plainly as they are worded. Every minute of UTC is converted to
//! wall-clock time, which is unambiguous, and every time of the day is evaluated on its own. The listed slots must
//! equal the allowed slots.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Datelike, Weekday};
use proptest::prelude::*;

use super::tests::{closed, date, days, slots_on};
use super::*;
use crate::busy::{Bucket, buckets_near_date, entry_buckets};
use crate::tz::Tz;
use crate::tz::tests::{all_zones, zone};

/// The wall-clock time of a zone at each minute of UTC around a date.
struct Clock {
    first_shown: BTreeMap<NaiveDateTime, Timestamp>,
    /// The instants of leaps, with the times before and after.
    leaps: Vec<(NaiveDateTime, NaiveDateTime, Timestamp)>,
}

/// Returns the wall-clock time of a zone at an instant, straight from the database.
fn shown(zone: Tz, at: Timestamp) -> NaiveDateTime {
    let offset = zone.rules().to_offset(jiff::Timestamp::from_second(at.unix_s()).unwrap());
    at.utc().naive_utc() + TimeDelta::seconds(i64::from(offset.seconds()))
}

impl Clock {
    fn around(zone: Tz, day: NaiveDate) -> Self {
        let midnight = Timestamp::new(day.and_time(NaiveTime::MIN).and_utc());
        let (mut first_shown, mut leaps) = (BTreeMap::new(), Vec::new());
        let mut before: Option<NaiveDateTime> = None;
        for minute in -16 * 60..(24 + 16) * 60 {
            let at = midnight + TimeDelta::minutes(minute);
            let shown = shown(zone, at);
            first_shown.entry(shown).or_insert(at);
            if let Some(before) = before.filter(|before| *before + TimeDelta::minutes(1) < shown) {
                leaps.push((before, shown, at));
            }
            before = Some(shown);
        }
        Self { first_shown, leaps }
    }

    fn closing(&self, local: NaiveDateTime) -> Timestamp {
        let leap = || self.leaps.iter().find(|(before, after, _)| *before < local && local < *after).unwrap().2;
        self.first_shown.get(&local).copied().unwrap_or_else(leap)
    }
}

fn minutes(count: u32) -> TimeDelta {
    TimeDelta::minutes(i64::from(count))
}

/// Returns every bookable time of the date, with its start instant.
fn allowed(calendar: &Calendar, day: NaiveDate, busy: &[Busy], now: Timestamp) -> Vec<(NaiveTime, Timestamp)> {
    let clock = Clock::around(calendar.time_zone, day);
    let times = (0..1_440).map(|minute| NaiveTime::from_num_seconds_from_midnight_opt(minute * 60, 0).unwrap());
    times.filter_map(|time| evaluate(&clock, calendar, day, time, busy, now).map(|start| (time, start))).collect()
}

/// Returns the opening around a minute of the day: from that minute it extends both ways while some hours contain the
/// next minute.
fn opening_around(hours: &[OpeningHours], minute: i64) -> Option<(i64, i64)> {
    let open = |from: i64, to: i64| {
        hours.iter().any(|hours| i64::from(hours.opens_min()) <= from && to < i64::from(hours.closes_min()))
    };
    let (mut first, mut last) = (minute, minute);
    while open(first - 1, first) {
        first -= 1;
    }
    while open(last, last + 1) {
        last += 1;
    }
    open(minute, minute).then_some((first, last + 1))
}

fn evaluate(
    clock: &Clock,
    calendar: &Calendar,
    day: NaiveDate,
    time: NaiveTime,
    busy: &[Busy],
    now: Timestamp,
) -> Option<Timestamp> {
    let start = *clock.first_shown.get(&day.and_time(time))?;
    let end = start + minutes(calendar.slot_minutes);
    let today = shown(calendar.time_zone, now).date();
    let day_of_horizon = (day - today).num_days() + 1;
    let weekday = match day.weekday() {
        Weekday::Sat => &calendar.weekly.sat,
        Weekday::Sun => &calendar.weekly.sun,
        _ => &calendar.weekly.mon,
    };
    let opening =
        opening_around(calendar.overrides.get(&day).unwrap_or(weekday), (time - NaiveTime::MIN).num_minutes());
    let in_hours = opening.is_some_and(|(opens, closes)| {
        let since = (time - NaiveTime::MIN).num_minutes() - opens;
        let closing = day.and_time(NaiveTime::MIN) + TimeDelta::minutes(closes);
        since % i64::from(calendar.slot_interval_minutes) == 0 && end <= clock.closing(closing)
    });
    let clear = busy.iter().all(|event| {
        let since = minutes(event.buffers.after_min.max(calendar.buffers.before_min));
        let until = minutes(calendar.buffers.after_min.max(event.buffers.before_min));
        event.span.starts_at == event.span.ends_at
            || event.span.ends_at + since <= start
            || end + until <= event.span.starts_at
    });
    let in_horizon = (1..=i64::from(calendar.horizon_days)).contains(&day_of_horizon);
    (in_horizon && in_hours && clear && start >= now + minutes(calendar.min_notice_minutes)).then_some(start)
}

/// Dates on which a zone's clocks change, one for each kind of change.
const CHANGES: &[(&str, &str)] = &[
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Pacific/Apia", "2011-12-30"),
    ("Pacific/Apia", "2011-04-02"),
    ("Pacific/Kwajalein", "1993-08-21"),
    ("Pacific/Kiritimati", "1995-01-01"),
    ("America/Sao_Paulo", "2018-02-18"),
    ("America/Sao_Paulo", "2018-11-04"),
    ("America/Havana", "2026-03-08"),
    ("America/Havana", "2025-11-02"),
    ("Asia/Gaza", "2021-03-27"),
    ("Asia/Gaza", "2021-10-29"),
    ("Africa/Cairo", "2026-04-24"),
    ("Africa/Cairo", "2026-10-30"),
    ("Asia/Kathmandu", "1986-01-01"),
    ("Pacific/Chatham", "2026-04-05"),
    ("Pacific/Chatham", "2026-09-27"),
    ("Africa/Casablanca", "2026-02-15"),
    ("Africa/Casablanca", "2026-03-22"),
    ("Antarctica/Troll", "2026-03-29"),
    ("Antarctica/Troll", "2026-10-25"),
    ("America/St_Johns", "2010-03-14"),
    ("America/St_Johns", "2010-11-07"),
    ("Asia/Pyongyang", "2015-08-15"),
    ("Asia/Pyongyang", "2018-05-05"),
    ("America/Caracas", "2016-05-01"),
    ("America/Santiago", "2026-04-05"),
    ("America/Santiago", "2026-09-06"),
    ("Atlantic/Azores", "2026-03-29"),
    ("Atlantic/Azores", "2026-10-25"),
    ("Asia/Beirut", "2026-03-29"),
    ("Asia/Beirut", "2026-10-25"),
];

/// Generates a zone with a date on or next to a clock change. If the clocks do not change that year: any date.
fn zones_and_dates() -> impl Strategy<Value = (Tz, NaiveDate)> {
    let known =
        (prop::sample::select(CHANGES), -1_i64..=1).prop_map(|((name, day), shift)| (zone(name), date(day), shift));
    let any = (prop::sample::select(all_zones()), 1_973..2_039_i32, 0..365_u64, -1_i64..=1);
    let any = any.prop_map(|(zone, year, pick, shift)| {
        let new_year = NaiveDate::from_ymd_opt(year, 1, 1).unwrap();
        let noon = |day: NaiveDate| Timestamp::new(day.and_hms_opt(12, 0, 0).unwrap().and_utc());
        let offset = |day| shown(zone, noon(day)) - noon(day).utc().naive_utc();
        let changes: Vec<NaiveDate> =
            new_year.iter_days().take(365).filter(|day| offset(*day) != offset(day.succ_opt().unwrap())).collect();
        let any = new_year + Days::new(pick);
        (zone, changes.get(pick as usize % changes.len().max(1)).copied().unwrap_or(any), shift)
    });
    prop_oneof![known, any].prop_map(|(zone, day, shift)| (zone, day + TimeDelta::days(shift)))
}

fn lengths() -> impl Strategy<Value = u32> {
    prop_oneof![4 => prop::sample::select(vec![5, 10, 15, 20, 30, 45, 50, 60, 90]), 1 => 5..=300_u32, 1 => 5..=1_440_u32]
}

fn buffers() -> impl Strategy<Value = Buffers> {
    let minutes = || prop_oneof![2 => Just(0), 2 => prop::sample::select(vec![5, 15, 30, 60]), 1 => 0..=240_u32];
    (minutes(), minutes()).prop_map(|(before_min, after_min)| Buffers { before_min, after_min })
}

fn opening_hours() -> impl Strategy<Value = OpeningHours> {
    let grid = || prop_oneof![3 => (0..=96_u16).prop_map(|quarter| quarter * 15), 1 => 0..=1_440_u16];
    let stretch = (grid(), grid()).prop_filter("hours have a length", |(a, b)| a != b);
    prop_oneof![1 => Just((0, 1_440)), 1 => Just((60, 300)), 6 => stretch].prop_map(|(a, b)| {
        let show = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        OpeningHours::parse(&show(a.min(b)), &show(a.max(b))).unwrap()
    })
}

/// Generates events within two days of a date, and some that are weeks away or weeks long. Most start and end on whole
/// minutes.
fn events(day: NaiveDate) -> impl Strategy<Value = Vec<Busy>> {
    let midnight = Timestamp::new(day.and_time(NaiveTime::MIN).and_utc());
    let quarters = |range: std::ops::Range<i64>| range.prop_map(|quarter| quarter * 15);
    let start =
        prop_oneof![8 => quarters(-30 * 4..54 * 4), 4 => -30 * 60..54 * 60_i64, 1 => -60 * 1_440..60 * 1_440_i64];
    let length = prop_oneof![1 => Just(0), 8 => quarters(1..12), 4 => 1..240_i64, 1 => 1..80 * 1_440_i64];
    let event = (start, length, prop_oneof![9 => Just(0), 1 => -1..=1_i64], buffers());
    let event = event.prop_map(move |(start, length, ms, buffers)| {
        let starts_at = midnight + TimeDelta::minutes(start) + TimeDelta::milliseconds(ms);
        Busy { span: Span { starts_at, ends_at: starts_at + TimeDelta::minutes(length) }, buffers }
    });
    prop::collection::vec(event, 0..8)
}

#[derive(Debug, Clone)]
struct Case {
    calendar: Calendar,
    day: NaiveDate,
    events: Vec<Busy>,
    now: Timestamp,
}

fn cases() -> impl Strategy<Value = Case> {
    zones_and_dates().prop_flat_map(|(zone, day)| {
        let hours = || prop::collection::vec(opening_hours(), 0..4);
        let overriding = prop::option::of(hours());
        let grid = (lengths(), lengths(), buffers());
        let ahead = (prop_oneof![3 => Just(0), 1 => 0..3_000_u32], 1..5_u32, -4 * 1_440..1_440_i64);
        (hours(), hours(), overriding, grid, ahead, events(day)).prop_map(
            move |(week, weekend, overriding, (slot_minutes, slot_interval_minutes, buffers), ahead, events)| {
                let mut calendar = Calendar { slot_minutes, slot_interval_minutes, buffers, ..closed(zone) };
                let (notice, horizon, minutes_to_day) = ahead;
                (calendar.min_notice_minutes, calendar.horizon_days) = (notice, horizon);
                for workday in ["mon", "tue", "wed", "thu", "fri"] {
                    *weekday(&mut calendar, workday) = week.clone();
                }
                for other in ["sat", "sun"] {
                    *weekday(&mut calendar, other) = weekend.clone();
                }
                calendar.overrides.extend(overriding.map(|hours| (day, hours)));
                let midnight = Timestamp::new(day.and_time(NaiveTime::MIN).and_utc());
                Case { calendar, day, events, now: midnight + TimeDelta::minutes(minutes_to_day) }
            },
        )
    })
}

fn weekday<'a>(calendar: &'a mut Calendar, name: &str) -> &'a mut Vec<OpeningHours> {
    let weekly = &mut calendar.weekly;
    match name {
        "mon" => &mut weekly.mon,
        "tue" => &mut weekly.tue,
        "wed" => &mut weekly.wed,
        "thu" => &mut weekly.thu,
        "fri" => &mut weekly.fri,
        "sat" => &mut weekly.sat,
        _ => &mut weekly.sun,
    }
}

/// Returns the events with an entry in any of these buckets.
fn entries_in(events: &[Busy], buckets: &BTreeSet<Bucket>) -> Vec<Busy> {
    let stands = |event: &&Busy| entry_buckets(event.span).iter().any(|bucket| buckets.contains(bucket));
    events.iter().filter(stands).copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_allowed_slots_are_listed(case in cases(), others in prop::collection::vec(0..1_440_u16, 8)) {
        let Case { calendar, day, events, now } = &case;
        let slots = slots_on(calendar, *day, events, *now);
        let listed: Vec<_> = slots.iter().map(|slot| (slot.time, slot.span.starts_at)).collect();
        prop_assert_eq!(&listed, &allowed(calendar, *day, events, *now));

        // The result of a booking, which reads only the buckets near its date.
        let near = entries_in(events, &BTreeSet::from_iter(buckets_near_date(*day)));
        let times = slots.iter().step_by(slots.len() / 8 + 1).map(|slot| slot.time);
        for time in times.chain(others.iter().filter_map(|minute| time_of(*minute))) {
            let slot = slots.iter().find(|slot| slot.time == time).copied();
            prop_assert_eq!(find_slot(calendar, *day, time, &near, *now), slot);
        }

        // The result of a list, which reads only the buckets of its window.
        let (first, last) = window(calendar, *now);
        prop_assert!(first <= last);
        let known = first.iter_days().take_while(|day| *day <= last).map(Bucket::Day).chain([Bucket::Long]).collect();
        let days = days(calendar, &entries_in(events, &known), *now);
        prop_assert_eq!(days.len(), calendar.horizon_days as usize);
        let most = days.iter().map(|day| {
            let starts = (0..1_440).filter(|minute| {
                let opening = opening_around(calendar.hours_on(day.date), *minute);
                opening.is_some_and(|(opens, _)| (minute - opens) % i64::from(calendar.slot_interval_minutes) == 0)
            });
            starts.count()
        });
        prop_assert_eq!(candidates(calendar, *now), most.sum::<usize>());
        for shown in days {
            let slots = slots_on(calendar, shown.date, events, *now);
            prop_assert_eq!(shown.slots, slots.iter().map(|slot| show_time(slot.time)).collect::<Vec<_>>());
        }
    }
}
