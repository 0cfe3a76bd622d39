//! Requests per key and calendar minute (UTC). Windows that align with the minute make the count exact across any number of
//! functions: each request adds one to its minute's counter under the condition that the counter is below the limit.

use crate::time::Timestamp;

/// Requests that a key may make in a calendar minute.
pub const REQUESTS_PER_MINUTE: u32 = 300;
/// Length of a window, in seconds.
pub const WINDOW_S: u32 = 60;

/// A calendar minute, counted from the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minute(pub i64);

impl Minute {
    /// The minute that a time falls in.
    pub fn of(at: Timestamp) -> Self {
        Self(at.unix_s().div_euclid(i64::from(WINDOW_S)))
    }
}

/// What a key has left of its current window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    pub limit: u32,
    pub remaining: u32,
    /// Whole seconds until the window ends, at least 1. After that many the next window has begun.
    pub reset_s: u32,
}

impl Quota {
    /// The quota after `used` requests in the window that `now` falls in.
    pub fn after(used: u32, now: Timestamp) -> Self {
        let into_window_ms = now.ms().rem_euclid(i64::from(WINDOW_S) * 1000);
        let left_ms = i64::from(WINDOW_S) * 1000 - into_window_ms;
        let reset_s = u32::try_from((left_ms + 999) / 1000).unwrap_or(WINDOW_S);
        Self { limit: REQUESTS_PER_MINUTE, remaining: REQUESTS_PER_MINUTE.saturating_sub(used), reset_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn waiting_reset_s_lands_in_a_later_minute_and_never_waits_a_minute_too_long(ms in 0i64..4_000_000_000_000) {
            let now = Timestamp::from_ms(ms);
            let quota = Quota::after(300, now);
            prop_assert!((1..=60).contains(&quota.reset_s));
            let later = Timestamp::from_ms(ms + i64::from(quota.reset_s) * 1000);
            prop_assert_eq!(Minute::of(later).0, Minute::of(now).0 + 1);
            prop_assert_eq!(quota.remaining, 0);
        }
    }
}
