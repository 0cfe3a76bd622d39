//! Wall-clock time in a zone, and the instants that it names. Where a zone's clock leaps ahead, the times that it leaps over do not
//! exist (a gap); where it is set back, the times that it shows twice mean the first of the two (an overlap).

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike, Utc};
use chrono_tz::{GapInfo, Tz};

use crate::time::Timestamp;

/// The release of the IANA time zone database that all times are reckoned by.
pub const TZ_DATABASE: &str = chrono_tz::IANA_TZDB_VERSION;

/// What a time of day holds, as a sentence that begins with a field's name.
pub const TIME_RULE: &str = "must be a time of day HH:MM from 00:00 to 23:59, such as 09:30";

/// The time of day that `HH:MM` is: two digits each, 00:00 to 23:59.
pub fn parse_time(text: &str) -> Option<NaiveTime> {
    let &[h1, h2, b':', m1, m2] = text.as_bytes() else { return None };
    let two = |tens: u8, ones: u8| {
        let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
        digits.then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
    };
    NaiveTime::from_hms_opt(two(h1, h2)?, two(m1, m2)?, 0)
}

/// A time of day as `HH:MM`.
pub fn show_time(time: NaiveTime) -> String {
    // Not by `NaiveTime::format`, which reads its pattern anew each time: an answer may hold thousands of these.
    format!("{:02}:{:02}", time.hour(), time.minute())
}

/// The date that the zone's calendars show at an instant.
pub fn date_at(zone: Tz, at: Timestamp) -> NaiveDate {
    at.utc().with_timezone(&zone).date_naive()
}

/// The time of day that the zone's clocks show at an instant.
pub fn time_at(zone: Tz, at: Timestamp) -> NaiveTime {
    at.utc().with_timezone(&zone).time()
}

/// When the zone's clocks show this time of this date: the first time in an overlap, never in a gap.
pub fn local_start(zone: Tz, date: NaiveDate, time: NaiveTime) -> Option<Timestamp> {
    shown_at(zone, date.and_time(time))
}

/// When the zone's clocks have come to this time: as [`local_start`], but in a gap the instant of the leap.
pub fn reached_at(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    shown_at(zone, local).or_else(|| leap_over(zone, local))
}

fn shown_at(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    zone.from_local_datetime(&local).earliest().map(|at| Timestamp::new(at.with_timezone(&Utc)))
}

/// The instant of the leap that passes over a time.
fn leap_over(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    let (last_shown, offset) = GapInfo::new(&local, &zone)?.begin?;
    let leap = last_shown.checked_sub_offset(offset.fix())?;
    Some(Timestamp::new(DateTime::from_naive_utc_and_offset(leap, Utc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").unwrap()
    }

    #[test]
    fn the_time_zone_database_is_release_2025b() {
        assert_eq!(TZ_DATABASE, "2025b");
    }

    #[test]
    fn a_time_of_day_has_two_digits_a_colon_and_two_digits() {
        for (text, hour, minute) in [("00:00", 0, 0), ("09:05", 9, 5), ("23:59", 23, 59)] {
            let time = parse_time(text).unwrap();
            assert_eq!(time, NaiveTime::from_hms_opt(hour, minute, 0).unwrap());
            assert_eq!(show_time(time), text);
        }
        for bad in [
            "",
            "9:00",
            "24:00",
            "12:60",
            "12:5",
            "12:345",
            "12-30",
            " 9:00",
            "+9:00",
            "09:00 ",
            "٠٩:٠٠",
            "09:0\u{a0}",
            "1:2:3",
        ] {
            assert_eq!(parse_time(bad), None, "{bad:?}");
        }
    }

    #[rstest::rstest]
    #[case::plain(Tz::Europe__Berlin, "2026-07-01T12:00", Some("2026-07-01T10:00Z"), "2026-07-01T10:00Z")]
    #[case::in_a_gap(Tz::Europe__Berlin, "2026-03-29T02:30", None, "2026-03-29T01:00Z")]
    #[case::where_a_gap_begins(Tz::Europe__Berlin, "2026-03-29T02:00", None, "2026-03-29T01:00Z")]
    #[case::where_a_gap_ends(Tz::Europe__Berlin, "2026-03-29T03:00", Some("2026-03-29T01:00Z"), "2026-03-29T01:00Z")]
    #[case::in_an_overlap(Tz::Europe__Berlin, "2026-10-25T02:30", Some("2026-10-25T00:30Z"), "2026-10-25T00:30Z")]
    #[case::where_an_overlap_ends(
        Tz::Europe__Berlin,
        "2026-10-25T03:00",
        Some("2026-10-25T02:00Z"),
        "2026-10-25T02:00Z"
    )]
    #[case::in_a_skipped_day(Tz::Pacific__Apia, "2011-12-30T12:00", None, "2011-12-30T10:00Z")]
    fn a_wall_clock_time_names_an_instant(
        #[case] zone: Tz,
        #[case] at: &str,
        #[case] start: Option<&str>,
        #[case] reached: &str,
    ) {
        let at = local(at);
        let instant = |text: &str| Timestamp::parse(&text.replace('Z', ":00Z")).unwrap();
        assert_eq!(local_start(zone, at.date(), at.time()), start.map(instant));
        assert_eq!(reached_at(zone, at), Some(instant(reached)));
    }
}
