//! Timelines of check-ins and daily logs that fail to come.

use serde_json::{Value, json};

use super::case::{Case, Days};
use crate::world::sweep::{check_in, check_in_deleted, daily_log, daily_log_deleted};

pub(super) fn no_check_in(days: u32) -> Value {
    json!({ "event": "check_in_inactivity", "days": days })
}

pub(super) fn no_log(days: u32) -> Value {
    json!({ "event": "daily_log_inactivity", "days": days })
}

pub(super) fn check_ins(days: Days) -> Vec<Case> {
    let at = |n, time| days.at(n, time);
    let known = |name: &'static str| {
        let case = Case::of(name).automation("r", no_check_in(3));
        case.knows(check_in(name, "k0", at(-1, "13:02")))
    };
    vec![
        known("check_in.each")
            .then(at(4, "09:30"), check_in("check_in.each", "k1", at(4, "09:30")))
            .then(at(9, "17:01"), check_in("check_in.each", "k2", at(9, "16:58")))
            .told("r", at(2, "13:02"))
            .told("r", at(7, "09:30"))
            .told("r", at(12, "16:58")),
        known("check_in.in_time")
            .then(at(2, "13:01"), check_in("check_in.in_time", "k1", at(2, "13:01")))
            .told("r", at(5, "13:01")),
        // After the deadline and before the sweep: the match is over when the sweep comes.
        known("check_in.too_late")
            .then(at(2, "13:03"), check_in("check_in.too_late", "k1", at(2, "13:03")))
            .told("r", at(5, "13:03")),
        Case::of("check_in.never")
            .created_at(at(-1, "10:00"))
            .automation("r", no_check_in(3))
            .told("r", at(2, "10:00")),
        // Inactive before there was an automation.
        Case::of("check_in.before")
            .knows(check_in("check_in.before", "k0", at(-5, "10:00")))
            .automation("r", no_check_in(3))
            .automation("more", no_check_in(8))
            .then(at(5, "10:00"), check_in("check_in.before", "k1", at(5, "10:00")))
            .told("more", at(3, "10:00"))
            .told("r", at(8, "10:00"))
            .told("more", at(13, "10:00")),
        // One that comes late, newer than the one that was told of, and one that is older.
        known("check_in.back_dated")
            .then(at(5, "10:00"), check_in("check_in.back_dated", "older", at(-2, "10:00")))
            .then(at(6, "10:00"), check_in("check_in.back_dated", "newer", at(3, "09:00")))
            .told("r", at(2, "13:02"))
            .told("r", at(6, "09:00"))
            .dated_back(),
        // What is deleted afterwards begins nothing; before, the one before counts.
        known("check_in.deleted")
            .knows(check_in("check_in.deleted", "before", at(-3, "08:00")))
            .then(at(3, "10:00"), check_in_deleted("check_in.deleted", "k0"))
            .then(at(4, "09:00"), check_in("check_in.deleted", "k1", at(4, "09:00")))
            .told("r", at(2, "13:02"))
            .told("r", at(7, "09:00")),
        known("check_in.undone")
            .knows(check_in("check_in.undone", "before", at(-2, "20:00")))
            .then(at(0, "18:00"), check_in_deleted("check_in.undone", "k0"))
            .told("r", at(1, "20:00")),
    ]
}

pub(super) fn daily_logs(days: Days) -> Vec<Case> {
    let (at, day) = (|n, time| days.at(n, time), |n| days.day(n));
    let known = |name: &'static str| Case::of(name).automation("r", no_log(2)).knows(daily_log(name, day(0)));
    vec![
        known("log.each")
            .then(at(4, "20:00"), daily_log("log.each", day(4)))
            .told("r", at(3, "00:00"))
            .told("r", at(7, "00:00")),
        Case::of("log.never").created_at(at(-1, "10:00")).automation("r", no_log(2)).told("r", at(2, "00:00")),
        // One that comes late, newer than the one that was told of, and one that is older.
        known("log.back_dated")
            .then(at(5, "09:00"), daily_log("log.back_dated", day(-3)))
            .then(at(6, "09:00"), daily_log("log.back_dated", day(2)))
            .told("r", at(3, "00:00"))
            .told("r", at(5, "00:00"))
            .dated_back(),
        // One for yesterday puts it off.
        known("log.put_off").then(at(2, "22:00"), daily_log("log.put_off", day(1))).told("r", at(4, "00:00")),
        // Without today's, it is two days sooner than with it; kept once more, another.
        known("log.deleted")
            .knows(daily_log("log.deleted", day(-1)))
            .then(at(1, "09:00"), daily_log_deleted("log.deleted", day(0)))
            .then(at(2, "09:00"), daily_log("log.deleted", day(0)))
            .told("r", at(2, "00:00"))
            .told("r", at(3, "00:00")),
        // Deleted after it was told of: the one before begins nothing.
        known("log.deleted_late")
            .knows(daily_log("log.deleted_late", day(-1)))
            .then(at(4, "09:00"), daily_log_deleted("log.deleted_late", day(0)))
            .told("r", at(3, "00:00")),
    ]
}
