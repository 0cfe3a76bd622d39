//! The check that both operations share.

use domain::event::EventType;
use domain::event_access::EventAccess;
use edge::Problem;

/// Refuses types that the key may not read.
pub(crate) fn check_allowed(access: &EventAccess, types: &[EventType]) -> Result<(), Problem> {
    match types.iter().find(|named| !access.types.contains(named)) {
        Some(forbidden) => Err(Problem::EventTypeNotAllowed(*forbidden)),
        None => Ok(()),
    }
}
