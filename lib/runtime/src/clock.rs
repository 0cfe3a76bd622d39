//! The one place that reads the machine's clock. Everything else is given a [`Clock`], or the time itself.

use chrono::{DateTime, SubsecRound, Utc};

/// A source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// The current time in UTC, in whole milliseconds: what is stored, rendered and compared has one precision.
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
