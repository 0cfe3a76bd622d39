//! The `occurred_at` of a fact, to the nanosecond.
//!
//! The later of two facts about one record wins, and applications write microseconds or nanoseconds: two facts of one
//! millisecond have an order. The API itself shows and sets milliseconds ([`Timestamp`]).

use std::fmt;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::{TIME_RULE, Timestamp};

const NS_PER_MS: u32 = 1_000_000;

/// An instant in whole nanoseconds. Renders in one width, so rendered times sort like the instants. The default is the
/// Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactTime(DateTime<Utc>);

impl FactTime {
    /// Parses an RFC 3339 date-time of the years 0 to 9999. Digits beyond nanoseconds are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let at = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
        Timestamp::parse(text)?;
        // A leap second counts as the next second, since chrono's calendar has no place for it.
        let nanos = i64::from(at.timestamp_subsec_nanos());
        DateTime::from_timestamp(at.timestamp(), 0).map(|second| Self(second + TimeDelta::nanoseconds(nanos)))
    }

    /// Returns the instant of that many milliseconds since the Unix epoch, with the bounds of [`Timestamp::from_ms`].
    pub fn from_ms(ms: i64) -> Self {
        Timestamp::from_ms(ms).into()
    }

    /// Returns the instant as the API shows it: digits beyond milliseconds are cut off.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::new(self.0)
    }

    pub fn ms(self) -> i64 {
        self.timestamp().ms()
    }

    /// Returns milliseconds since the Unix epoch with their fraction, as a decimal number. The instant must be after
    /// the epoch.
    pub fn decimal_ms(self) -> String {
        format!("{}.{:06}", self.ms(), self.0.timestamp_subsec_nanos() % NS_PER_MS)
    }
}

impl From<Timestamp> for FactTime {
    fn from(at: Timestamp) -> Self {
        Self(at.utc())
    }
}

impl fmt::Display for FactTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Nanos, true))
    }
}

impl Serialize for FactTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FactTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(TIME_RULE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn at(text: &str) -> FactTime {
        FactTime::parse(text).unwrap()
    }

    #[rstest::rstest]
    #[case("2026-11-20T09:30:00Z", "2026-11-20T09:30:00.000000000Z")]
    #[case("2026-11-20T09:30:00.1009Z", "2026-11-20T09:30:00.100900000Z")]
    #[case("2026-11-20T10:30:00.123456789+01:00", "2026-11-20T09:30:00.123456789Z")]
    #[case("2026-11-20T09:30:00.1234567899Z", "2026-11-20T09:30:00.123456789Z")]
    #[case("2026-11-20t09:30:00.5z", "2026-11-20T09:30:00.500000000Z")]
    #[case("2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.500000000Z")]
    #[case("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000000Z")]
    fn a_time_keeps_its_digits(#[case] text: &str, #[case] rendered: &str) {
        assert_eq!(at(text).to_string(), rendered);
        assert_eq!(at(rendered), at(text));
    }

    #[test]
    fn a_text_that_is_no_date_time_is_refused() {
        for text in ["", "2026-11-20", "2026-11-20T09:30:00", "9999-12-31T23:59:59-01:00", "10000-01-01T00:00:00Z"] {
            assert_eq!(FactTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn rendered_times_have_one_width_and_sort_up_to_the_bounds() {
        let mut times = [i64::MIN, -1, 0, i64::MAX].map(FactTime::from_ms).to_vec();
        times.insert(2, at("1969-12-31T23:59:59.999000001Z"));
        let texts: Vec<String> = times.iter().map(FactTime::to_string).collect();
        assert!(times.is_sorted() && texts.is_sorted() && texts.iter().all(|text| text.len() == 30), "{texts:?}");
    }

    proptest! {
        #[test]
        fn rendered_times_and_decimals_sort_as_the_instants_do(
            a in 0_u64..9_000_000_000_000_000_000, b in any::<u32>(), near in any::<bool>()
        ) {
            let instant = |nanos: u64| FactTime(DateTime::from_timestamp_nanos(i64::try_from(nanos).unwrap()));
            let other = if near { a + u64::from(b) % 2_000_000 } else { u64::from(b) * 2_000_000_000 };
            let (a, b) = (instant(a), instant(other));
            prop_assert_eq!(a.to_string().cmp(&b.to_string()), a.cmp(&b));
            let (whole_a, whole_b) = (a.decimal_ms(), b.decimal_ms());
            let (ms_a, fraction_a) = whole_a.split_once('.').unwrap();
            let (ms_b, fraction_b) = whole_b.split_once('.').unwrap();
            let decimal = |ms: &str, fraction: &str| (ms.parse::<i64>().unwrap(), fraction.parse::<u32>().unwrap());
            prop_assert_eq!(decimal(ms_a, fraction_a).cmp(&decimal(ms_b, fraction_b)), a.cmp(&b));
            prop_assert_eq!(serde_json::from_value::<FactTime>(json!(a)).unwrap(), a);
        }

        #[test]
        fn the_shown_time_is_never_after_the_instant(nanos in any::<i64>()) {
            let instant = FactTime(DateTime::from_timestamp_nanos(nanos));
            let shown = FactTime::from(instant.timestamp());
            prop_assert!(shown <= instant && instant < FactTime::from(instant.timestamp() + TimeDelta::milliseconds(1)));
        }
    }
}
