//! Seeding: a match that exists at the first sweep after a start is not emitted; later matches are. Starts are: an
//! automation is created, switched on or edited; a client is new or returns to the roster; a backfill. All cases use
//! missing check-ins: the last one was on day -1 at 13:02, between two sweeps.

use serde_json::{Value, json};

use super::case::{Case, Days};
use super::inactivity::no_check_in;
use crate::world::Fact;
use crate::world::sweep::{automation_deleted, check_in, daily_log, dose};

fn milestone() -> Value {
    json!({ "event": "compliance_milestone", "threshold": 29 })
}

pub(super) fn automations(days: Days) -> Vec<Case> {
    let at = |n, time| days.at(n, time);
    let case = |name: &'static str| Case::of(name).knows(check_in(name, "k0", at(-1, "13:02")));
    let checks_in = |case: Case, name: &'static str, n| case.then(at(n, "10:00"), check_in(name, "k1", at(n, "10:00")));
    let off = || json!({ "active": false });
    let created = case("seed.created")
        .saves(at(2, "14:00"), "r", no_check_in(3))
        .saves(at(2, "14:00"), "later", no_check_in(4))
        .emits("later", at(3, "13:02"))
        .emits("r", at(7, "10:00"))
        .emits("later", at(8, "10:00"));
    let enabled = case("seed.enabled")
        .saves_with(at(1, "14:00"), "r", no_check_in(3), off())
        .saves(at(2, "14:00"), "r", no_check_in(3))
        .emits("r", at(7, "10:00"));
    let edited = case("seed.edited")
        .automation("r", no_check_in(6))
        .saves(at(2, "14:00"), "r", no_check_in(3))
        .emits("r", at(7, "10:00"));
    let renamed = case("seed.renamed")
        .automation("r", no_check_in(3))
        .saves_with(at(2, "15:00"), "r", no_check_in(3), json!({ "name": "Renamed" }))
        .emits("r", at(2, "13:02"))
        .emits("r", at(7, "10:00"));
    // Saved between the start of the match and the sweep: a new name is no new revision.
    let renamed_at_once = case("seed.renamed_at_once")
        .automation("r", no_check_in(3))
        .saves_with(at(2, "13:05"), "r", no_check_in(3), json!({ "name": "Renamed" }))
        .emits("r", at(2, "13:02"))
        .emits("r", at(7, "10:00"));
    let switched_off = case("seed.switched_off")
        .automation("r", no_check_in(3))
        .saves_with(at(2, "10:00"), "r", no_check_in(3), off())
        .saves(at(3, "10:00"), "r", no_check_in(3))
        .emits("r", at(7, "10:00"));
    // A change between the match and the sweep ends the match.
    let switched_off_at_once = case("seed.switched_off_at_once").automation("r", no_check_in(3)).saves_with(
        at(2, "13:05"),
        "r",
        no_check_in(3),
        off(),
    );
    let deleted = case("seed.deleted")
        .automation("r", no_check_in(3))
        .then(at(2, "10:00"), automation_deleted("seed.deleted", "r"));
    let deleted_at_once = case("seed.deleted_at_once")
        .automation("r", no_check_in(3))
        .then(at(2, "13:05"), automation_deleted("seed.deleted_at_once", "r"));
    // An automation without a step emits nothing, and its match is not emitted for a step that is added later.
    let without_step = case("seed.without_step")
        .saves_with(at(0, "14:00"), "r", no_check_in(3), json!({ "steps": [{ "kind": "email" }] }))
        .saves(at(3, "10:00"), "r", no_check_in(3))
        .emits("r", at(7, "10:00"));
    let step_in_time = case("seed.step_in_time")
        .saves_with(at(0, "14:00"), "r", no_check_in(3), json!({ "steps": [] }))
        .saves(at(2, "10:00"), "r", no_check_in(3))
        .emits("r", at(2, "13:02"))
        .emits("r", at(7, "10:00"));
    // Saving the automation unchanged makes no new revision.
    let saved_again = case("seed.saved_again")
        .automation("r", no_check_in(3))
        .saves(at(2, "13:05"), "r", no_check_in(3))
        .saves(at(2, "13:08"), "r", no_check_in(3))
        .emits("r", at(2, "13:02"))
        .emits("r", at(7, "10:00"));
    vec![
        checks_in(created, "seed.created", 4),
        checks_in(enabled, "seed.enabled", 4),
        checks_in(edited, "seed.edited", 4),
        checks_in(renamed, "seed.renamed", 4),
        checks_in(renamed_at_once, "seed.renamed_at_once", 4),
        checks_in(switched_off, "seed.switched_off", 4),
        checks_in(switched_off_at_once, "seed.switched_off_at_once", 4),
        checks_in(deleted, "seed.deleted", 4),
        checks_in(deleted_at_once, "seed.deleted_at_once", 4),
        checks_in(without_step, "seed.without_step", 4),
        checks_in(step_in_time, "seed.step_in_time", 4),
        checks_in(saved_again, "seed.saved_again", 4),
    ]
}

pub(super) fn clients(days: Days) -> Vec<Case> {
    let (at, day) = (|n, time| days.at(n, time), |n| days.day(n));
    let case = |name: &'static str| Case::of(name).knows(check_in(name, "k0", at(-1, "13:02")));
    let silently = |fact: Fact| fact.with("backfill", true);
    let set = |name: &str, active: bool| Fact::client(name, name).with("is_active", active);
    let to = |name: &str, coach: &str| Fact::client(coach, name);
    vec![
        // A match that starts by a backfill is not emitted, then or later.
        Case::of("seed.backfill")
            .automation("r", milestone())
            .automation("log", json!({ "event": "daily_log_inactivity", "days": 1 }))
            .then(at(1, "09:00"), silently(daily_log("seed.backfill", day(0))))
            .then_all(at(1, "10:00"), [-1, 0].map(|n| silently(dose("seed.backfill", day(n)))))
            .takes_at_noon(days.days(2..=3))
            .emits("log", at(2, "00:00")),
        // A backfill says that the only check-in is from long ago.
        Case::of("seed.backfilled_check_in")
            .created_at(at(-1, "13:02"))
            .automation("r", no_check_in(3))
            .then(at(1, "09:00"), silently(check_in("seed.backfilled_check_in", "k", at(-6, "09:00")))),
        // Inactive on the roster when the match starts, for good.
        case("seed.away").automation("r", no_check_in(3)).then(at(1, "08:00"), set("seed.away", false)),
        // Back in time for the match. Or back after its event: no second one.
        case("seed.back_in_time")
            .automation("r", no_check_in(3))
            .then(at(1, "08:00"), set("seed.back_in_time", false))
            .then(at(1, "20:00"), set("seed.back_in_time", true))
            .emits("r", at(2, "13:02")),
        case("seed.away_later")
            .automation("r", no_check_in(3))
            .then(at(3, "08:00"), set("seed.away_later", false))
            .then(at(4, "08:00"), set("seed.away_later", true))
            .emits("r", at(2, "13:02")),
        // A match while away sends nothing on the return.
        case("seed.away_meanwhile")
            .then(at(1, "08:00"), set("seed.away_meanwhile", false))
            .saves(at(2, "08:00"), "r", no_check_in(3))
            .saves(at(2, "08:00"), "six", no_check_in(6))
            .then(at(4, "08:00"), set("seed.away_meanwhile", true))
            .emits("six", at(5, "13:02")),
        // With another coach from day 1 on, after two days without a check-in, and back on day 4.
        case("seed.handed")
            .took(vec![day(-1)])
            .automation("three", no_check_in(3))
            .automation("own", milestone())
            .then(at(1, "09:00"), dose("seed.handed", day(1)))
            .then(at(1, "14:00"), to("seed.handed", "seed.other"))
            .then(at(4, "09:00"), to("seed.handed", "seed.handed"))
            .takes_at_noon(days.days(9..=11))
            .emits_at_next_sweep("own", at(1, "09:00"))
            .emits("four", at(3, "13:02")),
        Case::of("seed.other")
            .knows(check_in("seed.other", "k", at(0, "11:00")))
            .automation("two", no_check_in(2))
            .automation("four", no_check_in(4))
            .automation("theirs", milestone())
            .emits("two", at(2, "11:00"))
            .emits("four", at(4, "11:00")),
        // The client changes coach before the sweep, and the new coach's automations seed it.
        case("seed.handed_late")
            .automation("three", no_check_in(3))
            .then(at(2, "13:05"), to("seed.handed_late", "seed.other"))
            .emits("four", at(3, "13:02")),
        // New to the service, and inactive for a long time before.
        Case::of("seed.new")
            .automation("r", no_check_in(3))
            .automation("ten", no_check_in(10))
            .then(
                at(2, "08:00"),
                Fact::client("seed.new", "seed.newcomer").with("created_at", "2020-01-01T00:00:00.000Z"),
            )
            .emits("r", at(6, "07:00"))
            .emits("ten", at(13, "07:00"))
            .then(at(3, "07:00"), check_in("seed.new", "k", at(3, "07:00"))),
    ]
}
