//! Cursors that the service has not given.

use domain::cursor::CursorList;
use domain::id::CoachId;

/// The cursor of a coach's list with a position of the caller's choice.
pub(crate) fn made_up_cursor(coach: &str, list: &str, position: &str) -> String {
    CursorList { name: list, coach: &CoachId::parse(coach).unwrap() }.cursor(position)
}

/// The position in a cursor of a coach's list.
pub(crate) fn position_of(coach: &str, list: &str, cursor: &str) -> String {
    CursorList { name: list, coach: &CoachId::parse(coach).unwrap() }.position(cursor).unwrap()
}
