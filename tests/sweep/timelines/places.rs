//! Timelines that depend on local midnights: clock changes, and workspaces that move to another zone.

use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc, Weekday};
use serde_json::json;

use super::case::{Case, Days};
use super::inactivity::{no_check_in, no_log};
use crate::world::sweep::{check_in, daily_log, dose};
use crate::world::{Fact, fact};

/// The next date on which clocks change in New York: the second Sunday of March or the first of November.
pub(crate) fn clocks_change_after(date: NaiveDate, month: u32) -> NaiveDate {
    let nth = if month == 3 { 2 } else { 1 };
    let of_year = |year| NaiveDate::from_weekday_of_month_opt(year, month, Weekday::Sun, nth).unwrap();
    (date.year()..).map(of_year).find(|change| *change > date).unwrap()
}

/// In New York, where clocks change on day 3.
pub(super) fn new_york(days: Days, month: u32) -> Vec<Case> {
    let (at, day, taken) = (|n, time| days.at(n, time), |n| days.day(n), |range| days.days(range));
    let midnight = |n: i64| -> DateTime<Utc> { at(n, if (n > 3) == (month == 3) { "04:00" } else { "05:00" }) };
    let case = |name: &'static str| Case::of(name).zone("America/New_York");
    let drop = || json!({ "event": "compliance_drop", "threshold": 50, "window_days": 7 });
    let in_build = |name: &str, since: NaiveDate| {
        let client = Fact::client(name, name).with("programme_id", "p").with("current_phase", "Build");
        client.with("phase_started_on", since.to_string())
    };
    let phases = json!([
        { "name": "Build", "min_days": 2, "min_compliance_pct": null },
        { "name": "Keep", "min_days": 0, "min_compliance_pct": null },
    ]);
    let programme =
        |coach: &str| fact("programme.saved", json!({ "programme_id": "p", "coach_id": coach, "phases": phases }));
    let eligible = || json!({ "event": "phase_eligible" });
    vec![
        case("ny.log_before")
            .knows(daily_log("ny.log_before", day(0)))
            .automation("r", no_log(2))
            .emits("r", midnight(3)),
        case("ny.log")
            .automation("r", no_log(2))
            .then(at(1, "20:00"), daily_log("ny.log", day(1)))
            .emits("r", midnight(4)),
        // The local date, not the one in UTC.
        case("ny.evening")
            .automation("r", no_log(1))
            .then(at(2, "02:00"), daily_log("ny.evening", day(1)))
            .emits("r", midnight(3)),
        case("ny.drop_before").took(taken(-4..=-1)).automation("r", drop()).emits("r", midnight(3)),
        case("ny.drop").took(taken(-3..=0)).automation("r", drop()).emits("r", midnight(4)),
        case("ny.phase_before")
            .knows(programme("ny.phase_before"))
            .knows(in_build("ny.phase_before", day(1)))
            .automation("r", eligible())
            .emits("r", midnight(3)),
        case("ny.phase")
            .knows(programme("ny.phase"))
            .knows(in_build("ny.phase", day(2)))
            .automation("r", eligible())
            .emits("r", midnight(4)),
        // Days of 24 hours, whatever the clocks say.
        case("ny.check_in")
            .automation("r", no_check_in(3))
            .then(at(1, "15:00"), check_in("ny.check_in", "k", at(1, "15:00")))
            .emits("r", at(4, "15:00")),
    ]
}

/// Seven days between drops are seven times 24 hours, although one day between them has 23.
pub(super) fn spaced_over_the_change(days: Days) -> Case {
    let (at, taken) = (|n, time| days.at(n, time), |range| days.days(range));
    let name = "ny.spaced";
    Case::of(name)
        .zone("America/New_York")
        .took(taken(-5..=-2))
        .automation("r", json!({ "event": "compliance_drop", "threshold": 50, "window_days": 7 }))
        .then_all(at(3, "09:00"), taken(0..=2).into_iter().map(|day| dose(name, day)))
        .takes_at_noon(taken(6..=6))
        .emits("r", at(2, "05:00"))
        .emits("r", at(9, "05:00"))
}

/// Workspaces that move on day 3 at 20:00 UTC. Two whole days without a log end at the new zone's midnight.
pub(super) fn moves(days: Days) -> Vec<Case> {
    let (at, day) = (|n, time| days.at(n, time), |n| days.day(n));
    let moved = |name: &'static str, when, zone: &str| {
        let case = Case::of(name).automation("r", no_log(2)).then(at(1, "09:00"), daily_log(name, day(1)));
        case.then(when, Case::workspace(name, zone))
    };
    vec![
        // The next morning has begun there: the days ended at midnight, as the next sweep finds.
        moved("zone.ahead", at(3, "20:00"), "Asia/Tokyo").emits("r", at(3, "15:00")).dated_back(),
        moved("zone.back", at(3, "20:00"), "Pacific/Honolulu").emits("r", at(4, "10:00")),
        moved("zone.emitted", at(4, "00:20"), "Pacific/Honolulu").emits("r", at(4, "00:00")),
        moved("zone.same", at(3, "20:00"), "UTC").emits("r", at(4, "00:00")),
    ]
}

/// Workspaces that move and programmes that raise their demands, between the start of a match and its sweep: the match
/// is over.
pub(super) fn changes_before_the_sweep(days: Days) -> Vec<Case> {
    let (at, day) = (|n, time| days.at(n, time), |n| days.day(n));
    let case = |name: &'static str| Case::of(name).no_sweeps(at(0, "23:50"), at(1, "00:10"));
    let programme = |min_days: u32| {
        let phases = json!([
            { "name": "Build", "min_days": min_days, "min_compliance_pct": null },
            { "name": "Keep", "min_days": 0, "min_compliance_pct": null },
        ]);
        fact("programme.saved", json!({ "programme_id": "p", "coach_id": "late.programme", "phases": phases }))
    };
    let client = Fact::client("late.programme", "late.programme").with("programme_id", "p");
    vec![
        case("late.zone")
            .knows(daily_log("late.zone", day(-1)))
            .automation("r", no_log(1))
            .then(at(1, "00:07"), Case::workspace("late.zone", "Pacific/Honolulu"))
            .emits("r", at(1, "10:00")),
        case("late.programme")
            .knows(programme(2))
            .knows(client.with("current_phase", "Build").with("phase_started_on", day(-1).to_string()))
            .automation("r", json!({ "event": "phase_eligible" }))
            .then(at(1, "00:07"), programme(9)),
    ]
}

/// Three days without a sweep from day 1 on: on the first sweeps fail, on the others the stack is down.
pub(super) fn outage(days: Days) -> Vec<Case> {
    let (at, day, taken) = (|n, time| days.at(n, time), |n| days.day(n), |range| days.days(range));
    let other = |client: &str, day: NaiveDate| dose(client, day).with("dose_log_id", format!("{client}-{day}-other"));
    let of_one_day = |event: &str| json!({ "event": event, "threshold": 60, "window_days": 1 });
    let out = |name: &'static str| {
        let case = Case::of(name).no_sweeps(at(1, "10:00"), at(2, "10:00"));
        case.down(at(2, "10:00") + TimeDelta::seconds(1), at(4, "12:05"))
    };
    vec![
        // A match that still holds is emitted, dated at its start.
        out("out.check_in")
            .knows(check_in("out.check_in", "k", at(-1, "13:00")))
            .automation("r", no_check_in(3))
            .emits("r", at(2, "13:00")),
        out("out.log").knows(daily_log("out.log", day(0))).automation("r", no_log(2)).emits("r", at(3, "00:00")),
        out("out.drop")
            .took(taken(-5..=-2))
            .automation("r", json!({ "event": "compliance_drop", "threshold": 50 }))
            .emits("r", at(2, "00:00")),
        // The milestone reached on day 3 alone is over; on day 5 it is reached again.
        out("out.blip")
            .automation("r", of_one_day("compliance_milestone"))
            .then(at(1, "09:00"), dose("out.blip", day(3)))
            .takes_at_noon(taken(5..=5))
            .emits_at_next_sweep("r", at(5, "12:00")),
        // Back on day 3 alone, and low again: as if never back.
        out("out.back")
            .doses_a_day(2)
            .automation("r", of_one_day("compliance_drop"))
            .then(at(1, "08:02"), dose("out.back", day(1)))
            .then_all(at(1, "09:00"), [dose("out.back", day(3)), other("out.back", day(3)), dose("out.back", day(4))])
            .emits_at_next_sweep("r", at(1, "08:02")),
        // A check-in without sweeps ends the match.
        out("out.fact")
            .knows(check_in("out.fact", "k", at(-2, "13:00")))
            .automation("r", no_check_in(3))
            .then(at(1, "14:00"), check_in("out.fact", "k1", at(1, "14:00")))
            .emits("r", at(4, "14:00")),
    ]
}
