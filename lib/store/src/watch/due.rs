//! The mark that makes a client or coach due.

use domain::time::Timestamp;

/// A mark that makes a client, or all clients of a coach, due.
#[derive(Debug, Clone, Copy)]
pub struct DueMark {
    pub now: Timestamp,
    /// The next evaluation emits nothing.
    pub silent: bool,
}
