//! The result of storing a fact.

/// The result of storing a fact.
pub(crate) enum Outcome {
    /// The fact is stored, or a newer record is. `is_marked`: its mark was written with it.
    Stored { is_marked: bool },
    /// The fact is stored so far.
    Continues(Next),
    /// The fact cannot be stored yet, for this reason: a record that it refers to is unknown, or another fact comes
    /// first.
    Waits(String),
    /// The fact is refused, for this reason.
    Refused(&'static str),
}

/// The continuation of a fact that is stored so far.
pub(crate) enum Next {
    /// The rest, from this position if given.
    Rest(Option<String>),
    /// Another pass, for what was under way or still arrives: after an erasure, or a merge that depends on other facts.
    Pass,
}
