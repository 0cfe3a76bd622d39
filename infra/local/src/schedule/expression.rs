//! EventBridge's schedule expressions in UTC: `rate(15 minutes)` and
//! `cron(minutes hours day-of-month month day-of-week year)`.
//!
//! Rates are aligned to their period since 1970, so that a restart does not shift them. cron's `L`, `W` and `#` are not
//! supported.

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveTime, TimeDelta, Utc};

use crate::template::TemplateError;

/// Days that the search for the next time covers. A schedule with a longer gap never fires.
const HORIZON_DAYS: u64 = 4 * 366 + 1;

/// A parsed schedule expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Rate { period_s: i64 },
    Cron(Box<Cron>),
}

/// A cron expression, each field as its allowed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cron {
    minutes: Vec<u32>,
    hours: Vec<u32>,
    days_of_month: Option<Vec<u32>>,
    months: Vec<u32>,
    days_of_week: Option<Vec<u32>>,
    years: Vec<u32>,
}

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let unsupported = || TemplateError::new(format!("has a schedule that the local stack cannot read: {text}"));
        let inner = |name: &str| text.trim().strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
        if let Some(rate) = inner("rate") {
            let (count, unit) = rate.trim().split_once(' ').ok_or_else(unsupported)?;
            let count: i64 = count.parse().ok().filter(|count| *count > 0).ok_or_else(unsupported)?;
            let unit_s = match unit.trim().trim_end_matches('s') {
                "minute" => 60,
                "hour" => 3_600,
                "day" => 86_400,
                _ => return Err(unsupported()),
            };
            return Ok(Self::Rate { period_s: count.checked_mul(unit_s).ok_or_else(unsupported)? });
        }
        let fields: Vec<&str> = inner("cron").ok_or_else(unsupported)?.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays, years] = fields.as_slice() else { return Err(unsupported()) };
        let all =
            |field: &str, from: u32, to: u32, names: &[&str]| values(field, from, to, names).ok_or_else(unsupported);
        let optional = |field: &str, from: u32, to: u32, names: &[&str]| match field {
            "?" => Ok(None),
            field => all(field, from, to, names).map(Some),
        };
        Ok(Self::Cron(Box::new(Cron {
            minutes: all(minutes, 0, 59, &[])?,
            hours: all(hours, 0, 23, &[])?,
            days_of_month: optional(days, 1, 31, &[])?,
            months: all(months, 1, 12, &MONTHS)?,
            days_of_week: optional(weekdays, 1, 7, &WEEKDAYS)?,
            years: all(years, 1970, 2199, &[])?,
        })))
    }

    /// Returns the first time after `now`, or `None` for a schedule that never fires again.
    pub(super) fn next_after(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Rate { period_s } => {
                let periods = now.timestamp().div_euclid(*period_s) + 1;
                DateTime::from_timestamp(periods.checked_mul(*period_s)?, 0)
            }
            Self::Cron(cron) => cron.next_after(now),
        }
    }
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Cron {
    fn next_after(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let from = now.timestamp().div_euclid(60).checked_add(1)?.checked_mul(60)?;
        let from = DateTime::from_timestamp(from, 0)?;
        let mut date = from.date_naive();
        let mut earliest = from.time();
        for _ in 0..HORIZON_DAYS {
            if self.matches_date(date)
                && let Some(time) = self.first_time(earliest)
            {
                return Some(date.and_time(time).and_utc());
            }
            date = date.checked_add_days(Days::new(1))?;
            earliest = NaiveTime::MIN;
        }
        None
    }

    fn matches_date(&self, date: NaiveDate) -> bool {
        let has =
            |allowed: &Option<Vec<u32>>, value: u32| allowed.as_ref().is_none_or(|allowed| allowed.contains(&value));
        u32::try_from(date.year()).is_ok_and(|year| self.years.contains(&year))
            && self.months.contains(&date.month())
            && has(&self.days_of_month, date.day())
            && has(&self.days_of_week, date.weekday().number_from_sunday())
    }

    fn first_time(&self, earliest: NaiveTime) -> Option<NaiveTime> {
        let times = self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)));
        times
            .map(|(hour, minute)| NaiveTime::MIN + TimeDelta::minutes(i64::from(hour * 60 + minute)))
            .find(|time| *time >= earliest)
    }
}

/// Parses one field to its allowed values, ascending: `*`, `5`, `1-5`, `0/15`, `MON-FRI` and lists of these.
fn values(field: &str, from: u32, to: u32, names: &[&str]) -> Option<Vec<u32>> {
    let number = |text: &str| -> Option<u32> {
        let named = names.iter().zip(from..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        named.map(|(_, value)| value).or_else(|| text.parse().ok()).filter(|value| (from..=to).contains(value))
    };
    let mut allowed = Vec::new();
    for item in field.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u32>().ok().filter(|step| *step > 0)?)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (from, to),
            Some((first, last)) => (number(first)?, number(last)?),
            None => {
                let first = number(range)?;
                (first, if step.is_some() { to } else { first })
            }
        };
        allowed.extend((first..=last).step_by(usize::try_from(step.unwrap_or(1)).ok()?));
    }
    allowed.sort_unstable();
    allowed.dedup();
    (!allowed.is_empty()).then_some(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(expression: &str, now: &str) -> Option<String> {
        let now: DateTime<Utc> = now.parse().unwrap();
        Expression::parse(expression).unwrap().next_after(now).map(|next| next.to_rfc3339())
    }

    #[rstest::rstest]
    #[case("rate(15 minutes)", "2026-02-01T10:07:00.001Z", "2026-02-01T10:15:00+00:00")]
    #[case("rate(15 minutes)", "2026-02-01T10:15:00Z", "2026-02-01T10:30:00+00:00")]
    #[case("rate(1 hour)", "2026-02-01T10:59:59.999Z", "2026-02-01T11:00:00+00:00")]
    #[case("rate(1 day)", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00+00:00")]
    #[case("cron(0 3 * * ? *)", "2026-02-01T03:00:00Z", "2026-02-02T03:00:00+00:00")]
    #[case("cron(0/20 * * * ? *)", "2026-02-01T10:20:30Z", "2026-02-01T10:40:00+00:00")]
    #[case("cron(30 8 ? * MON-FRI *)", "2026-11-20T09:00:00Z", "2026-11-23T08:30:00+00:00")]
    #[case("cron(0 0 29 FEB ? *)", "2026-11-20T09:00:00Z", "2028-02-29T00:00:00+00:00")]
    #[case("cron(0,45 1-2 1 1,7 ? 2027)", "2026-11-20T09:00:00Z", "2027-01-01T01:00:00+00:00")]
    fn the_next_time_is_strictly_later(#[case] expression: &str, #[case] now: &str, #[case] wanted: &str) {
        assert_eq!(next(expression, now).unwrap(), wanted);
    }

    #[test]
    fn a_schedule_of_the_past_never_fires() {
        assert_eq!(next("cron(0 0 1 1 ? 2020)", "2026-11-20T09:00:00Z"), None);
    }

    #[rstest::rstest]
    #[case("rate(0 minutes)")]
    #[case("rate(5 weeks)")]
    #[case("every day")]
    #[case("cron(0 3 * * ?)")]
    #[case("cron(61 3 * * ? *)")]
    #[case("cron(0 3 L * ? *)")]
    fn a_malformed_expression_is_refused(#[case] expression: &str) {
        assert!(Expression::parse(expression).is_err());
    }
}
