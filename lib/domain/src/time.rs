//! The written form of times and dates: ISO 8601, UTC, milliseconds (`2026-11-20T09:30:00.000Z`); dates `YYYY-MM-DD`.

use std::ops::RangeInclusive;

use chrono::{DateTime, NaiveDate, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The years that RFC 3339 can write, in milliseconds since the Unix epoch.
const WRITABLE_MS: RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

/// An instant, in whole milliseconds, that renders in the API's one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, utoipa::ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Creates an instant, truncated to the millisecond.
    pub fn new(at: DateTime<Utc>) -> Self {
        Self::from_ms(at.timestamp_millis())
    }

    /// Returns the instant of that many milliseconds since the Unix epoch. An instant before the year 0 or after the
    /// year 9999 could not be read back, and becomes the nearest that can.
    pub fn from_ms(ms: i64) -> Self {
        let ms = ms.clamp(*WRITABLE_MS.start(), *WRITABLE_MS.end());
        Self(DateTime::from_timestamp_millis(ms).expect("the years 0 to 9999 are in the calendar"))
    }

    /// Parses an RFC 3339 date-time of the years 0 to 9999.
    pub fn parse(text: &str) -> Option<Self> {
        let at = DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc);
        WRITABLE_MS.contains(&at.timestamp_millis()).then(|| Self::new(at))
    }

    /// Parses a time of a query, in which the `+` of an offset arrives as a blank if it was not encoded.
    pub fn parse_query(text: &str) -> Option<Self> {
        const OFFSET_BYTES: usize = "+00:00".len();
        Self::parse(text).or_else(|| {
            let (time, offset) = text.split_at_checked(text.len().checked_sub(OFFSET_BYTES)?)?;
            Self::parse(&format!("{time}+{}", offset.strip_prefix(' ')?))
        })
    }

    pub fn utc(self) -> DateTime<Utc> {
        self.0
    }

    /// Returns milliseconds since the Unix epoch.
    pub fn ms(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// Returns whole seconds since the Unix epoch, for TTL attributes and `webhook-timestamp`.
    pub fn unix_s(self) -> i64 {
        self.0.timestamp()
    }

    /// Returns this instant, or the first one after `other` if clocks differ. So a later write always has a later time.
    pub fn after(self, other: Self) -> Self {
        self.max(other + TimeDelta::milliseconds(1))
    }
}

impl std::ops::Add<TimeDelta> for Timestamp {
    type Output = Self;
    fn add(self, delta: TimeDelta) -> Self {
        Self::from_ms(self.ms().saturating_add(delta.num_milliseconds()))
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(TIME_RULE))
    }
}

/// The form of an instant as a number: milliseconds since the Unix epoch.
pub mod unix_ms {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Timestamp;

    pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(at.ms())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_ms)
    }
}

/// The rule for instants, which completes a sentence that begins with the field's name.
pub const TIME_RULE: &str = "must be an RFC 3339 date-time such as 2026-11-20T09:30:00Z";

/// The rule for dates, which completes a sentence that begins with the field's name.
pub const DATE_RULE: &str = "must be a date in the form YYYY-MM-DD";

/// Parses a date `YYYY-MM-DD`: ten ASCII characters that name a day of the calendar.
pub fn parse_date(text: &str) -> Option<NaiveDate> {
    let bytes = text.as_bytes();
    let formed = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(i, byte)| if i == 4 || i == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    if !formed {
        return None;
    }
    NaiveDate::from_ymd_opt(text[..4].parse().ok()?, text[5..7].parse().ok()?, text[8..].parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_timestamp_renders_in_utc_with_milliseconds_and_reads_back() {
        let at = Timestamp::parse("2026-03-01T12:00:00.123456+02:00").unwrap();
        assert_eq!(at.to_string(), "2026-03-01T10:00:00.123Z");
        assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        assert_eq!(Timestamp::parse("2026-03-01"), None);
    }

    #[rstest::rstest]
    #[case("2026-11-20T00:00:00+02:00", Some("2026-11-19T22:00:00.000Z"))]
    #[case("2026-11-20T00:00:00 02:00", Some("2026-11-19T22:00:00.000Z"))]
    #[case("2026-11-20T00:00:00.5 00:00", Some("2026-11-20T00:00:00.500Z"))]
    #[case("2026-11-20T00:00:00-02:00", Some("2026-11-20T02:00:00.000Z"))]
    #[case("2026-11-20T00:00:00Z", Some("2026-11-20T00:00:00.000Z"))]
    #[case("2026-11-20T00:00 00:00", None)]
    #[case("2026-11-20 00:00", None)]
    #[case("2026-11-20T00:00:00 é0:0", None)]
    #[case(" 00:00", None)]
    #[case("", None)]
    fn a_blank_in_the_offset_of_a_query_is_a_plus(#[case] text: &str, #[case] at: Option<&str>) {
        assert_eq!(Timestamp::parse_query(text).map(|at| at.to_string()).as_deref(), at);
    }

    #[test]
    fn every_computed_time_reads_back() {
        for ms in [i64::MIN, -62_167_219_200_001, -62_167_219_200_000, -1, 0, 253_402_300_799_999, 253_402_300_800_000]
        {
            let at = Timestamp::from_ms(ms);
            assert_eq!(Timestamp::parse(&at.to_string()), Some(at), "{ms}");
        }
        let last = Timestamp::parse("9999-12-31T23:59:59.999Z").unwrap();
        assert_eq!((last + TimeDelta::days(9), last.after(last)), (last, last));
    }

    proptest! {
        #[test]
        fn any_instant_is_written_in_one_width_and_reads_back(ms in WRITABLE_MS) {
            let at = Timestamp::from_ms(ms);
            prop_assert_eq!(at.to_string().len(), "0000-00-00T00:00:00.000Z".len());
            prop_assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        }

        #[test]
        fn any_text_is_refused_or_reads_back_as_itself(text in "\\PC{0,12}|[0-9]{4}-[0-9]{2}-[0-9]{2}") {
            if let Some(date) = parse_date(&text) {
                prop_assert_eq!(date.format("%Y-%m-%d").to_string(), text);
            }
        }
    }
}
