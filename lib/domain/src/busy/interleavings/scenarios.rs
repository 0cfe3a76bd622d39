//! Concurrent tasks: small scenarios around midnights, events of weeks, and records with several writers.

use super::Task;
use crate::busy::Busy;
use crate::busy::tests::busy;

/// The stored events, the concurrent tasks, and their possible outcomes.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) stored: Vec<Busy>,
    pub(super) tasks: Vec<Task>,
    /// The combinations of tasks that may succeed together; no others may.
    pub(super) endings: &'static [&'static [bool]],
}

const YES: bool = true;
const NO: bool = false;

pub(super) fn scenarios() -> Vec<Scenario> {
    // On either side of midnight: 15 minutes apart with a buffer of 30, and no UTC day in common.
    let late = busy("2026-07-01T23:00Z", "2026-07-01T23:50Z", 0, 30);
    let early = busy("2026-07-02T00:05Z", "2026-07-02T00:35Z", 30, 0);
    let over_midnight = busy("2026-07-01T23:30Z", "2026-07-02T00:30Z", 0, 0);
    let noon = busy("2026-07-02T12:00Z", "2026-07-02T13:00Z", 0, 0);
    let private_late = busy("2026-07-01T22:00Z", "2026-07-01T23:59Z", 0, 0);
    let weeks = busy("2026-06-01T00:00Z", "2026-07-20T00:00Z", 0, 0);
    let far_before = busy("2026-07-01T19:00Z", "2026-07-01T20:00Z", 0, 0);
    let far_buffer = busy("2026-07-02T00:00Z", "2026-07-02T01:00Z", 240, 0);
    let before_far_buffer = busy("2026-07-01T19:30Z", "2026-07-01T20:30Z", 0, 0);
    let elsewhere = busy("2026-07-04T23:10Z", "2026-07-04T23:50Z", 0, 15);
    let near_elsewhere = busy("2026-07-05T00:00Z", "2026-07-05T00:30Z", 0, 0);
    vec![
        Scenario {
            name: "two bookings either side of midnight",
            stored: vec![],
            tasks: vec![Task::Book(10, late), Task::Book(11, early)],
            endings: &[&[YES, NO], &[NO, YES]],
        },
        Scenario {
            name: "three bookings, of which the middle one is in the way of both others",
            stored: vec![],
            tasks: vec![
                Task::Book(10, private_late),
                Task::Book(11, over_midnight),
                Task::Book(12, busy("2026-07-02T00:15Z", "2026-07-02T00:45Z", 0, 0)),
            ],
            endings: &[&[YES, NO, YES], &[NO, YES, NO]],
        },
        Scenario {
            name: "the longest buffer over midnight",
            stored: vec![],
            tasks: vec![Task::Book(10, before_far_buffer), Task::Book(11, far_buffer)],
            endings: &[&[YES, NO], &[NO, YES]],
        },
        Scenario {
            name: "two bookings as far apart as the longest buffer",
            stored: vec![],
            tasks: vec![Task::Book(10, far_before), Task::Book(11, far_buffer)],
            endings: &[&[YES, YES]],
        },
        Scenario {
            name: "a booking and a private entry either side of midnight",
            stored: vec![],
            tasks: vec![Task::Book(10, early), Task::Save(11, Some(private_late))],
            endings: &[&[YES, YES], &[NO, YES]],
        },
        Scenario {
            name: "a booking and an event of weeks",
            stored: vec![],
            tasks: vec![Task::Book(10, noon), Task::Save(11, Some(weeks))],
            endings: &[&[YES, YES], &[NO, YES]],
        },
        Scenario {
            name: "a short event that becomes one of weeks, and a booking",
            stored: vec![private_late],
            tasks: vec![Task::Save(0, Some(weeks)), Task::Book(10, noon)],
            endings: &[&[YES, YES], &[YES, NO]],
        },
        Scenario {
            name: "a reschedule between two sets of days, and bookings of the old and the new time",
            stored: vec![over_midnight],
            tasks: vec![Task::Reschedule(0, elsewhere), Task::Book(10, early), Task::Book(11, near_elsewhere)],
            endings: &[&[YES, YES, NO], &[YES, NO, NO], &[NO, NO, YES]],
        },
        Scenario {
            name: "an event moved a little, on the days it has, and a booking next to it",
            stored: vec![over_midnight],
            tasks: vec![Task::Reschedule(0, early), Task::Book(10, private_late)],
            endings: &[&[YES, NO]],
        },
        Scenario {
            name: "a cancellation, a reschedule of the same event, and a booking of its time",
            stored: vec![over_midnight],
            tasks: vec![Task::Cancel(0), Task::Reschedule(0, elsewhere), Task::Book(10, early)],
            endings: &[&[YES, YES, YES], &[YES, YES, NO], &[YES, NO, YES], &[YES, NO, NO]],
        },
        Scenario {
            name: "an event that the application cancels while it is cancelled and its time booked",
            stored: vec![over_midnight],
            tasks: vec![Task::Save(0, None), Task::Cancel(0), Task::Book(10, early)],
            endings: &[&[YES, YES, YES], &[YES, YES, NO], &[YES, NO, YES], &[YES, NO, NO]],
        },
    ]
}
