//! Changes of bookings.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::Step::{Delete, Echo, Patch, Post};
use super::{EARLY, LATE, NEW, NONE, OTHER_CALENDAR, Row, lee, merged, named, nameless, row, saved, with};
use crate::crm::bookings::{CALENDAR, event, path};
use crate::world::{Fact, rendered, uuid};

pub(super) fn rows(midnight: DateTime<Utc>) -> Vec<Row> {
    let at = |hour: i64| midnight + TimeDelta::hours(hour);
    let on = |id: u64, hour: i64| event("ada", &uuid(id), Some(CALENDAR), at(hour), 60).with("lead_id", uuid(1));
    let private = |id: u64, hour: i64| on(id, hour).with("calendar_id", Value::Null);
    let cancelled = |fact: Fact| fact.with("status", "cancelled");
    let shown = |id: &str, hour: i64, status: &str| {
        json!({
            "id": id, "calendar_id": uuid(CALENDAR), "starts_at": rendered(at(hour)), "ends_at": rendered(at(hour + 1)),
            "timezone": "UTC", "status": status,
        })
    };
    let of = |event: &'static str, booking: Value| (event, json!({ "contact": named(1), "booking": booking }));
    let booked = |id: &str, hour: i64| of("booking_created", shown(id, hour, "confirmed"));
    let ended = |id: u64, hour: i64| of("booking_cancelled", shown(&uuid(id), hour, "cancelled"));
    let moved = |id: u64, hour: i64, from: i64| {
        let data = json!({
            "contact": named(1), "booking": shown(&uuid(id), hour, "confirmed"), "previous_starts_at": rendered(at(from)),
        });
        ("booking_rescheduled", data)
    };
    // The same event with another contact, or with other members of its booking.
    let about = |contact: Value, (of, data): (&'static str, Value)| (of, with(data, json!({ "contact": contact })));
    let but = |(of, mut data): (&'static str, Value), members: Value| {
        data["booking"] = with(data["booking"].take(), members);
        (of, data)
    };
    let elsewhere = json!({ "calendar_id": uuid(OTHER_CALENDAR) });
    let in_new_york = json!({ "calendar_id": uuid(12), "timezone": "America/New_York" });
    let until = |hour: i64| json!({ "ends_at": rendered(at(hour)) });
    let of_lead = |id: u64, hour: i64, lead: u64| on(id, hour).with("lead_id", uuid(lead));
    let month = |hour: i64| on(510, hour).with("ends_at", rendered(at(hour + 31 * 24)));
    let date = midnight.date_naive();
    let slot = |time: &str| json!({ "leadId": uuid(1), "calendarId": uuid(CALENDAR), "date": date, "time": time });
    let to = |time: &str| json!({ "leadId": uuid(1), "date": date, "time": time });
    let booking = |id: u64| path(&uuid(id));
    vec![
        row("POST books, and its echo", [], [Post("/v1/crm/bookings", slot("01:00")), Echo], [booked(NEW, 1)]),
        row("PATCH to the same time", [saved(on(301, 2))], [Patch(booking(301), to("02:00"))], NONE),
        row("PATCH moves, and its echo", [], [Patch(booking(301), to("03:00")), Echo], [moved(301, 3, 2)]),
        row(
            "DELETE, its repetition and its echo",
            [],
            [
                Delete(booking(301), json!({ "leadId": uuid(1) })),
                Delete(booking(301), json!({ "leadId": uuid(1) })),
                Echo,
            ],
            [ended(301, 3)],
        ),
        row("a fact books", [], [saved(on(302, 4))], [booked(&uuid(302), 4)]),
        row(
            "a fact without a contact",
            [],
            [saved(on(310, 9).with("lead_id", Value::Null))],
            [about(Value::Null, booked(&uuid(310), 9))],
        ),
        row("a fact repeats", [], [saved(on(302, 4))], NONE),
        row("first seen as cancelled", [], [saved(cancelled(on(303, 5)))], NONE),
        row("confirmed after that", [], [saved(on(303, 5))], [booked(&uuid(303), 5)]),
        row("a private entry", [], [saved(private(304, 6))], NONE),
        row("moved into a calendar", [], [saved(on(304, 6))], [booked(&uuid(304), 6)]),
        row(
            "moved out, without its contact",
            [],
            [saved(private(304, 7).with("lead_id", Value::Null))],
            [ended(304, 6)],
        ),
        row("a fact moves", [saved(on(305, 6))], [saved(on(305, 7))], [moved(305, 7, 6)]),
        row("a fact cancels", [], [saved(cancelled(on(305, 7)))], [ended(305, 7)]),
        row("moved while cancelled", [], [saved(cancelled(on(305, 8)))], NONE),
        row("confirmed again", [], [saved(on(305, 8))], [booked(&uuid(305), 8)]),
        row("another contact", [saved(lee(390))], [saved(on(305, 8).with("lead_id", uuid(390)))], NONE),
        row(
            "another calendar",
            [saved(on(306, 9))],
            [saved(on(306, 9).with("calendar_id", uuid(OTHER_CALENDAR)))],
            [but(moved(306, 9, 9), elsewhere.clone())],
        ),
        row("another calendar and another time", [], [saved(on(306, 13))], [moved(306, 13, 9)]),
        row(
            "another calendar while cancelled",
            [saved(cancelled(on(306, 13)))],
            [saved(cancelled(on(306, 13).with("calendar_id", uuid(OTHER_CALENDAR))))],
            NONE,
        ),
        row(
            "an older fact",
            [saved(on(307, 10))],
            [saved(cancelled(on(307, 10)).with("occurred_at", "2026-01-01T00:00:00Z"))],
            NONE,
        ),
        row("a backfill", [], [saved(on(308, 11).with("backfill", true))], NONE),
        row(
            "another end",
            [saved(on(309, 8))],
            [saved(on(309, 8).with("ends_at", rendered(at(10))))],
            [but(moved(309, 8, 8), until(10))],
        ),
        row("a calendar", [], [saved(Fact::calendar("ada", &uuid(CALENDAR)).with("name", "Renamed"))], NONE),
        row("a workflow", [], [saved(Fact::workflow("ada", &uuid(399)))], NONE),
        // Changes of which only a part is seen.
        row(
            "of a contact that is not stored",
            [],
            [saved(of_lead(501, 1, 590))],
            [about(nameless(590), booked(&uuid(501), 1))],
        ),
        row(
            "of a merged contact",
            [saved(lee(591)), merged(591, 1)],
            [saved(of_lead(502, 2, 591))],
            [booked(&uuid(502), 2)],
        ),
        row("PATCH of a merged contact's booking", [], [Patch(booking(502), to("03:00"))], [moved(502, 3, 2)]),
        row(
            "DELETE of a merged contact's booking",
            [],
            [Delete(booking(502), json!({ "leadId": uuid(1) }))],
            [ended(502, 3)],
        ),
        row(
            "on a calendar that is not stored",
            [],
            [saved(on(503, 4).with("calendar_id", uuid(12)))],
            [but(booked(&uuid(503), 4), in_new_york)],
        ),
        row("moved and cancelled at once", [saved(on(504, 5))], [saved(cancelled(on(504, 6)))], [ended(504, 6)]),
        row(
            "moved out and cancelled at once",
            [saved(on(505, 7))],
            [saved(cancelled(private(505, 8)))],
            [ended(505, 7)],
        ),
        row(
            "another calendar, contact and time at once",
            [saved(on(506, 9)), saved(lee(592))],
            [saved(of_lead(506, 10, 592).with("calendar_id", uuid(OTHER_CALENDAR)))],
            [about(named(592), but(moved(506, 10, 9), elsewhere))],
        ),
        row(
            "cancelled by a fact of before a PATCH",
            [saved(on(507, 11).with("occurred_at", EARLY)), Patch(booking(507), to("12:00"))],
            [saved(cancelled(on(507, 13)).with("occurred_at", LATE))],
            [ended(507, 12)],
        ),
        row(
            "moved by a fact of before a PATCH",
            [saved(on(508, 13).with("occurred_at", EARLY)), Patch(booking(508), to("14:00"))],
            [saved(on(508, 15).with("occurred_at", LATE))],
            NONE,
        ),
        row("after its backfill", [saved(on(509, 15).with("backfill", true))], [saved(on(509, 15))], NONE),
        row(
            "moved by the application while it is backfilled",
            [],
            [saved(on(509, 16).with("backfill", true)), saved(on(509, 17))],
            [moved(509, 17, 16)],
        ),
        row(
            "a month, moved by more than a month: the largest transaction",
            [saved(month(1_000))],
            [saved(month(2_000))],
            [but(moved(510, 2_000, 1_000), until(2_000 + 31 * 24))],
        ),
    ]
}
