//! Helpers for the tests of availability, and the rules that do not concern clock changes.

use std::collections::BTreeMap;

use super::*;
use crate::busy::{Bucket, buckets_near_date, entry_buckets, guarded_buckets};
use crate::calendar::Weekly;
use crate::tz::Tz;
use crate::tz::tests::{all_zones, zone};

/// An instant `YYYY-MM-DDTHH:MMZ`.
pub(super) fn at(text: &str) -> Timestamp {
    Timestamp::parse(&text.replace('Z', ":00Z")).unwrap()
}

pub(crate) fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn time(text: &str) -> NaiveTime {
    crate::wall_clock::parse_time(text).unwrap()
}

/// Parses spans `HH:MM-HH:MM`, separated by blanks.
pub(crate) fn hours(text: &str) -> Vec<OpeningHours> {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('-').unwrap());
    pairs.map(|(opens, closes)| OpeningHours::parse(opens, closes).unwrap()).collect()
}

/// A calendar without opening hours, with the longest horizon and hourly slots.
pub(crate) fn closed(zone: Tz) -> Calendar {
    Calendar {
        id: CalendarId::parse("0197a6a0-5c3b-7000-8000-2f1d3c4b5a69").unwrap(),
        name: "Consultation".to_owned(),
        time_zone: zone,
        price_cents: 0,
        currency: "EUR".to_owned(),
        booking_url: "https://book.example/c".to_owned(),
        active: true,
        slot_minutes: 60,
        slot_interval_minutes: 60,
        buffers: Buffers::default(),
        min_notice_minutes: 0,
        horizon_days: 400,
        weekly: Weekly::default(),
        overrides: BTreeMap::new(),
    }
}

/// A calendar like [`closed`], but open every day.
fn open(zone: Tz, daily: &str) -> Calendar {
    let daily = hours(daily);
    let weekly = Weekly {
        mon: daily.clone(),
        tue: daily.clone(),
        wed: daily.clone(),
        thu: daily.clone(),
        fri: daily.clone(),
        sat: daily.clone(),
        sun: daily,
    };
    Calendar { weekly, ..closed(zone) }
}

/// Returns the slots of a date.
pub(super) fn slots_on(calendar: &Calendar, date: NaiveDate, busy: &[Busy], now: Timestamp) -> Vec<Slot> {
    Offer::new(calendar, busy, now).slots_on(date)
}

/// Returns the slots of every day of the horizon.
pub(super) fn days(calendar: &Calendar, busy: &[Busy], now: Timestamp) -> Vec<DaySlots> {
    let offer = Offer::new(calendar, busy, now);
    offer.dates().map(|date| offer.day(date)).collect()
}

#[test]
fn every_day_of_the_horizon_is_listed_and_today_in_the_zone_is_the_first() {
    let mut calendar = open(zone("Pacific/Auckland"), "10:00-12:00");
    calendar.horizon_days = 3;
    calendar.overrides.insert(date("2026-07-03"), Vec::new());
    // In Auckland (+12), the 2nd has begun.
    let days = days(&calendar, &[], at("2026-07-01T12:00Z"));
    let open = vec!["10:00".to_owned(), "11:00".to_owned()];
    let expected = [("2026-07-02", open.clone()), ("2026-07-03", Vec::new()), ("2026-07-04", open)];
    assert_eq!(days, expected.map(|(day, slots)| DaySlots { date: date(day), slots }));
    for outside in ["2026-07-01", "2026-07-05"] {
        assert_eq!(slots_on(&calendar, date(outside), &[], at("2026-07-01T12:00Z")), []);
        assert_eq!(find_slot(&calendar, date(outside), time("10:00"), &[], at("2026-07-01T12:00Z")), None);
    }
}

#[test]
fn the_window_holds_every_day_that_an_event_in_the_way_could_stand_in() {
    let mut calendar = open(zone("Pacific/Kiritimati"), "00:00-24:00");
    calendar.horizon_days = 2;
    // +14: the 2nd and the 3rd, which end on the 3rd at 10:00 UTC; 4 hours more either way.
    assert_eq!(window(&calendar, at("2026-07-01T11:00Z")), (date("2026-07-01"), date("2026-07-03")));
    assert_eq!(window(&calendar, at("2026-07-01T03:59Z")), (date("2026-06-30"), date("2026-07-02")));
    calendar.min_notice_minutes = 1_440;
    assert_eq!(window(&calendar, at("2026-07-01T11:00Z")), (date("2026-07-02"), date("2026-07-03")));
    // A notice longer than the horizon leaves nothing to book, but still a range in order.
    calendar.min_notice_minutes = 525_600;
    assert_eq!(window(&calendar, at("2026-07-01T11:00Z")), (date("2026-07-03"), date("2026-07-03")));
    // The 2nd ends in Moscow (+03) at 21:00 UTC.
    let calendar = Calendar { horizon_days: 1, ..open(zone("Europe/Moscow"), "00:00-24:00") };
    assert_eq!(window(&calendar, at("2026-07-02T11:00Z")), (date("2026-07-02"), date("2026-07-03")));
}

#[test]
fn the_buckets_near_a_date_guard_each_of_its_slots_in_every_zone() {
    let dates = ["1900-01-01", "2011-12-29", "2011-12-30", "2026-03-29", "2026-07-01", "2026-10-25", "2099-12-31"];
    for zone in all_zones() {
        for duration in [5, 1_440] {
            let mut calendar =
                Calendar { slot_minutes: duration, slot_interval_minutes: 55, ..open(zone, "00:00-24:00") };
            for day in dates.map(date) {
                let now = Timestamp::from_ms(at_midnight(day) - 4 * 86_400_000);
                // The date is the last of the horizon.
                calendar.horizon_days = (day - date_at(zone, now)).num_days() as u32 + 1;
                let reach = buckets_near_date(day);
                let (first, last) = window(&calendar, now);
                for slot in slots_on(&calendar, day, &[], now) {
                    let guarded = guarded_buckets(slot.span);
                    assert!(guarded.iter().all(|bucket| reach.contains(bucket)), "{zone:?} {day} {slot:?}");
                    let in_window = |bucket: &Bucket| match bucket {
                        Bucket::Day(day) => (first..=last).contains(day),
                        Bucket::Long => true,
                    };
                    assert!(guarded.iter().all(in_window), "{zone:?} {day} {slot:?}");
                    assert!(entry_buckets(slot.span).iter().all(|bucket| guarded.contains(bucket)));
                }
            }
        }
    }
}

fn at_midnight(day: NaiveDate) -> i64 {
    day.and_time(NaiveTime::MIN).and_utc().timestamp_millis()
}

#[test]
fn an_answer_is_too_long_above_the_limit_of_slots() {
    let day = |slots: usize| DaySlots { date: date("2026-07-01"), slots: vec!["09:00".to_owned(); slots] };
    let calendar = closed(zone("Europe/Berlin"));
    let part = |days| CalendarAvailability::new(&calendar, days);
    let answer = Availability::new(vec![part(vec![day(MAX_SLOTS - 5), day(2)]), part(vec![day(3)])]);
    assert!(!answer.is_too_long());
    let answer = Availability::new(vec![part(vec![day(MAX_SLOTS - 5), day(2)]), part(vec![day(4)])]);
    assert!(answer.is_too_long());
}

/// The openings with the most slot starts: they are adjacent, and each ends a minute after its last possible start.
fn dense() -> Calendar {
    let bounds: Vec<u32> = (0..24).map(|n| 56 * n + n / 8).chain([1_440]).collect();
    let text = |minute: &u32| format!("{:02}:{:02}", minute / 60, minute % 60);
    let daily: Vec<String> = bounds.windows(2).map(|pair| format!("{}-{}", text(&pair[0]), text(&pair[1]))).collect();
    let daily = daily.join(" ");
    Calendar { slot_minutes: 5, slot_interval_minutes: 5, ..open(zone("Europe/Berlin"), &daily) }
}

#[test]
fn a_single_calendar_never_has_too_many_candidates() {
    // 1,440 minutes in 24 openings: each opening may have one start more than its whole intervals.
    let most = (1_440 + 24 * 4) / 5 + 1;
    assert!(most * 400 < MAX_CANDIDATES);
    let counted = candidates(&dense(), at("2026-07-01T00:00Z"));
    assert!(counted > 115_200 && counted <= most * 400, "{counted}");
}

/// Sixty days of quarter-hour slots with 500 events in the way: an answer should take a few milliseconds.
fn a_busy_season() -> (Calendar, Vec<Busy>, Timestamp) {
    let calendar = Calendar {
        slot_minutes: 30,
        slot_interval_minutes: 15,
        horizon_days: 60,
        buffers: Buffers { before_min: 10, after_min: 20 },
        ..open(zone("America/New_York"), "00:00-24:00")
    };
    let now = at("2026-03-01T00:00Z");
    let events = (0..500).map(|n| {
        let starts_at = now + TimeDelta::minutes(n * 60 * 24 * 60 / 500 + n % 7);
        let buffers = Buffers { before_min: 0, after_min: (n % 30) as u32 };
        Busy { span: Span { starts_at, ends_at: starts_at + TimeDelta::minutes(45) }, buffers }
    });
    (calendar, events.collect(), now)
}

/// Prints the time; the bound holds without optimisation on a busy machine.
#[test]
fn a_season_is_computed_in_milliseconds() {
    let (calendar, events, now) = a_busy_season();
    let fastest = (0..5).map(|_| {
        let start = std::time::Instant::now();
        assert_eq!(days(&calendar, &events, now).len(), 60);
        start.elapsed()
    });
    let fastest = fastest.min().unwrap();
    println!("60 days, 500 events, 15 minutes: {fastest:?}");
    assert!(fastest < std::time::Duration::from_millis(250), "{fastest:?}");
}
