//! `Retry-After` (RFC 9110, 10.2.3): seconds, or an HTTP date in any of its three forms. Any other text is ignored.

use chrono::{DateTime, NaiveDateTime, TimeDelta};

use crate::time::Timestamp;

/// Least cap on a receiver's requested wait, whatever the schedule says.
const LEAST_CAP: TimeDelta = TimeDelta::hours(1);
/// After IMF-fixdate (the form of RFC 5322): RFC 850 and asctime.
const OBSOLETE_FORMS: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// Returns the wait that a receiver requests, from `now` on. `None`: unreadable, or in the past.
fn requested_wait(text: &str, now: Timestamp) -> Option<TimeDelta> {
    let text = text.trim_matches([' ', '\t']);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Any number of digits beyond 32 bits is a long time.
        let seconds = text.parse::<u32>().unwrap_or(u32::MAX);
        return Some(TimeDelta::seconds(i64::from(seconds)));
    }
    let fixdate = text.ends_with(" GMT").then(|| DateTime::parse_from_rfc2822(text).ok()).flatten();
    let obsolete = || OBSOLETE_FORMS.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let at = fixdate.map(|at| at.to_utc()).or_else(|| obsolete().map(|at| at.and_utc()))?;
    Some(at - now.utc()).filter(|wait| *wait > TimeDelta::zero())
}

/// Returns the gap before the next attempt: the scheduled one, or the receiver's requested wait if it is longer. The
/// result never exceeds an hour or the scheduled gap, whichever is longer.
pub fn lengthened(scheduled: TimeDelta, retry_after: Option<&str>, now: Timestamp) -> TimeDelta {
    let requested_wait = retry_after.and_then(|text| requested_wait(text, now)).unwrap_or_default();
    // Whole seconds, like the schedule.
    let requested_wait =
        TimeDelta::seconds(requested_wait.num_seconds() + i64::from(requested_wait.subsec_nanos() > 0));
    scheduled.max(requested_wait.min(LEAST_CAP.max(scheduled)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sunday, 6 November 1994, 08:49:37.
    fn now() -> Timestamp {
        Timestamp::parse("1994-11-06T08:49:37Z").unwrap()
    }

    #[rstest::rstest]
    #[case("0", Some(0))]
    #[case("600", Some(600))]
    #[case(" 600\t", Some(600))]
    #[case("99999999999999999999", Some(4_294_967_295))]
    #[case("Sun, 06 Nov 1994 08:50:37 GMT", Some(60))]
    #[case("Sunday, 06-Nov-94 08:50:37 GMT", Some(60))]
    #[case("Sun Nov  6 08:50:37 1994", Some(60))]
    #[case("Sun, 06 Nov 1994 08:49:37 GMT", None)]
    #[case("Sun, 06 Nov 1994 07:00:00 GMT", None)]
    #[case("Mon, 06 Nov 1994 09:00:00 GMT", None)]
    #[case("Sun, 06 Nov 1994 09:00:00 +0000", None)]
    #[case("1994-11-06T09:00:00Z", None)]
    #[case("-5", None)]
    #[case("+5", None)]
    #[case("5.5", None)]
    #[case("5s", None)]
    #[case("soon", None)]
    #[case("", None)]
    #[case("\u{663}", None)]
    fn seconds_and_dates_are_read_and_nothing_else(#[case] text: &str, #[case] seconds: Option<i64>) {
        assert_eq!(requested_wait(text, now()).map(|wait| wait.num_seconds()), seconds);
    }

    #[rstest::rstest]
    #[case(5, Some("600"), 600)]
    #[case(5, Some("3"), 5)]
    #[case(5, Some("3600"), 3_600)]
    #[case(5, Some("3601"), 3_600)]
    #[case(5, Some("99999999999999999999"), 3_600)]
    #[case(18_000, Some("7200"), 18_000)]
    #[case(18_000, Some("20000"), 18_000)]
    #[case(1_800, Some("Sun, 06 Nov 1994 09:29:37 GMT"), 2_400)]
    #[case(60, Some("-600"), 60)]
    #[case(60, None, 60)]
    fn a_gap_is_lengthened_to_the_requested_wait_up_to_an_hour_or_itself(
        #[case] scheduled: i64,
        #[case] retry_after: Option<&str>,
        #[case] gap: i64,
    ) {
        assert_eq!(lengthened(TimeDelta::seconds(scheduled), retry_after, now()), TimeDelta::seconds(gap));
    }

    proptest! {
        #[test]
        fn no_text_shortens_a_gap_or_makes_it_too_long(text in "\\PC{0,40}|[0-9]{1,30}", scheduled in 5i64..40_000) {
            let gap = lengthened(TimeDelta::seconds(scheduled), Some(&text), now()).num_seconds();
            prop_assert!(gap >= scheduled && gap <= scheduled.max(3_600));
        }
    }
}
