//! The rules of computed events from the facts to the receiver: each kind of fact begins, ends, moves or silences a
//! match. `domain::sweep` has the rules themselves, against an oracle.

mod case;

use chrono::{Datelike, NaiveDate, TimeDelta, Weekday};
use serde_json::{Value, json};

use crate::world::sweep::{
    automation_deleted, check_in, check_in_deleted, daily_log, daily_log_deleted, dose, dose_deleted, phase, schedule,
};
use crate::world::{Fact, World, fact};
use case::{Case, Days, run};

fn no_check_in(days: u32) -> Value {
    json!({ "event": "check_in_inactivity", "days": days })
}

fn no_log(days: u32) -> Value {
    json!({ "event": "daily_log_inactivity", "days": days })
}

fn drop_below(threshold: f64) -> Value {
    json!({ "event": "compliance_drop", "threshold": threshold, "window_days": 7 })
}

fn milestone(threshold: f64) -> Value {
    json!({ "event": "compliance_milestone", "threshold": threshold })
}

fn eligible() -> Value {
    json!({ "event": "phase_eligible" })
}

/// With a dose a day, each day of seven is 14 percent: five are 71, four 57, three 43, two 29.
fn compliance(days: Days) -> Vec<Case> {
    let (at, day, taken) = (|n, time| days.at(n, time), |n| days.day(n), |range| days.days(range));
    let late = |case: Case, name: &'static str, n, range| {
        days.days(range).into_iter().fold(case, |case, day| case.then(days.at(n, "09:00"), dose(name, day)))
    };
    let below_50 = |name: &'static str| Case::of(name).took(days.days(-5..=-2)).automation("r", drop_below(50.0));
    vec![
        // Four of seven on day 2, three on day 3, null from day 6 on. The window is seven days by default.
        Case::of("drop.stays")
            .took(taken(-5..=-1))
            .automation("equal", drop_below(43.0))
            .automation("default", json!({ "event": "compliance_drop", "threshold": 50 }))
            .emits("default", at(3, "00:00"))
            .emits("equal", at(4, "00:00")),
        // Low on day 2; back on day 3, low again on day 5, within seven days, and still low when they end. An edit
        // meanwhile finds the client above the threshold.
        late(below_50("drop.spaced"), "drop.spaced", 3, 0..=2)
            .saves(at(4, "09:00"), "r", drop_below(45.0))
            .takes_at_noon(taken(6..=6))
            .emits("r", at(2, "00:00"))
            .emits("r", at(9, "00:00")),
        // The same, but high when they end; low again on day 12.
        late(late(below_50("drop.over"), "drop.over", 3, 0..=2), "drop.over", 8, 3..=8)
            .emits("r", at(2, "00:00"))
            .emits("r", at(12, "00:00")),
        below_50("drop.deleted")
            .then(at(1, "09:02"), dose_deleted("drop.deleted", day(-2)))
            .emits_at_next_sweep("r", at(1, "09:02")),
        // Two doses a day make it 29 of a hundred at once.
        below_50("drop.schedule")
            .then(at(1, "09:02"), schedule("drop.schedule", 2))
            .emits_at_next_sweep("r", at(1, "09:02")),
        // The window of day 4 is the first that begins after the creation.
        Case::of("drop.young")
            .created_at(at(-3, "15:00"))
            .automation("r", drop_below(50.0))
            .takes_at_noon(taken(2..=2))
            .emits("r", at(4, "00:00")),
        Case::of("milestone.once")
            .automation("r", milestone(57.0))
            .takes_at_noon(taken(1..=5))
            .takes_at_noon(taken(9..=13))
            .emits_at_next_sweep("r", at(4, "12:00")),
        // By a late log of yesterday's dose. Deleting and repeating the log emits nothing, nor does an edit.
        Case::of("milestone.late")
            .automation("r", milestone(29.0))
            .took(taken(-1..=-1))
            .then(at(2, "08:00"), dose("milestone.late", day(0)))
            .then(at(3, "08:00"), dose_deleted("milestone.late", day(0)))
            .then(at(4, "08:00"), dose("milestone.late", day(1)))
            .saves(at(4, "09:00"), "r", milestone(57.0))
            .takes_at_noon(taken(4..=7))
            .emits_at_next_sweep("r", at(2, "08:00")),
    ]
}

/// A fact of a backfill.
fn silently(fact: Fact) -> Fact {
    fact.with("backfill", true)
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

fn phases(days: Days) -> Vec<Case> {
    let (at, taken) = (|n, time| days.at(n, time), |range| days.days(range));
    let client_in = |name: &str, phase: &str, since: NaiveDate| {
        let client = Fact::client(name, name).with("programme_id", "p").with("current_phase", phase);
        client.with("phase_started_on", since.to_string())
    };
    let case = |name: &'static str, phase: &str, min_days| {
        let case = Case::of(name).automation("r", eligible()).knows(programme(name, min_days));
        case.knows(client_in(name, phase, days.day(-1)))
    };
    let backfilled = |name: &'static str, since: NaiveDate| {
        let case = Case::of(name).automation("r", eligible());
        let case = case.then(days.at(1, "09:00"), silently(client_in(name, "Build", since)));
        case.then(days.at(1, "10:00"), silently(programme(name, 3)))
    };
    vec![
        // In the first phase from day 2 on, with three of seven; compliance is reached on day 3.
        case("phase.each", "Base", 3)
            .takes_at_noon(taken(1..=5))
            .then(at(5, "08:00"), phase("phase.each", "Build", at(5, "08:00")))
            .then(at(8, "08:00"), phase("phase.each", "Keep", at(8, "08:00")))
            .then(at(10, "08:00"), phase("phase.each", "Build", at(10, "08:00")))
            .emits_at_next_sweep("r", at(3, "12:00"))
            .emits("r", at(7, "00:00"))
            .emits("r", at(12, "00:00")),
        // The programme lowers its demands.
        case("phase.eased", "Base", 9)
            .took(taken(0..=0))
            .takes_at_noon(taken(1..=2))
            .then(at(4, "08:00"), programme("phase.eased", 3))
            .emits_at_next_sweep("r", at(4, "08:00")),
        // The same by a backfill: who may advance by it is marked silently.
        case("phase.eased_silently", "Base", 9)
            .took(taken(0..=0))
            .takes_at_noon(taken(1..=2))
            .then(at(4, "08:00"), silently(programme("phase.eased_silently", 3))),
        // A roster that is backfilled before its programme: who may advance later is not marked.
        backfilled("phase.may", days.day(-9)),
        backfilled("phase.may_later", days.day(1)).emits("r", at(3, "00:00")),
        // Back in the same phase by the application's record, on a later date.
        case("phase.saved", "Build", 3)
            .then(at(6, "08:00"), client_in("phase.saved", "Build", days.day(6)))
            .emits("r", at(1, "00:00"))
            .emits("r", at(8, "00:00")),
    ]
}

fn inactivity(days: Days) -> Vec<Case> {
    let (at, day) = (|n, time| days.at(n, time), |n| days.day(n));
    let checked_in = |name: &'static str| {
        Case::of(name).automation("r", no_check_in(3)).knows(check_in(name, "k0", days.at(-1, "13:02")))
    };
    let logged = |name: &'static str| Case::of(name).automation("r", no_log(2)).knows(daily_log(name, days.day(0)));
    vec![
        checked_in("check_in.each")
            .then(at(4, "09:30"), check_in("check_in.each", "k1", at(4, "09:30")))
            .then(at(9, "17:01"), check_in("check_in.each", "k2", at(9, "16:58")))
            .emits("r", at(2, "13:02"))
            .emits("r", at(7, "09:30"))
            .emits("r", at(12, "16:58")),
        // Checked in after the deadline and before the sweep: the match is over when the sweep runs.
        checked_in("check_in.too_late")
            .then(at(2, "13:03"), check_in("check_in.too_late", "k1", at(2, "13:03")))
            .emits("r", at(5, "13:03")),
        // A deletion after the event starts no match; before it, the previous check-in counts.
        checked_in("check_in.deleted")
            .knows(check_in("check_in.deleted", "before", at(-3, "08:00")))
            .then(at(3, "10:00"), check_in_deleted("check_in.deleted", "k0"))
            .emits("r", at(2, "13:02")),
        checked_in("check_in.undone")
            .knows(check_in("check_in.undone", "before", at(-2, "20:00")))
            .then(at(0, "18:00"), check_in_deleted("check_in.undone", "k0"))
            .emits("r", at(1, "20:00")),
        logged("log.each")
            .then(at(4, "20:00"), daily_log("log.each", day(4)))
            .emits("r", at(3, "00:00"))
            .emits("r", at(7, "00:00")),
        // Without today's log the match is two days earlier than with it; logging again starts another match.
        logged("log.deleted")
            .knows(daily_log("log.deleted", day(-1)))
            .then(at(1, "09:00"), daily_log_deleted("log.deleted", day(0)))
            .then(at(2, "09:00"), daily_log("log.deleted", day(0)))
            .emits("r", at(2, "00:00"))
            .emits("r", at(3, "00:00")),
        Case::of("log.never").created_at(at(-1, "10:00")).automation("r", no_log(2)).emits("r", at(2, "00:00")),
    ]
}

/// In New York, where clocks change on day 3: midnight is at 05:00, and at 04:00 from day 4 on. Others move.
fn places(days: Days) -> Vec<Case> {
    let (at, day, taken) = (|n, time| days.at(n, time), |n| days.day(n), |range| days.days(range));
    let case = |name: &'static str| Case::of(name).zone("America/New_York");
    let moved = |name: &'static str, zone: &str| {
        let case = Case::of(name).automation("r", no_log(2)).then(days.at(1, "09:00"), daily_log(name, days.day(1)));
        case.then(days.at(3, "20:00"), Case::workspace(name, zone))
    };
    // A day after the only log is over in Kiritimati, fourteen hours ahead.
    let ahead = |name: &'static str, backfill: bool| {
        let case = Case::of(name).automation("r", no_log(1)).knows(daily_log(name, days.day(0)));
        case.then(days.at(1, "10:02"), Case::workspace(name, "Pacific/Kiritimati").with("backfill", backfill))
    };
    vec![
        case("ny.before").knows(daily_log("ny.before", day(0))).automation("r", no_log(2)).emits("r", at(3, "05:00")),
        case("ny.log").knows(daily_log("ny.log", day(1))).automation("r", no_log(2)).emits("r", at(4, "04:00")),
        case("ny.drop").took(taken(-3..=0)).automation("r", drop_below(50.0)).emits("r", at(4, "04:00")),
        // Days of 24 hours, whatever the clocks say.
        case("ny.check_in")
            .automation("r", no_check_in(3))
            .then(at(1, "15:00"), check_in("ny.check_in", "k", at(1, "15:00")))
            .emits("r", at(4, "15:00")),
        moved("zone.back", "Pacific/Honolulu").emits("r", at(4, "10:00")),
        moved("zone.same", "UTC").emits("r", at(4, "00:00")),
        ahead("zone.ahead", false).emits_at_next_sweep("r", at(1, "10:00")),
        ahead("zone.ahead_silently", true),
    ]
}

/// A match that exists at the first sweep after a start is not emitted. Starts are: an automation is created, switched
/// on or edited; a client is new, changes coach or returns to the roster; a backfill. The last check-in was on day -1
/// at 13:02, between two sweeps, and comes again on day 4.
fn seeds(days: Days) -> Vec<Case> {
    let (at, day) = (|n, time| days.at(n, time), |n| days.day(n));
    let case = |name: &'static str| Case::of(name).knows(check_in(name, "k0", days.at(-1, "13:02")));
    let again = |name: &'static str| {
        case(name).then(days.at(4, "10:00"), check_in(name, "k1", days.at(4, "10:00"))).emits("r", days.at(7, "10:00"))
    };
    let known = |name: &'static str| again(name).automation("r", no_check_in(3));
    let away = |name: &'static str| case(name).then(days.at(1, "08:00"), set_active(name, false));
    let off = || json!({ "active": false });
    vec![
        again("seed.created").saves(at(2, "14:00"), "r", no_check_in(3)),
        again("seed.enabled").saves_with(at(1, "14:00"), "r", no_check_in(3), off()).saves(
            at(2, "14:00"),
            "r",
            no_check_in(3),
        ),
        again("seed.edited").automation("r", no_check_in(6)).saves(at(2, "14:00"), "r", no_check_in(3)),
        // Changes between the match and the sweep. A new name, or the same automation again, is no revision.
        known("seed.renamed")
            .saves_with(at(2, "13:05"), "r", no_check_in(3), json!({ "name": "Renamed" }))
            .emits("r", at(2, "13:02")),
        known("seed.saved_again").saves(at(2, "13:05"), "r", no_check_in(3)).emits("r", at(2, "13:02")),
        known("seed.step").saves_with(at(2, "13:05"), "r", no_check_in(3), json!({ "steps": [] })).saves(
            at(3, "10:00"),
            "r",
            no_check_in(3),
        ),
        known("seed.off").saves_with(at(2, "13:05"), "r", no_check_in(3), off()).saves(
            at(3, "10:00"),
            "r",
            no_check_in(3),
        ),
        case("seed.deleted")
            .automation("r", no_check_in(3))
            .then(at(2, "13:05"), automation_deleted("seed.deleted", "r")),
        // A match by a backfill is not emitted, then or later.
        Case::of("seed.backfill")
            .automation("r", milestone(29.0))
            .automation("log", no_log(1))
            .then(at(1, "09:00"), silently(daily_log("seed.backfill", day(0))))
            .then(at(1, "10:00"), silently(dose("seed.backfill", day(-1))))
            .then(at(1, "10:00"), silently(dose("seed.backfill", day(0))))
            .takes_at_noon(days.days(2..=3))
            .emits("log", at(2, "00:00")),
        Case::of("seed.backfilled_check_in")
            .created_at(at(-1, "13:02"))
            .automation("r", no_check_in(3))
            .then(at(1, "09:00"), silently(check_in("seed.backfilled_check_in", "k", at(-6, "09:00")))),
        // Back in time for the match, or after it.
        away("seed.back_in_time")
            .automation("r", no_check_in(3))
            .then(at(1, "20:00"), set_active("seed.back_in_time", true))
            .emits("r", at(2, "13:02")),
        away("seed.away")
            .automation("r", no_check_in(3))
            .automation("six", no_check_in(6))
            .then(at(4, "08:00"), set_active("seed.away", true))
            .emits("six", at(5, "13:02")),
        // With another coach from day 1 on, and back on day 4. The milestone was reached before; four days are reached
        // with the other coach; three days were reached when the client came back.
        case("seed.handed")
            .took(vec![day(-1)])
            .automation("three", no_check_in(3))
            .automation("own", milestone(29.0))
            .then(at(1, "09:00"), dose("seed.handed", day(1)))
            .then(at(1, "14:00"), Fact::client("seed.other", "seed.handed"))
            .then(at(4, "09:00"), Fact::client("seed.handed", "seed.handed"))
            .takes_at_noon(days.days(9..=11))
            .emits_at_next_sweep("own", at(1, "09:00"))
            .emits("four", at(3, "13:02")),
        // The client changes coach between the match and the sweep, and the new coach's automations seed it.
        case("seed.handed_late")
            .automation("three", no_check_in(3))
            .then(at(2, "13:05"), Fact::client("seed.other", "seed.handed_late"))
            .emits("four", at(3, "13:02")),
        Case::of("seed.other").automation("four", no_check_in(4)),
    ]
}

fn set_active(name: &str, active: bool) -> Fact {
    Fact::client(name, name).with("is_active", active)
}

/// The next date on which clocks are set forward in New York: the second Sunday of March.
fn clocks_change_after(date: NaiveDate) -> NaiveDate {
    let of_year = |year| NaiveDate::from_weekday_of_month_opt(year, 3, Weekday::Sun, 2).unwrap();
    (date.year()..).map(of_year).find(|change| *change > date).unwrap()
}

#[tokio::test]
async fn each_fact_begins_ends_moves_or_silences_a_match() {
    let world = World::start().await;
    let soon = world.now().await.date_naive() + TimeDelta::days(10);
    let days = Days(clocks_change_after(soon) - TimeDelta::days(3));
    let cases = [compliance(days), phases(days), inactivity(days), places(days), seeds(days)].into_iter().flatten();
    run(&world, days, cases.collect(), days.at(13, "10:20")).await;
}
