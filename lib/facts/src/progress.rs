//! The progress of a fact.

use domain::time::Timestamp;

/// The progress of a fact that is stored in parts or passes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress<'a> {
    /// The number of passes over the fact since it was stored.
    pub passes: u32,
    /// The end of the part that is stored already.
    pub after: Option<&'a str>,
    /// The time of the call that stored the fact first.
    pub stored_at: Option<Timestamp>,
}

impl Progress<'_> {
    /// Returns true if the work neither continues nor repeats a stored fact.
    pub(crate) fn is_first(self) -> bool {
        self.passes == 0 && self.after.is_none()
    }
}
