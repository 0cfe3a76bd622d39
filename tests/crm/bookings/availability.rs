//! `POST /v1/crm/bookings/availability`: a slot is listed if and only if it can be booked.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, Desk, LEAD, OTHER_CALENDAR, OTHER_LEAD, event, slot, to};
use crate::crm::contacts::merges::merged;
use crate::world::{Caller, Fact, Reply, World, uuid};

/// Opening hours that are the same on each day of the week.
fn daily(hours: &Value) -> Value {
    json!({ "mon": hours, "tue": hours, "wed": hours, "thu": hours, "fri": hours, "sat": hours, "sun": hours })
}

/// A calendar that is open from 09:00 to 12:00.
fn mornings(calendar: u64) -> Fact {
    let weekly = daily(&json!([["09:00", "12:00"]]));
    Fact::calendar("ada", &uuid(calendar)).with("weekly", weekly).with("horizon_days", 7)
}

async fn desk(world: &World, calendar: Fact) -> Desk<'_> {
    let key = world.booking_coach("ada").await;
    world.apply([calendar]).await;
    Desk { world, key }
}

async fn ask(key: &Caller, body: Value) -> Reply {
    key.post("/v1/crm/bookings/availability", body).await
}

/// The slots of a calendar by date.
async fn slots(desk: &Desk<'_>, calendar: u64) -> BTreeMap<NaiveDate, Vec<String>> {
    times(desk, json!({ "leadId": uuid(LEAD), "calendarId": uuid(calendar) })).await
}

/// The slots of the first calendar of an answer by date.
async fn times(desk: &Desk<'_>, body: Value) -> BTreeMap<NaiveDate, Vec<String>> {
    let answer = ask(&desk.key, body).await.expect(200);
    let days = answer.body["calendars"][0]["days"].as_array().unwrap();
    let texts =
        |day: &Value| day["slots"].as_array().unwrap().iter().map(|time| time.as_str().unwrap().to_owned()).collect();
    days.iter().map(|day| (day["date"].as_str().unwrap().parse().unwrap(), texts(day))).collect()
}

#[tokio::test]
async fn bookable_calendars_show_every_day_of_their_horizon() {
    let world = World::start().await;
    desk(&world, mornings(CALENDAR)).await;
    let paid = mornings(OTHER_CALENDAR).with("price_cents", 4_900).with("currency", "EUR").with("horizon_days", 2);
    world.apply([paid, mornings(12).with("active", false)]).await;
    let today = world.now().await.date_naive();
    let reader = world.coach("ada").await.crm_key_with(&["bookings.read"]).await;
    let answer = ask(&reader, json!({ "leadId": uuid(LEAD) })).await.expect(200);
    assert_eq!(answer.members(), ["calendars", "ok"]);
    assert_eq!(answer.body["ok"], true);
    let calendars = answer.body["calendars"].as_array().unwrap();
    let shown: Vec<&Value> = calendars.iter().map(|calendar| &calendar["id"]).collect();
    assert_eq!(shown, [&json!(uuid(CALENDAR)), &json!(uuid(OTHER_CALENDAR))]);
    let mut paid = calendars[1].clone();
    let days = paid["days"].take();
    let expected = json!({
        "id": uuid(OTHER_CALENDAR), "name": "Calls", "timezone": "UTC", "priceCents": 4_900, "currency": "EUR",
        "bookingUrl": "https://ada.example/book", "days": null,
    });
    assert_eq!((paid, days.as_array().unwrap().len()), (expected, 2));
    let days = calendars[0]["days"].as_array().unwrap();
    assert_eq!(days.len(), 7);
    for (n, day) in days.iter().enumerate().skip(1) {
        let date = today + TimeDelta::days(n as i64);
        assert_eq!(day, &json!({ "date": date, "slots": ["09:00", "10:00", "11:00"] }));
    }
}

#[tokio::test]
async fn the_contact_and_the_calendar_of_a_query_must_exist() {
    let world = World::start().await;
    let desk = desk(&world, mornings(CALENDAR)).await;
    world.apply([mornings(12).with("active", false), merged(OTHER_LEAD, LEAD)]).await;
    let about = |lead: u64, calendar: u64| json!({ "leadId": uuid(lead), "calendarId": uuid(calendar) });
    ask(&desk.key, about(99, CALENDAR)).await.refused(404, "not_found");
    let gone = ask(&desk.key, about(OTHER_LEAD, CALENDAR)).await.refused(409, "contact_merged");
    assert_eq!(gone.body["mergedIntoId"], uuid(LEAD));
    for missing in [99, 12] {
        ask(&desk.key, about(LEAD, missing)).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn exactly_the_listed_slots_can_be_booked() {
    let world = World::start().await;
    let desk = desk(&world, mornings(CALENDAR)).await;
    let midnight = world.midnight_in(1).await;
    let date = midnight.date_naive();
    // Half-hour steps, a quarter of an hour before and three quarters after.
    let calendar = mornings(CALENDAR)
        .with("slot_interval_minutes", 30)
        .with("buffer_before_minutes", 15)
        .with("buffer_after_minutes", 45)
        .with("min_notice_minutes", 30);
    // Events of another calendar, in another zone, take its time and its buffers.
    let other = Fact::calendar("ada", &uuid(OTHER_CALENDAR)).with("time_zone", "America/New_York");
    world.apply([calendar, other.with("buffer_before_minutes", 75)]).await;
    let at = |minutes: i64| midnight + TimeDelta::minutes(minutes);
    let day = |n: i64| date + TimeDelta::days(n);
    world
        .apply([
            // Private, until 09:15 tomorrow: the booking's own buffer counts.
            event("ada", &uuid(60), None, at(480), 75),
            // Cancelled, and without length.
            event("ada", &uuid(61), None, at(1_440 + 540), 180).with("status", "cancelled"),
            event("ada", &uuid(62), None, at(1_440 + 600), 0),
            // From 11:00 two days from now: nothing may end within 45 minutes before it.
            event("ada", &uuid(63), None, at(2 * 1_440 + 660), 60),
            event("ada", &uuid(64), Some(OTHER_CALENDAR), at(3 * 1_440 + 660), 60),
        ])
        .await;
    let listed = slots(&desk, CALENDAR).await;
    assert_eq!(listed[&day(0)], ["09:30", "10:00", "10:30", "11:00"]);
    assert_eq!(listed[&day(1)], ["09:00", "09:30", "10:00", "10:30", "11:00"]);
    assert_eq!(listed[&day(2)], ["09:00"]);
    assert!(listed[&day(3)].is_empty());
    for n in 0..4 {
        for half in 0..48 {
            let time = format!("{:02}:{:02}", half / 2, half % 2 * 30);
            let offered = slots(&desk, CALENDAR).await[&day(n)].contains(&time);
            let reply = desk.book(slot(day(n), &time)).await;
            assert_eq!(reply.status == 201, offered, "{} {time}: {}", day(n), reply.text);
        }
        world.advance_to_next_minute().await;
    }
}

#[tokio::test]
async fn a_booking_can_be_moved_to_exactly_the_times_that_are_listed_for_it() {
    let world = World::start().await;
    let halves = mornings(CALENDAR).with("slot_interval_minutes", 30);
    let made_with = halves.clone().with("slot_minutes", 30).with("buffer_before_minutes", 30);
    let desk = desk(&world, made_with).await;
    let midnight = world.midnight_in(1).await;
    let day = |n: i64| midnight.date_naive() + TimeDelta::days(n);
    let booking = desk.booked(slot(day(0), "10:00")).await;
    // The booking keeps its half hour and its buffer. The price does not matter.
    let paid = halves.clone().with("buffer_after_minutes", 15).with("price_cents", 9);
    let taken = event("ada", &uuid(60), None, midnight + TimeDelta::hours(24 + 10), 30);
    world.apply([paid, taken]).await;
    let for_it = json!({ "leadId": uuid(LEAD), "bookingId": booking });
    let listed = times(&desk, for_it.clone()).await;
    assert_eq!(listed[&day(0)], ["09:00", "09:30", "10:00", "10:30", "11:00", "11:30"], "its own time is free");
    assert_eq!(listed[&day(1)], ["09:00", "11:00", "11:30"]);
    for n in 0..2 {
        for half in 0..48 {
            let time = format!("{:02}:{:02}", half / 2, half % 2 * 30);
            let moved = desk.reschedule(&booking, to(day(n), &time)).await;
            assert_eq!(moved.status == 200, listed[&day(n)].contains(&time), "{} {time}: {}", day(n), moved.text);
        }
    }

    let with = |members: Value| {
        let mut body = for_it.clone();
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        body
    };
    let on_its_own = times(&desk, with(json!({ "calendarId": uuid(CALENDAR) }))).await;
    assert_eq!(on_its_own, times(&desk, for_it.clone()).await);
    ask(&desk.key, with(json!({ "calendarId": uuid(OTHER_CALENDAR) }))).await.refused_for("calendarId");
    ask(&desk.key, with(json!({ "bookingId": "x" }))).await.refused_for("bookingId");
    ask(&desk.key, with(json!({ "bookingId": uuid(99) }))).await.refused(404, "not_found");
    ask(&desk.key, with(json!({ "leadId": uuid(OTHER_LEAD) }))).await.refused(404, "not_found");
    world.apply([merged(LEAD, OTHER_LEAD)]).await;
    for lead in [LEAD, OTHER_LEAD] {
        assert_eq!(times(&desk, with(json!({ "leadId": uuid(lead) }))).await, on_its_own);
    }
    world.apply([halves.with("active", false)]).await;
    let closed = ask(&desk.key, for_it.clone()).await.expect(200);
    assert_eq!(closed.body, json!({ "ok": true, "calendars": [] }));
    desk.cancel(&booking, LEAD).await.expect(200);
    ask(&desk.key, for_it).await.refused(409, "booking_not_active");
}

/// A calendar with the maximum of opening hours a day, each overlapping the next.
fn crowded(calendar: u64, interval: u32) -> Fact {
    let hours: Vec<_> = (0..24).map(|n| [format!("{n:02}:{n:02}"), format!("{:02}:59", (n + 1).min(23))]).collect();
    let fact = Fact::calendar("ada", &uuid(calendar)).with("weekly", daily(&json!(hours)));
    fact.with("slot_minutes", 5).with("slot_interval_minutes", interval).with("horizon_days", 400)
}

/// Below the gateway's time-out.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(22);

#[tokio::test]
async fn an_answer_is_bounded_by_what_it_computes() {
    let world = World::start().await;
    let desk = desk(&world, crowded(CALENDAR, 5)).await;
    world.apply((100..160).map(|number| crowded(number, 5))).await;
    // The coach is away. No slot is free, so the limit on listed slots cannot end the search.
    let away = event("ada", &uuid(60), None, world.midnight_in(-1).await, 402 * 1_440);
    world.apply([away]).await;
    let began = std::time::Instant::now();
    let refused = ask(&desk.key, json!({ "leadId": uuid(LEAD) })).await.refused_for("calendarId");
    assert!(began.elapsed() < DEADLINE / 4, "it took {:?}", began.elapsed());
    assert!(refused.error().contains("150000"), "{}", refused.text);
    for calendar in (100..160).chain([CALENDAR]) {
        let began = std::time::Instant::now();
        let listed = slots(&desk, calendar).await;
        assert!(began.elapsed() < DEADLINE, "it took {:?}", began.elapsed());
        assert_eq!((listed.len(), listed.values().map(Vec::len).sum::<usize>()), (400, 0));
    }
    // Two calendars with few enough slots between them are answered together.
    world.apply((100..160).map(|number| crowded(number, 5).with("active", false))).await;
    world.apply([crowded(100, 30)]).await;
    let both = ask(&desk.key, json!({ "leadId": uuid(LEAD) })).await.expect(200);
    assert_eq!(both.body["calendars"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_answer_of_over_20_000_slots_asks_for_a_calendar() {
    let world = World::start().await;
    let dense = Fact::calendar("ada", &uuid(CALENDAR)).with("slot_minutes", 5).with("slot_interval_minutes", 5);
    let desk = desk(&world, dense).await;
    let all = ask(&desk.key, json!({ "leadId": uuid(LEAD) })).await;
    let refused = all.refused_for("calendarId");
    assert_eq!(refused.body["field"], "calendarId");
    let one: usize = slots(&desk, CALENDAR).await.values().map(Vec::len).sum();
    assert!(one > 114_000, "{one}");
}
