//! Timelines of missing check-ins and daily logs.

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
            .emits("r", at(2, "13:02"))
            .emits("r", at(7, "09:30"))
            .emits("r", at(12, "16:58")),
        known("check_in.in_time")
            .then(at(2, "13:01"), check_in("check_in.in_time", "k1", at(2, "13:01")))
            .emits("r", at(5, "13:01")),
        // Checked in after the deadline and before the sweep: the match is over when the sweep runs.
        known("check_in.too_late")
            .then(at(2, "13:03"), check_in("check_in.too_late", "k1", at(2, "13:03")))
            .emits("r", at(5, "13:03")),
        Case::of("check_in.never")
            .created_at(at(-1, "10:00"))
            .automation("r", no_check_in(3))
            .emits("r", at(2, "10:00")),
        // Inactive before the automation existed.
        Case::of("check_in.before")
            .knows(check_in("check_in.before", "k0", at(-5, "10:00")))
            .automation("r", no_check_in(3))
            .automation("more", no_check_in(8))
            .then(at(5, "10:00"), check_in("check_in.before", "k1", at(5, "10:00")))
            .emits("more", at(3, "10:00"))
            .emits("r", at(8, "10:00"))
            .emits("more", at(13, "10:00")),
        // A late check-in newer than the emitted match's, and one that is older.
        known("check_in.back_dated")
            .then(at(5, "10:00"), check_in("check_in.back_dated", "older", at(-2, "10:00")))
            .then(at(6, "10:00"), check_in("check_in.back_dated", "newer", at(3, "09:00")))
            .emits("r", at(2, "13:02"))
            .emits("r", at(6, "09:00"))
            .dated_back(),
        // A deletion after the event starts no match; before it, the previous check-in counts.
        known("check_in.deleted")
            .knows(check_in("check_in.deleted", "before", at(-3, "08:00")))
            .then(at(3, "10:00"), check_in_deleted("check_in.deleted", "k0"))
            .then(at(4, "09:00"), check_in("check_in.deleted", "k1", at(4, "09:00")))
            .emits("r", at(2, "13:02"))
            .emits("r", at(7, "09:00")),
        known("check_in.undone")
            .knows(check_in("check_in.undone", "before", at(-2, "20:00")))
            .then(at(0, "18:00"), check_in_deleted("check_in.undone", "k0"))
            .emits("r", at(1, "20:00")),
    ]
}

pub(super) fn daily_logs(days: Days) -> Vec<Case> {
    let (at, day) = (|n, time| days.at(n, time), |n| days.day(n));
    let known = |name: &'static str| Case::of(name).automation("r", no_log(2)).knows(daily_log(name, day(0)));
    vec![
        known("log.each")
            .then(at(4, "20:00"), daily_log("log.each", day(4)))
            .emits("r", at(3, "00:00"))
            .emits("r", at(7, "00:00")),
        Case::of("log.never").created_at(at(-1, "10:00")).automation("r", no_log(2)).emits("r", at(2, "00:00")),
        // A late log newer than the emitted match's, and one that is older.
        known("log.back_dated")
            .then(at(5, "09:00"), daily_log("log.back_dated", day(-3)))
            .then(at(6, "09:00"), daily_log("log.back_dated", day(2)))
            .emits("r", at(3, "00:00"))
            .emits("r", at(5, "00:00"))
            .dated_back(),
        // A log for yesterday postpones the match.
        known("log.put_off").then(at(2, "22:00"), daily_log("log.put_off", day(1))).emits("r", at(4, "00:00")),
        // Without today's log the match is two days earlier than with it; logging again starts another match.
        known("log.deleted")
            .knows(daily_log("log.deleted", day(-1)))
            .then(at(1, "09:00"), daily_log_deleted("log.deleted", day(0)))
            .then(at(2, "09:00"), daily_log("log.deleted", day(0)))
            .emits("r", at(2, "00:00"))
            .emits("r", at(3, "00:00")),
        // Deleted after the event: the previous log starts no match.
        known("log.deleted_late")
            .knows(daily_log("log.deleted_late", day(-1)))
            .then(at(4, "09:00"), daily_log_deleted("log.deleted_late", day(0)))
            .emits("r", at(3, "00:00")),
    ]
}
