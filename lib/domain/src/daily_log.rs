//! The dates on which a client kept the daily log. The values stay with the application.

use std::ops::RangeInclusive;

use chrono::{Datelike, NaiveDate};
use serde::Serialize;

use crate::fields::Invalid;
use crate::id::ClientId;
use crate::time::{DATE_RULE, parse_date};

/// A client's daily-log dates, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct DailyLogDates {
    /// The client who kept the log.
    pub client_id: ClientId,
    /// The dates on which the client kept the daily log, newest first.
    pub dates: Vec<NaiveDate>,
    /// Number of items in this answer.
    pub count: usize,
    /// The first of `dates`.
    #[schema(required)]
    pub last_logged_on: Option<NaiveDate>,
}

impl DailyLogDates {
    /// Builds the answer with these dates, which are in order.
    pub fn new(client_id: ClientId, dates: Vec<NaiveDate>) -> Self {
        Self { client_id, count: dates.len(), last_logged_on: dates.first().copied(), dates }
    }
}

/// The dates that a list asks for, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    pub from: Option<NaiveDate>,
    pub to: Option<NaiveDate>,
}

impl DateRange {
    /// Parses `from` and `to`. A range that ends before it begins is empty.
    pub fn parse(from: Option<&str>, to: Option<&str>) -> Result<Self, Invalid> {
        let end = |name: &str, text: Option<&str>| {
            let parsed = text.map(|text| parse_date(text).ok_or_else(|| Invalid::field(name, DATE_RULE)));
            parsed.transpose()
        };
        Ok(Self { from: end("from", from)?, to: end("to", to)? })
    }

    pub fn contains(&self, date: NaiveDate) -> bool {
        self.from.is_none_or(|from| from <= date) && self.to.is_none_or(|to| date <= to)
    }

    pub fn years(&self) -> RangeInclusive<i32> {
        self.from.map_or(MIN_YEAR, |from| from.year())..=self.to.map_or(MAX_YEAR, |to| to.year())
    }
}

const MIN_YEAR: i32 = 0;
const MAX_YEAR: i32 = 9999;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[rstest::rstest]
    #[case("2026-11-20", true)]
    #[case("2028-02-29", true)]
    #[case("2000-02-29", true)]
    #[case("2027-02-29", false)]
    #[case("1900-02-29", false)]
    #[case("2026-13-01", false)]
    #[case("2026-1-05", false)]
    #[case("2026-01-05T00:00:00Z", false)]
    #[case("20260105", false)]
    #[case("2026-01-05 ", false)]
    #[case("+026-01-05", false)]
    #[case("２026-01-05", false)]
    #[case("", false)]
    fn a_date_is_ten_characters_that_name_a_day(#[case] text: &str, #[case] is_date: bool) {
        assert_eq!(parse_date(text).is_some(), is_date);
        let range = DateRange::parse(None, Some(text));
        assert_eq!(range.is_ok(), is_date);
        if let Err(invalid) = range {
            assert_eq!(invalid.field.as_deref(), Some("to"));
        }
    }

    proptest! {
        #[test]
        fn a_range_includes_both_ends_and_holds_nothing_when_reversed(from in 0i64..40_000, days in -400i64..400, probe in -450i64..450) {
            let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
            let day = |n: i64| epoch + chrono::TimeDelta::days(n);
            let range = DateRange { from: Some(day(from)), to: Some(day(from + days)) };
            prop_assert_eq!(range.contains(day(from + probe)), probe >= 0 && probe <= days);
            prop_assert_eq!(range.contains(day(from)), days >= 0);
            prop_assert!(!range.contains(day(from)) || range.years().contains(&day(from).year()));
        }
    }
}
