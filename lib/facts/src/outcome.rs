//! The result of storing a fact.

/// The result of storing a fact.
pub enum Outcome {
    /// The fact is stored, or a newer record is.
    Stored,
    /// The fact is stored so far.
    Continues(Next),
    /// The record that this field names is not stored yet.
    Unknown(&'static str),
    /// Another fact comes first, for this reason.
    Waits(&'static str),
    /// The fact is refused, for this reason.
    Refused(&'static str),
}

/// The continuation of a fact that is stored so far.
pub enum Next {
    /// The rest, from this position if given.
    Rest(Option<String>),
    /// Another pass, for what was under way or still arrives: after an erasure, or a merge that depends on other facts.
    Pass,
}
