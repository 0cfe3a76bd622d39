//! Timelines of compliance: drops, milestones, and phases that ask for it. With a dose a day, each day of seven is 14
//! percent: five are 71, four 57, three 43, two 29.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Value, json};

use super::case::{Case, Days};
use crate::world::sweep::{dose, dose_deleted, phase, schedule};
use crate::world::{Fact, fact, rendered};

fn drop_below(threshold: f64) -> Value {
    json!({ "event": "compliance_drop", "threshold": threshold, "window_days": 7 })
}

fn milestone(threshold: f64) -> Value {
    json!({ "event": "compliance_milestone", "threshold": threshold, "window_days": 7 })
}

pub(super) fn drops(days: Days) -> Vec<Case> {
    let (at, day, taken) = (|n, time| days.at(n, time), |n| days.day(n), |range| days.days(range));
    let other = |client: &str, day: NaiveDate| dose(client, day).with("dose_log_id", format!("{client}-other"));
    vec![
        // Four of seven on day 2, three on day 3, null from day 6 on.
        Case::of("drop.stays")
            .took(taken(-5..=-1))
            .automation("below", drop_below(50.0))
            .automation("equal", drop_below(43.0))
            .automation("shade", drop_below(43.1))
            .automation("zero", drop_below(0.0))
            .automation("default", json!({ "event": "compliance_drop", "threshold": 50 }))
            .emits("below", at(3, "00:00"))
            .emits("default", at(3, "00:00"))
            .emits("shade", at(3, "00:00"))
            .emits("equal", at(4, "00:00")),
        // Low on day 2; back on day 3, low again on day 5, within seven days, and still low when they end.
        Case::of("drop.spaced")
            .took(taken(-5..=-2))
            .automation("r", drop_below(50.0))
            .then_all(at(3, "09:00"), taken(0..=2).into_iter().map(|day| dose("drop.spaced", day)))
            .takes_at_noon(taken(6..=6))
            .emits("r", at(2, "00:00"))
            .emits("r", at(9, "00:00")),
        // The same, but high when they end; low again on day 12.
        Case::of("drop.over")
            .took(taken(-5..=-2))
            .automation("r", drop_below(50.0))
            .then_all(at(3, "09:00"), taken(0..=2).into_iter().map(|day| dose("drop.over", day)))
            .then_all(at(8, "12:00"), taken(3..=8).into_iter().map(|day| dose("drop.over", day)))
            .emits("r", at(2, "00:00"))
            .emits("r", at(12, "00:00")),
        // At the threshold the client is back: four of seven on day 3, two on day 9.
        Case::of("drop.equal")
            .took(taken(-5..=-2))
            .automation("r", drop_below(57.0))
            .then_all(at(3, "09:00"), taken(1..=2).into_iter().map(|day| dose("drop.equal", day)))
            .takes_at_noon(taken(7..=8))
            .emits("r", at(2, "00:00"))
            .emits("r", at(9, "00:00")),
        // Null on day 5, low again on day 9.
        Case::of("drop.null")
            .took(taken(-5..=-2))
            .automation("r", drop_below(50.0))
            .takes_at_noon(taken(9..=10))
            .emits("r", at(2, "00:00")),
        // No signal is not a low one.
        Case::of("drop.first_signal")
            .automation("r", drop_below(50.0))
            .takes_at_noon(taken(3..=3))
            .emits_at_next_sweep("r", at(3, "12:00")),
        // The window of day 4 is the first that begins after the creation.
        Case::of("drop.young")
            .created_at(at(-3, "15:00"))
            .automation("r", drop_below(50.0))
            .takes_at_noon(taken(2..=2))
            .emits("r", at(4, "00:00")),
        // Low by a deletion, back by a late log, low again by a deletion: emitted when seven days are over.
        Case::of("drop.deleted")
            .took(taken(-4..=-1))
            .automation("r", drop_below(50.0))
            .then(at(1, "09:00"), dose_deleted("drop.deleted", day(-1)))
            .then(at(1, "10:00"), other("drop.deleted", day(-1)))
            .then(
                at(1, "11:00"),
                fact(
                    "dose_log.deleted",
                    json!({
                        "client_id": "drop.deleted", "dose_log_id": "drop.deleted-other",
                    }),
                ),
            )
            .takes_at_noon(taken(5..=5))
            .emits_at_next_sweep("r", at(1, "09:00"))
            .emits_at_next_sweep("r", at(8, "09:15")),
        // The seven days survive an random_edit, which finds the client above the threshold.
        Case::of("drop.edited")
            .took(taken(-5..=-2))
            .automation("r", drop_below(50.0))
            .then_all(at(3, "09:00"), taken(0..=2).into_iter().map(|day| dose("drop.edited", day)))
            .saves(at(4, "09:00"), "r", drop_below(45.0))
            .takes_at_noon(taken(6..=6))
            .emits("r", at(2, "00:00"))
            .emits("r", at(9, "00:00")),
        // A drop that is undone before its due time leaves no trace.
        Case::of("drop.undone")
            .took(taken(-5..=-2))
            .automation("r", drop_below(50.0))
            .then(at(1, "23:50"), dose("drop.undone", day(1)))
            .takes_at_noon(taken(2..=12)),
        // Two doses a day make it 29 of a hundred at once.
        Case::of("drop.schedule")
            .took(taken(-5..=-2))
            .automation("r", drop_below(50.0))
            .then(at(1, "09:02"), schedule("drop.schedule", 2))
            .emits_at_next_sweep("r", at(1, "09:02")),
        // Only today counts in a window of one day: null, and not low, before the dose. A low between two sweeps is not
        // emitted.
        Case::of("drop.one_day")
            .automation("r", json!({ "event": "compliance_drop", "threshold": 60, "window_days": 1 }))
            .doses_a_day(2)
            .took(taken(-1..=-1))
            .then(at(1, "09:02"), dose("drop.one_day", day(1)))
            .then(at(1, "09:05"), other("drop.one_day", day(1)))
            .then(at(10, "21:32"), dose("drop.one_day", day(10)))
            .emits_at_next_sweep("r", at(10, "21:32")),
    ]
}

pub(super) fn milestones(days: Days) -> Vec<Case> {
    let (at, day, taken) = (|n, time| days.at(n, time), |n| days.day(n), |range| days.days(range));
    let set = |name: &str, active: bool| Fact::client(name, name).with("is_active", active);
    vec![
        Case::of("milestone.once")
            .automation("equal", milestone(57.0))
            .automation("shade", milestone(57.1))
            .automation("zero", milestone(0.0))
            .takes_at_noon(taken(1..=5))
            .takes_at_noon(taken(9..=13))
            .emits_at_next_sweep("zero", at(1, "12:00"))
            .emits_at_next_sweep("equal", at(4, "12:00"))
            .emits_at_next_sweep("shade", at(5, "12:00")),
        // Reached before the automation existed: never emitted.
        Case::of("milestone.before").took(taken(-4..=0)).automation("r", milestone(57.0)).takes_at_noon(taken(7..=12)),
        // Off the roster and back, and high once more.
        Case::of("milestone.away")
            .automation("r", milestone(29.0))
            .takes_at_noon(taken(1..=2))
            .then(at(3, "08:00"), set("milestone.away", false))
            .then(at(9, "08:00"), set("milestone.away", true))
            .takes_at_noon(taken(10..=12))
            .emits_at_next_sweep("r", at(2, "12:00")),
        // High while away: the return seeds the match, which uses up the milestone.
        Case::of("milestone.returns")
            .automation("r", milestone(29.0))
            .then(at(1, "08:00"), set("milestone.returns", false))
            .takes_at_noon(taken(2..=4))
            .then(at(5, "08:00"), set("milestone.returns", true))
            .takes_at_noon(taken(11..=12)),
        // Reached under the automation's earlier revision.
        Case::of("milestone.edited")
            .automation("r", milestone(29.0))
            .takes_at_noon(taken(1..=5))
            .saves(at(3, "08:00"), "r", milestone(57.0))
            .emits_at_next_sweep("r", at(2, "12:00")),
        // By a late log of yesterday's dose. Deleting and repeating the log emits nothing.
        Case::of("milestone.late")
            .automation("r", milestone(29.0))
            .took(taken(-1..=-1))
            .then(at(2, "08:00"), dose("milestone.late", day(0)))
            .then(at(3, "08:00"), dose_deleted("milestone.late", day(0)))
            .then(at(4, "08:00"), dose("milestone.late", day(1)))
            .emits_at_next_sweep("r", at(2, "08:00")),
    ]
}

pub(super) fn phases(days: Days) -> Vec<Case> {
    let (at, taken) = (|n, time| days.at(n, time), |range| days.days(range));
    let eligible = || json!({ "event": "phase_eligible" });
    vec![
        // In the first phase from day 2 on, with three of seven; compliance is reached on day 3.
        Case::of("phase.each")
            .knows(programme("phase.each", 3))
            .knows(client_in("phase.each", "Base", days.day(-1)))
            .automation("r", eligible())
            .takes_at_noon(taken(1..=5))
            .then(at(5, "08:00"), phase("phase.each", "Build", at(5, "08:00")))
            .then(at(8, "08:00"), phase("phase.each", "Keep", at(8, "08:00")))
            .then(at(10, "08:00"), phase("phase.each", "Build", at(10, "08:00")))
            .emits_at_next_sweep("r", at(3, "12:00"))
            .emits("r", at(7, "00:00"))
            .emits("r", at(12, "00:00")),
        // Compliance was reached, and is lost when the days have passed.
        Case::of("phase.gone")
            .knows(programme("phase.gone", 8))
            .knows(client_in("phase.gone", "Base", days.day(-1)))
            .took(taken(-5..=-1))
            .automation("r", eligible()),
        // The first instant at which both conditions hold.
        Case::of("phase.days")
            .knows(programme("phase.days", 3))
            .knows(client_in("phase.days", "Base", days.day(-1)))
            .took(taken(-3..=0))
            .automation("r", eligible())
            .emits("r", at(2, "00:00")),
        // Never in the last phase, nor in one of another programme.
        Case::of("phase.last")
            .knows(programme("phase.last", 3))
            .knows(client_in("phase.last", "Keep", days.day(-1)))
            .automation("r", eligible())
            .then(at(4, "08:00"), phase("phase.last", "Other", at(4, "08:00"))),
        // The programme lowers its demands: found by the next sweep.
        Case::of("phase.eased")
            .knows(programme("phase.eased", 9))
            .knows(client_in("phase.eased", "Base", days.day(-1)))
            .took(taken(-1..=0))
            .takes_at_noon(taken(1..=2))
            .automation("r", eligible())
            .then(at(4, "08:00"), programme("phase.eased", 3))
            .emits_at_next_sweep("r", at(4, "08:00")),
        // Back in the same phase by the application's record, on a later date.
        Case::of("phase.saved")
            .knows(programme("phase.saved", 3))
            .knows(client_in("phase.saved", "Build", days.day(-1)))
            .automation("r", eligible())
            .then(at(6, "08:00"), client_in("phase.saved", "Build", days.day(6)))
            .emits("r", at(1, "00:00"))
            .emits("r", at(8, "00:00")),
    ]
}

/// `Base`, with days and three doses of seven; `Build`, of two days; `Keep`.
fn programme(coach: &str, min_days: u32) -> Fact {
    let phases = json!([
        { "name": "Base", "min_days": min_days, "min_compliance_pct": 43 },
        { "name": "Build", "min_days": 2, "min_compliance_pct": null },
        { "name": "Keep", "min_days": 0, "min_compliance_pct": null },
    ]);
    fact("programme.saved", json!({ "programme_id": "p", "coach_id": coach, "phases": phases }))
}

fn client_in(name: &str, phase: &str, since: NaiveDate) -> Fact {
    let created_at: DateTime<Utc> = Days(since).at(-90, "12:00");
    Fact::client(name, name)
        .with("created_at", rendered(created_at))
        .with("programme_id", "p")
        .with("current_phase", phase)
        .with("phase_started_on", since.to_string())
}
