//! The result of storing a fact.

/// The result of storing a fact.
pub enum Outcome {
    /// The fact is stored.
    Stored,
    /// The fact was stored before, or what is stored is newer.
    Unchanged,
    /// The fact is stored so far.
    Continues(Next),
    /// The record that this field names is not stored yet.
    Unknown(&'static str),
    /// Another fact comes first, for this reason.
    Waits(&'static str),
    /// The fact is refused, for this reason.
    Refused(&'static str),
}

/// The reason of a wait for the end of a removal of test data.
pub(crate) const WIPING: &str = "the test data of its workspace is being removed";

/// The continuation of a fact that is stored so far.
pub enum Next {
    /// The rest, from this position if given.
    Rest(Option<String>),
    /// Another pass, for what was under way or still arrives: after an erasure, or a merge that depends on other facts.
    Pass,
}
