//! Limits of a key, a signed-in coach and an endpoint per calendar minute (UTC). Windows that align with the minute
//! make the count exact across any number of functions: each request increments its minute's counters if all of them
//! are below their limits.

use crate::time::Timestamp;

pub const WINDOW_S: u32 = 60;

/// A limit per calendar minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Requests of any kind with a key.
    Requests,
    /// Requests for a login link with a key.
    LoginLinks,
    /// Requests of a coach to the settings, over all routes.
    SettingsRequests,
    /// Test events for an endpoint.
    TestEvents,
}

/// The limits of a request.
pub const REQUEST: &[Limit] = &[Limit::Requests];
/// The limits of a request for a login link. The request counts against both, or, if one is used up, against neither.
pub const LOGIN_LINK_REQUEST: &[Limit] = &[Limit::Requests, Limit::LoginLinks];
/// The limit of a request to the settings.
pub const SETTINGS_REQUEST: &[Limit] = &[Limit::SettingsRequests];
/// The limit of a test event, first sent or repeated.
pub const TEST_EVENT: &[Limit] = &[Limit::TestEvents];

impl Limit {
    pub const ALL: [Self; 4] = [Self::Requests, Self::LoginLinks, Self::SettingsRequests, Self::TestEvents];

    /// Returns the number of allowed requests per minute.
    pub const fn per_minute(self) -> u32 {
        match self {
            Self::Requests | Self::SettingsRequests => 300,
            Self::LoginLinks => 20,
            Self::TestEvents => 10,
        }
    }

    /// Returns the name in `RateLimit-Policy` and `RateLimit`.
    pub const fn policy(self) -> &'static str {
        match self {
            Self::Requests => "default",
            Self::LoginLinks => "login-link",
            Self::SettingsRequests => "settings",
            Self::TestEvents => "test-event",
        }
    }
}

/// Returns the whole seconds to the next UTC midnight, at least 1.
pub fn seconds_to_midnight(now: Timestamp) -> u32 {
    const DAY_S: i64 = 86_400;
    u32::try_from(DAY_S - now.unix_s().rem_euclid(DAY_S)).unwrap_or(1)
}

/// A calendar minute, counted from the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minute(pub i64);

impl Minute {
    pub fn of(at: Timestamp) -> Self {
        Self(at.unix_s().div_euclid(i64::from(WINDOW_S)))
    }
}

/// The remaining quota of a limit in its current window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    pub limit: Limit,
    pub remaining: u32,
    /// Whole seconds until the window ends, at least 1. After that many seconds the next window has begun.
    pub reset_s: u32,
}

impl Quota {
    /// Returns the quota after `used` requests in the window of `now`.
    pub fn after(limit: Limit, used: u32, now: Timestamp) -> Self {
        let into_window_ms = now.ms().rem_euclid(i64::from(WINDOW_S) * 1000);
        let left_ms = i64::from(WINDOW_S) * 1000 - into_window_ms;
        let reset_s = u32::try_from((left_ms + 999) / 1000).unwrap_or(WINDOW_S);
        Self { limit, remaining: limit.per_minute().saturating_sub(used), reset_s }
    }

    /// Returns the first of the quotas with nothing left.
    pub fn used_up(quotas: &[Self]) -> Option<Self> {
        quotas.iter().find(|quota| quota.remaining == 0).copied()
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
            for limit in Limit::ALL {
                let quota = Quota::after(limit, limit.per_minute(), now);
                prop_assert!((1..=60).contains(&quota.reset_s));
                let later = Timestamp::from_ms(ms + i64::from(quota.reset_s) * 1000);
                prop_assert_eq!(Minute::of(later).0, Minute::of(now).0 + 1);
                prop_assert_eq!(quota.remaining, 0);
                prop_assert_eq!(Quota::after(limit, 1, now).remaining, limit.per_minute() - 1);
            }
        }
    }
}
