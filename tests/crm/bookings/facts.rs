//! `calendar.saved` and `calendar_event.saved`: the application's facts about calendars and events.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, LEAD, OTHER_CALENDAR, desk, event, slot, to};
use crate::world::{Fact, World, rendered, time, uuid};

/// The application's record of a booking, as the API shows it.
fn echo(booking: &Value) -> Fact {
    let id = booking["id"].as_str().unwrap();
    let minutes = (time(&booking["endsAt"]) - time(&booking["startsAt"])).num_minutes();
    event("ada", id, None, time(&booking["startsAt"]), minutes)
        .with("calendar_id", booking["calendarId"].clone())
        .with("lead_id", booking["leadId"].clone())
        .with("status", booking["status"].clone())
}

impl World {
    /// A coach's day buckets: their events with the time that each takes.
    pub(crate) async fn buckets(&self, coach: &str) -> Vec<(String, Value)> {
        let items = self.items("crm", &format!("COACH#{coach}")).await;
        let buckets = items.into_iter().filter_map(|item| {
            let day = item["sk"]["S"].as_str().unwrap().strip_prefix("BUSY#")?.to_owned();
            let entries = item.as_object().unwrap().iter().filter_map(|(name, value)| {
                let numbers =
                    value["L"].as_array()?.iter().map(|number| number["N"].as_str().unwrap().parse().unwrap());
                Some((name.strip_prefix("e#")?.to_owned(), json!(numbers.collect::<Vec<i64>>())))
            });
            Some((day, Value::Object(entries.collect())))
        });
        buckets.collect()
    }

    /// The stored item of an event.
    pub(crate) async fn stored_event(&self, id: &str) -> Value {
        let items = self.items("crm", "COACH#").await;
        items.into_iter().find(|item| item["sk"]["S"] == format!("EVENT#{id}")).unwrap_or_default()
    }
}

#[tokio::test]
async fn the_applications_copy_of_a_booking_changes_nothing() {
    let world = World::start().await;
    let buffered = Fact::calendar("ada", &uuid(CALENDAR)).with("buffer_before_minutes", 30);
    let desk = desk(&world).await;
    world.apply([buffered.clone()]).await;
    let date = world.midnight_in(2).await.date_naive();
    desk.booked(slot(date, "09:00")).await;
    let made = desk.list().await.remove(0);
    let buckets = world.buckets("ada").await;
    world.apply([buffered.with("buffer_before_minutes", 0), echo(&made)]).await;
    assert_eq!(desk.list().await, [made]);
    assert_eq!(world.buckets("ada").await, buckets);
    assert_eq!(desk.emitted("booking.created").await.len(), 1);
    assert!(desk.emitted("booking.conflict").await.is_empty());
}

#[tokio::test]
async fn api_writes_on_the_applications_events_are_emitted_and_outdate_older_facts() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(2).await;
    let hour = |hour: i64| {
        event("ada", &uuid(60), Some(CALENDAR), midnight + TimeDelta::hours(hour), 60).with("lead_id", uuid(LEAD))
    };
    let (first, between) = (world.timestamp_in(-600).await, world.timestamp_in(-300).await);
    world.apply([hour(9).with("occurred_at", first)]).await;
    let id = uuid(60);
    desk.reschedule(&id, to(midnight.date_naive(), "09:00")).await.expect(200);
    world.apply([hour(12).with("occurred_at", between.clone())]).await;
    assert_eq!(desk.list().await[0]["time"], "09:00");
    let moved = desk.emitted("booking.rescheduled").await;
    assert_eq!((moved.len(), &moved[0]["booking"]["time"]), (1, &json!("09:00")));
    // Cancelled by the application, and by the API too.
    world.apply([hour(9).with("status", "cancelled").with("occurred_at", world.timestamp_in(0).await)]).await;
    let reconfirmed = world.timestamp_in(1).await;
    world.advance_s(5).await;
    let cancelled = desk.cancel(&id, LEAD).await.expect(200);
    world.apply([hour(9).with("occurred_at", reconfirmed)]).await;
    assert!(desk.list().await.is_empty());
    assert_eq!(desk.emitted("booking.cancelled").await.len(), 1);
    // A repetition changes nothing.
    assert_eq!(desk.cancel(&id, LEAD).await.expect(200).body, cancelled.body);
    world.settle().await;
    assert_eq!(desk.emitted("booking.cancelled").await.len(), 1);
}

#[tokio::test]
async fn an_event_blocks_at_once_and_gets_its_buffers_with_its_calendar() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(2).await;
    let nine = midnight + TimeDelta::hours(9);
    world.publish([event("ada", &uuid(60), Some(OTHER_CALENDAR), nine, 60)]).await;
    world.settle().await;
    let entry = |buckets: Vec<(String, Value)>| buckets[0].1[uuid(60)].clone();
    let span = [nine.timestamp_millis(), (nine + TimeDelta::hours(1)).timestamp_millis()];
    assert_eq!(entry(world.buckets("ada").await), json!([span[0], span[1], 0, 0]));
    // By the workspace's clock, in New York.
    let shown = desk.list().await.remove(0);
    assert_eq!(shown["timezone"], "America/New_York");
    desk.book(slot(midnight.date_naive(), "09:00")).await.refused(409, "slot_unavailable");
    let calendar = Fact::calendar("ada", &uuid(OTHER_CALENDAR)).with("time_zone", "Europe/Berlin");
    world.apply([calendar.with("buffer_before_minutes", 15).with("buffer_after_minutes", 45)]).await;
    assert_eq!(entry(world.buckets("ada").await), json!([span[0], span[1], 15, 45]));
    assert_eq!(desk.list().await[0]["timezone"], "Europe/Berlin");
    desk.book(slot(midnight.date_naive(), "10:00")).await.refused(409, "slot_unavailable");
    desk.booked(slot(midnight.date_naive(), "11:00")).await;
    // A later calendar does not change stored events. An event whose calendar never comes is stored and is no dead
    // letter.
    let changed = Fact::calendar("ada", &uuid(OTHER_CALENDAR)).with("buffer_after_minutes", 0);
    world.apply([changed]).await;
    assert_eq!(entry(world.buckets("ada").await), json!([span[0], span[1], 15, 45]));
    world.publish([event("ada", &uuid(61), Some(98), nine + TimeDelta::hours(8), 60)]).await;
    world.advance_s(60 * 60).await;
    assert_eq!(desk.list().await.len(), 3);
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn long_events_block_and_give_way_again() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(5).await;
    let date = midnight.date_naive();
    let holiday = event("ada", &uuid(60), None, midnight, 60 * 24 * 40);
    world.apply([holiday.clone()]).await;
    assert_eq!(world.buckets("ada").await[0].0, "LONG");
    desk.book(slot(date + TimeDelta::days(20), "09:00")).await.refused(409, "slot_unavailable");
    desk.booked(slot(date + TimeDelta::days(40), "00:00")).await;
    let short = rendered(midnight + TimeDelta::days(31));
    world.apply([holiday.clone().with("ends_at", short)]).await;
    let days: Vec<String> = world.buckets("ada").await.into_iter().map(|(day, _)| day).collect();
    assert_eq!(days.len(), 33, "31 days, the booking's, and where the long one was: {days:?}");
    desk.booked(slot(date + TimeDelta::days(31), "00:00")).await;
    desk.book(slot(date + TimeDelta::days(30), "23:00")).await.refused(409, "slot_unavailable");
    world.apply([holiday.with("status", "cancelled")]).await;
    desk.booked(slot(date + TimeDelta::days(20), "09:00")).await;
}

#[tokio::test]
async fn a_fact_over_bookings_is_stored_and_emits_each_conflict_once() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(2).await;
    let (date, nine) = (midnight.date_naive(), midnight + TimeDelta::hours(9));
    for time in ["09:00", "10:00", "11:00"] {
        desk.booked(slot(date, time)).await;
    }
    let bookings = desk.list().await;
    let private = event("ada", &uuid(60), None, nine + TimeDelta::minutes(30), 60).with("id", "cause");
    world.apply([private.clone(), private.clone()]).await;
    world.apply([private.clone()]).await;
    let emitted = desk.emitted("booking.conflict").await;
    let over = json!({
        "event_id": uuid(60), "starts_at": rendered(nine + TimeDelta::minutes(30)), "ends_at": rendered(nine + TimeDelta::minutes(90)),
    });
    let mut seen: Vec<&Value> = emitted.iter().map(|fact| &fact["booking"]).collect();
    seen.sort_by_key(|booking| booking["startsAt"].to_string());
    assert_eq!(seen, [&bookings[0], &bookings[1]]);
    assert!(emitted.iter().all(|fact| fact["conflicts_with"] == over && fact["coach_id"] == "ada"));
    assert!(world.stored_event(&uuid(60)).await["conflict_check"].is_null());
    assert_eq!(desk.list().await, bookings);

    // No conflict for a backfill, between private events, at an event's earlier time, or where two events touch.
    let elsewhere = |id: u64, minutes: i64| event("ada", &uuid(id), None, nine + TimeDelta::minutes(minutes), 60);
    world.apply([elsewhere(61, 0).with("backfill", true), elsewhere(62, 300), elsewhere(63, 330)]).await;
    world.apply([private.clone().without("id"), elsewhere(64, -60)]).await;
    assert_eq!(desk.emitted("booking.conflict").await.len(), 2);
    // A booking that the application puts over another reports the one that was there first.
    let made = event("ada", &uuid(65), Some(CALENDAR), nine + TimeDelta::minutes(150), 60);
    world.apply([made]).await;
    let emitted = desk.emitted("booking.conflict").await;
    assert_eq!(emitted.len(), 3);
    let last = emitted.iter().find(|fact| fact["conflicts_with"]["event_id"] == uuid(65)).unwrap();
    assert_eq!(last["booking"], bookings[2]);
    // A private event that becomes a booking reports everything it overlaps, including the events of its own time.
    let becomes = elsewhere(63, 330).without("id").with("calendar_id", uuid(CALENDAR));
    world.apply([becomes.clone(), becomes.clone()]).await;
    world.apply([becomes]).await;
    let emitted = desk.emitted("booking.conflict").await;
    assert_eq!(emitted.len(), 4, "{emitted:?}");
    let conflict = emitted.iter().find(|fact| fact["booking"]["id"] == uuid(63)).unwrap();
    assert_eq!(conflict["conflicts_with"]["event_id"], uuid(62));
    // Back to a private event: no booking, so no conflict.
    world.apply([elsewhere(63, 330).without("id")]).await;
    // A move to a new time is checked again. A private event that moves over a booking is reported to that booking.
    let late = event("ada", &uuid(65), Some(CALENDAR), nine + TimeDelta::minutes(345), 30);
    world.apply([late]).await;
    let emitted = desk.emitted("booking.conflict").await;
    let with: Vec<&Value> = emitted.iter().skip(4).map(|fact| &fact["booking"]["id"]).collect();
    assert_eq!(with, [&json!(uuid(65)), &json!(uuid(65))]);
}

#[tokio::test]
async fn each_conflict_of_simultaneous_events_is_emitted_with_the_same_content() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(2).await;
    for round in 0..6 {
        let at_once = (0..5).map(|n| {
            let starts_at = midnight + TimeDelta::minutes(60 * round + n);
            world.publish([event(
                "ada",
                &uuid(300 + 10 * round.unsigned_abs() + n.unsigned_abs()),
                Some(CALENDAR),
                starts_at,
                30,
            )])
        });
        futures::future::join_all(at_once).await;
        world.settle().await;
    }
    let emitted = desk.emitted("booking.conflict").await;
    let ids: BTreeSet<&str> = emitted.iter().map(|fact| fact["id"].as_str().unwrap()).collect();
    let contents: BTreeSet<String> = emitted.iter().map(Value::to_string).collect();
    assert_eq!((ids.len(), contents.len()), (6 * 10, 6 * 10), "of {}", emitted.len());
}

#[tokio::test]
async fn a_conflict_is_emitted_although_the_function_that_found_it_died() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(2).await;
    desk.booked(slot(midnight.date_naive(), "09:00")).await;
    for (number, crashes) in [(60, 1), (61, 2)] {
        let emitted_before = desk.emitted("booking.conflict").await.len();
        world.faults(json!({ "function": "ingest", "crash_after_commit": crashes })).await;
        world.publish([event("ada", &uuid(number), None, midnight + TimeDelta::hours(9), 30)]).await;
        // The message returns after its visibility time-out.
        for _ in 0..3 {
            world.advance_s(200).await;
        }
        assert_eq!(desk.emitted("booking.conflict").await.len(), emitted_before + 1, "{crashes} crashes");
        assert!(world.stored_event(&uuid(number)).await["conflict_check"].is_null());
    }
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn an_event_over_a_day_of_bookings_emits_each_conflict_once() {
    const BOOKINGS: u64 = 90;
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(2).await;
    let booked = (0..BOOKINGS).map(|number| {
        let starts = midnight + TimeDelta::minutes(15 * i64::try_from(number).unwrap());
        event("ada", &uuid(100 + number), Some(CALENDAR), starts, 15).with("lead_id", uuid(LEAD))
    });
    world.apply(booked).await;
    assert!(desk.emitted("booking.conflict").await.is_empty());
    let holiday = event("ada", &uuid(60), None, midnight, 24 * 60).with("id", "holiday");
    // The function dies between the transactions that report the conflicts, and the fact returns.
    world.faults(json!({ "function": "ingest", "crash_after_commit": 2 })).await;
    world.apply([holiday]).await;
    world.advance_s(600).await;
    let emitted = desk.emitted("booking.conflict").await;
    let of: BTreeSet<String> = emitted.iter().map(|fact| fact["booking"]["id"].to_string()).collect();
    assert_eq!(of.len() as u64, BOOKINGS);
    let ids: BTreeSet<String> = emitted.iter().map(|fact| fact["id"].to_string()).collect();
    assert_eq!(ids.len() as u64, BOOKINGS, "repeats have the same id");
    assert!(world.stored_event(&uuid(60)).await["conflict_check"].is_null());
}
