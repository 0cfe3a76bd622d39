//! A comparison with `chrono-tz`: another reader, with an older release of the database, 2025b. A difference must be
//! named in the notes of a later release. Source: the release notes, <https://www.iana.org/time-zones/releases/2026f>
//! and those before it.

use chrono::{DateTime, Offset as _, TimeZone, Utc};
use chrono_tz::GapInfo;
use proptest::prelude::*;

use super::*;
use crate::tz::tests::{all_zones, zone};

/// The compared range. From 1970 on the data are maintained with care, and `chrono-tz` knows every rule until 2037.
const KNOWN_S: std::ops::Range<i64> = 0..2_145_916_800;

/// Zones that a later release corrected, with the first and the last affected date (UTC).
const CORRECTED: &[(&[&str], &str, &str)] = &[
    // 2025c: Baja California agreed with California's rules until 1975.
    (&["America/Ensenada", "America/Santa_Isabel", "America/Tijuana", "Mexico/BajaNorte"], "1970-04-26", "1975-10-26"),
    // 2026a: Moldova has changed its clocks when the EU does since 2022, an hour later.
    (&["Europe/Chisinau", "Europe/Tiraspol"], "2022-03-27", "2037-10-25"),
    // 2026b: British Columbia stays on -07.
    (&["America/Vancouver", "Canada/Pacific"], "2026-11-01", "2037-12-31"),
    // 2026c: Alberta stays on -06, and with it what was Yellowknife's zone.
    (&["America/Edmonton", "America/Yellowknife", "Canada/Mountain"], "2026-11-01", "2037-12-31"),
    // 2026c: Morocco goes to +00, and Western Sahara with it.
    (&["Africa/Casablanca", "Africa/El_Aaiun"], "2026-09-20", "2037-12-31"),
    // 2026d: Canada's Northwest Territories stay on -06.
    (&["America/Inuvik"], "2026-11-01", "2037-12-31"),
    // 2026d: Colombia sprang forward as 1992-05-02 began, not as it ended.
    (&["America/Bogota"], "1992-05-02", "1992-05-03"),
    // 2026d: so did Iran on 1979-05-26.
    (&["Asia/Tehran", "Iran"], "1979-05-25", "1979-05-26"),
    // 2026e: Manitoba stays on -05.
    (&["America/Rainy_River", "America/Winnipeg", "Canada/Central"], "2026-11-01", "2037-12-31"),
    // 2026f: Cuba does not go back to -05 for a winter.
    (&["America/Havana", "Cuba"], "2026-11-01", "2027-03-14"),
];

/// Returns the dates of a zone that a later release corrected. The days around are left out, because local times there
/// may name another instant.
fn corrected(zone: Tz) -> Option<std::ops::RangeInclusive<NaiveDate>> {
    let (_, first, last) = CORRECTED.iter().find(|(names, ..)| names.contains(&zone.name()))?;
    let day = |text: &str| text.parse::<NaiveDate>().unwrap();
    Some(day(first).pred_opt().unwrap()..=day(last).succ_opt().unwrap())
}

fn utc(unix_s: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(unix_s, 0).unwrap()
}

/// Compares the local time at an instant, and the instants of the local times around it.
fn agree(known: chrono_tz::Tz, at: DateTime<Utc>) -> Result<(), TestCaseError> {
    let zone = zone(known.name());
    let shown = at.with_timezone(&known).naive_local();
    prop_assert_eq!(local_at(zone, Timestamp::new(at)), shown, "{:?} {}", zone, at);
    // Up to the longest leap: a day.
    for minutes in [0, -1_440, -60, -30, -1, 1, 30, 60, 1_440] {
        let local = shown + TimeDelta::minutes(minutes);
        let first = known.from_local_datetime(&local).earliest().map(|at| Timestamp::new(at.to_utc()));
        prop_assert_eq!(local_start(zone, local.date(), local.time()), first, "{:?} {}", zone, local);
        let leap = || {
            let (last_shown, offset) = GapInfo::new(&local, &known)?.begin?;
            Some(Timestamp::new(last_shown.checked_sub_offset(offset.fix())?.and_utc()))
        };
        prop_assert_eq!(reached_at(zone, local), first.or_else(leap), "{:?} {}", zone, local);
    }
    Ok(())
}

/// Returns the instants from 1970 on at which a zone's offset changes, the second before each, and an instant between
/// each two.
fn changes(zone: Tz, end_s: i64) -> Vec<DateTime<Utc>> {
    let changes = zone.rules().following(jiff::Timestamp::UNIX_EPOCH).map(|change| change.timestamp().as_second());
    let mut unix_s: Vec<_> = std::iter::once(0).chain(changes.take_while(|unix_s| *unix_s < end_s)).collect();
    unix_s.push(end_s);
    let around = |two: &[i64]| [two[0], two[0].midpoint(two[1]), two[1] - 1].map(utc);
    unix_s.windows(2).flat_map(around).collect()
}

#[test]
fn both_readers_agree_around_every_change_of_every_zone() {
    for known in chrono_tz::TZ_VARIANTS {
        let corrected = corrected(zone(known.name()));
        for at in changes(zone(known.name()), KNOWN_S.end) {
            if !corrected.as_ref().is_some_and(|days| days.contains(&at.date_naive())) {
                agree(known, at).unwrap();
            }
        }
    }
}

#[test]
fn excluded_dates_are_corrected_from_the_first_to_the_last_day() {
    for name in CORRECTED.iter().flat_map(|(names, ..)| *names) {
        let known: chrono_tz::Tz = name.parse().unwrap();
        let (first, last) = corrected(zone(name)).unwrap().into_inner();
        let differs =
            |at: DateTime<Utc>| local_at(zone(name), Timestamp::new(at)) != at.with_timezone(&known).naive_local();
        let half_hours = |day: NaiveDate| {
            (0..48).map(move |half| day.and_time(NaiveTime::MIN).and_utc() + TimeDelta::minutes(half * 30))
        };
        assert!(half_hours(first.succ_opt().unwrap()).any(differs), "{name} {first}");
        assert!(half_hours(last.pred_opt().unwrap()).any(differs), "{name} {last}");
    }
}

/// Covers the rules that `chrono-tz` does not know as well: those of later releases, and years without listed changes.
#[test]
fn a_shown_time_starts_at_an_instant_that_shows_it() {
    const YEAR_2100_S: i64 = 4_102_444_800;
    for zone in all_zones() {
        for at in changes(zone, YEAR_2100_S).into_iter().map(Timestamp::new) {
            let shown = local_at(zone, at);
            let first = shown_at(zone, shown);
            assert!(
                first.is_some_and(|first| first <= at && local_at(zone, first) == shown),
                "{zone:?} {at} {first:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn both_readers_agree_at_any_instant(
        known in prop::sample::select(&chrono_tz::TZ_VARIANTS[..]), unix_s in KNOWN_S
    ) {
        let at = utc(unix_s);
        if !corrected(zone(known.name())).is_some_and(|days| days.contains(&at.date_naive())) {
            agree(known, at)?;
        }
    }
}
