//! EventBridge's schedule expressions, as far as the template uses them: `rate(15 minutes)`.
//!
//! Rates are aligned to their period since 1970, so that a restart does not shift them.

use chrono::{DateTime, Utc};

use crate::template::TemplateError;

/// A period in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate(i64);

impl Rate {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let period_s = || {
            let (count, unit) = text.strip_prefix("rate(")?.strip_suffix(')')?.split_once(' ')?;
            let unit_s = match unit.trim_end_matches('s') {
                "minute" => 60,
                "hour" => 3_600,
                "day" => 86_400,
                _ => return None,
            };
            count.parse::<i64>().ok().filter(|count| *count > 0)?.checked_mul(unit_s)
        };
        let unsupported = || TemplateError::new(format!("has a schedule that the local stack cannot read: {text}"));
        period_s().map(Self).ok_or_else(unsupported)
    }

    /// Returns the first time after `now`.
    pub(super) fn next_after(self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let periods = now.timestamp().div_euclid(self.0) + 1;
        DateTime::from_timestamp(periods.checked_mul(self.0)?, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(expression: &str, now: &str) -> Option<String> {
        let now: DateTime<Utc> = now.parse().unwrap();
        Rate::parse(expression).unwrap().next_after(now).map(|next| next.to_rfc3339())
    }

    #[rstest::rstest]
    #[case("rate(15 minutes)", "2026-02-01T10:07:00.001Z", "2026-02-01T10:15:00+00:00")]
    #[case("rate(15 minutes)", "2026-02-01T10:15:00Z", "2026-02-01T10:30:00+00:00")]
    #[case("rate(1 hour)", "2026-02-01T10:59:59.999Z", "2026-02-01T11:00:00+00:00")]
    #[case("rate(1 day)", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00+00:00")]
    fn the_next_time_is_strictly_later(#[case] expression: &str, #[case] now: &str, #[case] wanted: &str) {
        assert_eq!(next(expression, now).unwrap(), wanted);
    }

    #[rstest::rstest]
    #[case("rate(0 minutes)")]
    #[case("rate(5 weeks)")]
    #[case("every day")]
    #[case("cron(0 3 * * ? *)")]
    fn a_malformed_expression_is_refused(#[case] expression: &str) {
        assert!(Rate::parse(expression).is_err());
    }
}
