//! The only reader of the machine's clock. All other code takes a [`Clock`] or the time.

use chrono::{DateTime, SubsecRound, Utc};

/// A source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// The current time in UTC, in whole milliseconds, the one precision of stored and rendered times.
    fn now(&self) -> DateTime<Utc>;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now().trunc_subsecs(3)
    }
}
