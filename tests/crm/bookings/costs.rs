//! Costs of calendars and bookings: calls to the store, and the longest sequence of dependent calls.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, Desk, LEAD, event, slot, to};
use crate::world::{Bill, Fact, World, assert_cost, uuid};

const FUNCTION: &str = "crm-bookings";

#[tokio::test]
async fn a_write_takes_four_calls_in_sequence_and_a_list_two() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let date = world.midnight_in(2).await.date_naive();
    let next = || date + TimeDelta::days(world.number() as i64 % 300);
    let create = async || drop(desk.booked(slot(next(), "09:00")).await);
    assert_cost(&world, FUNCTION, create, |bill: &Bill| bill.calls <= 6 && bill.write_units <= 25.0, 4).await;
    let booking = desk.booked(slot(next(), "13:00")).await;
    let reschedule = async || drop(desk.reschedule(&booking, to(next(), "15:00")).await.expect(200));
    assert_cost(&world, FUNCTION, reschedule, |bill: &Bill| bill.calls <= 6 && bill.write_units <= 27.0, 4).await;
    let cancel = async || {
        let booking = desk.booked(slot(next(), "17:00")).await;
        desk.cancel(&booking, LEAD).await.expect(200);
    };
    assert_cost(&world, FUNCTION, cancel, |bill: &Bill| bill.calls <= 6 && bill.write_units <= 21.0, 4).await;
    for path in ["/v1/crm/bookings", "/v1/crm/calendars"] {
        let list = async || drop(desk.key.get(path).await.expect(200));
        assert_cost(&world, FUNCTION, list, |bill: &Bill| bill.calls <= 3, 2).await;
    }
}

#[tokio::test]
async fn availability_for_60_days_with_500_events_takes_three_calls_in_sequence() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    world.apply([Fact::calendar("ada", &uuid(CALENDAR)).with("horizon_days", 60)]).await;
    let midnight = world.midnight_in(0).await;
    let events = (0..500).map(|n| {
        let starts = midnight + TimeDelta::minutes(n * 172);
        event("ada", &uuid(1_000 + n as u64), (n % 2 == 0).then_some(CALENDAR), starts, 45)
    });
    world.apply(events).await;
    for body in [json!({ "leadId": uuid(LEAD) }), json!({ "leadId": uuid(LEAD), "calendarId": uuid(CALENDAR) })] {
        let ask = async || {
            let answer = key.post("/v1/crm/bookings/availability", body.clone()).await.expect(200);
            let days = answer.body["calendars"][0]["days"].as_array().unwrap();
            assert_eq!(days.len(), 60);
            assert!(days[30]["slots"].as_array().is_some_and(|slots: &Vec<Value>| slots.len() < 24));
        };
        let affordable = |bill: &Bill| bill.calls <= 5 && bill.read_units < 30.0 && bill.write_units == 1.0;
        assert_cost(&world, FUNCTION, ask, affordable, 3).await;
    }
}
