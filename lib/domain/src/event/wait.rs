//! The wait of an event for its contact. The application sends a record and its contact at about the same time, and
//! facts arrive in any order.

use chrono::TimeDelta;

use crate::time::Timestamp;

/// Time for which an event waits until its contact is stored.
pub const CONTACT_WAIT: TimeDelta = TimeDelta::minutes(2);

/// Returns the seconds until the next look for the contact of an event that has waited since `since`. Each pause is as
/// long as the wait before it, so the looks are few. `None`: the event no longer waits.
pub fn next_look_s(since: Timestamp, now: Timestamp) -> Option<i32> {
    let left_ms = (since + CONTACT_WAIT).ms() - now.ms();
    let pause_s = ((now.ms() - since.ms()) / 1_000).max(1).min((left_ms + 999) / 1_000);
    i32::try_from(pause_s).ok().filter(|_| left_ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_double_and_the_last_one_ends_with_the_wait() {
        let since = Timestamp::from_ms(1_790_000_000_500);
        let (mut now, mut looks) = (since, Vec::new());
        while let Some(pause_s) = next_look_s(since, now) {
            now = now + TimeDelta::seconds(i64::from(pause_s));
            looks.push(now.unix_s() - since.unix_s());
        }
        assert_eq!(looks, [1, 2, 4, 8, 16, 32, 64, 120]);
    }

    #[rstest::rstest]
    #[case::a_clock_that_is_behind(-5_000, Some(1))]
    #[case::the_last_millisecond(119_999, Some(1))]
    #[case::the_end(120_000, None)]
    #[case::long_after(900_000, None)]
    fn a_wait_ends_after_two_minutes(#[case] waited_ms: i64, #[case] pause_s: Option<i32>) {
        let since = Timestamp::from_ms(1_790_000_000_000);
        assert_eq!(next_look_s(since, since + TimeDelta::milliseconds(waited_ms)), pause_s);
    }
}
