//! Changes of bookings.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::Step::{Delete, Echo, Patch, Post};
use super::{NEW, NONE, OTHER_CALENDAR, Row, lee, named, row, saved};
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
    let elsewhere = |(of, mut data): (&'static str, Value)| {
        data["booking"]["calendar_id"] = json!(uuid(OTHER_CALENDAR));
        (of, data)
    };
    let date = midnight.date_naive();
    let slot = |time: &str| json!({ "leadId": uuid(1), "calendarId": uuid(CALENDAR), "date": date, "time": time });
    let to = |time: &str| json!({ "leadId": uuid(1), "date": date, "time": time });
    let booking = |id: u64| path(&uuid(id));
    let (mut without, mut longer) = (booked(&uuid(310), 9), moved(309, 8, 8));
    without.1["contact"] = Value::Null;
    longer.1["booking"]["ends_at"] = json!(rendered(at(10)));
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
        row("a fact without a contact", [], [saved(on(310, 9).with("lead_id", Value::Null))], [without]),
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
            [elsewhere(moved(306, 9, 9))],
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
        row("another end", [saved(on(309, 8))], [saved(on(309, 8).with("ends_at", rendered(at(10))))], [longer]),
        row("a calendar", [], [saved(Fact::calendar("ada", &uuid(CALENDAR)).with("name", "Renamed"))], NONE),
        row("a workflow", [], [saved(Fact::workflow("ada", &uuid(399)))], NONE),
    ]
}
