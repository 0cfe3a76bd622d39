//! Lists of calendars and bookings, and what they leave out.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, Desk, LEAD, desk, event, slot, to};
use crate::world::{Fact, World, ids, uuid};

#[tokio::test]
async fn private_events_block_time_and_are_neither_listed_nor_changed() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(2).await;
    let date = midnight.date_naive();
    let private = event("ada", &uuid(50), None, midnight + TimeDelta::hours(9), 90).with("lead_id", uuid(LEAD));
    world.apply([private.clone()]).await;
    assert!(desk.list().await.is_empty());
    desk.reschedule(&uuid(50), to(date, "12:00")).await.refused(404, "not_found");
    desk.cancel(&uuid(50), LEAD).await.refused(404, "not_found");
    for taken in ["09:00", "10:00"] {
        desk.book(slot(date, taken)).await.refused(409, "slot_unavailable");
    }
    desk.booked(slot(date, "08:00")).await;
    desk.booked(slot(date, "11:00")).await;
    world.apply([private.with("status", "cancelled")]).await;
    desk.booked(slot(date, "09:00")).await;
}

#[tokio::test]
async fn lists_are_paged_by_uuid_and_show_events_on_calendars() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(3).await;
    // In no order, with private and cancelled events between them.
    let events = [9, 3, 7, 1, 5, 8, 2].map(|n| {
        let starts = midnight + TimeDelta::hours(n);
        event("ada", &uuid(n as u64), (n % 4 != 3).then_some(CALENDAR), starts, 60)
    });
    world.apply(events).await;
    world.apply([event("ada", &uuid(8), Some(CALENDAR), midnight, 60).with("status", "cancelled")]).await;
    let shown = [1, 2, 5, 9].map(uuid);
    assert_eq!(ids(&desk.key.get("/v1/crm/bookings").await.body), shown);
    let first = desk.key.get("/v1/crm/bookings?limit=3").await.expect(200);
    assert_eq!((ids(&first.body), first.str("next_cursor")), (shown[..3].to_vec(), shown[2].as_str()));
    // The cursor need not name a listed booking.
    for after in [5, 6, 7, 8] {
        let rest = desk.key.get(&format!("/v1/crm/bookings?cursor={}", uuid(after))).await.expect(200);
        assert_eq!((ids(&rest.body), &rest.body["next_cursor"]), (shown[3..].to_vec(), &Value::Null));
    }
    desk.key.get("/v1/crm/bookings?cursor=x").await.refused_for("cursor");
    for list in ["bookings", "calendars", "workflows"] {
        let [first, empty] = ["", "?cursor="].map(|query| desk.key.get(&format!("/v1/crm/{list}{query}")));
        assert_eq!(empty.await.expect(200).body, first.await.expect(200).body, "{list}");
    }
    let calendars = [21, 20, 22].map(|n| Fact::calendar("ada", &uuid(n)).with("active", n != 21));
    world.apply(calendars).await;
    let page = desk.key.get("/v1/crm/calendars?limit=2").await.expect(200);
    assert_eq!((ids(&page.body), page.str("next_cursor")), ([CALENDAR, 20].map(uuid).to_vec(), uuid(20).as_str()));
    let expected = json!({
        "id": uuid(CALENDAR), "name": "Calls", "timezone": "UTC", "priceCents": 0, "currency": "USD",
        "bookingUrl": "https://ada.example/book", "durationMinutes": 60,
    });
    assert_eq!(page.body["data"][0], expected);
    let rest = desk.key.get(&format!("/v1/crm/calendars?cursor={}", uuid(20))).await.expect(200);
    assert_eq!((ids(&rest.body), &rest.body["next_cursor"]), (vec![uuid(22)], &Value::Null));
}

#[tokio::test]
async fn a_booking_takes_no_time_of_another_coach_even_under_the_same_ids() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let eve = Desk { world: &world, key: world.booking_coach("eve").await };
    let date = world.midnight_in(2).await.date_naive();
    desk.booked(slot(date, "09:00")).await;
    assert!(eve.list().await.is_empty());
    eve.booked(slot(date, "09:00")).await;
    assert_eq!((desk.list().await.len(), eve.list().await.len()), (1, 1));
}
