//! Stack time in the units that the services store and return.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use runtime::Clock;

/// The stack's clock.
#[derive(Clone)]
pub(crate) struct StackTime(Arc<dyn Clock>);

impl StackTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self(clock)
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.0.now()
    }

    /// Returns milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now().timestamp_millis()
    }
}

/// Converts a stored number of milliseconds to a time.
pub(crate) fn from_ms(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
