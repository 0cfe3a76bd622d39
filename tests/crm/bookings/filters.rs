//! Filters of `GET /v1/crm/bookings`: by start, calendar and contact, with every order.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, Desk, LEAD, OTHER_CALENDAR, OTHER_LEAD, event, slot};
use crate::crm::contacts::merges::{merged, pseudo_random};
use crate::crm::lists::{walk, walked_ids};
use crate::world::{Bill, Caller, Fact, World, ids, rendered, uuid};

const LONG_AGO: &str = "updated_since=2000-01-01T00:00:00Z";

#[tokio::test]
async fn every_combination_of_filter_and_order_shows_what_a_model_shows_page_by_page() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let midnight = world.midnight_in(2).await;
    let mut pick = pseudo_random(48);
    let mut facts: Vec<Fact> = Vec::new();
    for number in 0..24_u64 {
        let calendar = [None, Some(CALENDAR), Some(CALENDAR), Some(OTHER_CALENDAR)][pick(4)];
        let starts = midnight + TimeDelta::hours(pick(10) as i64);
        let lead = [Value::Null, json!(uuid(LEAD)), json!(uuid(OTHER_LEAD))][pick(3)].clone();
        let fact = event("ada", &uuid(100 + (number * 7) % 24), calendar, starts, 30).with("lead_id", lead);
        facts.push(fact.with("status", if pick(4) == 0 { "cancelled" } else { "confirmed" }));
    }
    for fact in facts {
        world.apply([fact]).await;
    }
    let by_id = walk(&desk.key, "bookings", "", 200).await;
    let by_update = walk(&desk.key, "bookings", LONG_AGO, 200).await;
    assert!(by_id.len() > 8 && by_update.len() > by_id.len(), "{} {}", by_id.len(), by_update.len());
    let [from, to] = [3, 7].map(|hour| rendered(midnight + TimeDelta::hours(hour)));
    let filters = [
        ("from", from.clone()),
        ("to", to.clone()),
        ("calendarId", uuid(CALENDAR).to_uppercase()),
        ("leadId", uuid(LEAD).to_uppercase()),
    ];
    for chosen in 1..1 << filters.len() {
        let given = filters.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, filter)| filter);
        let given: Vec<_> = given.collect();
        let is_shown = |booking: &&Value| {
            given.iter().all(|(name, value)| match *name {
                "from" => booking["startsAt"].as_str().unwrap() >= value.as_str(),
                "to" => booking["startsAt"].as_str().unwrap() < value.as_str(),
                name => booking[name].as_str().is_some_and(|id| id.eq_ignore_ascii_case(value)),
            })
        };
        let query: String = given.iter().map(|(name, value)| format!("&{name}={value}")).collect();
        // A key has 300 requests a minute.
        world.advance_to_next_minute().await;
        for (order, all) in [("order=", &by_id), ("order=desc", &by_id), (LONG_AGO, &by_update)] {
            let mut expected: Vec<Value> = all.iter().filter(is_shown).cloned().collect();
            if order == "order=desc" {
                expected.reverse();
            }
            for limit in [1, 3, 200] {
                let walked = walk(&desk.key, "bookings", &format!("{order}{query}"), limit).await;
                assert_eq!(walked, expected, "{order}{query} by {limit}");
            }
        }
    }
}

#[tokio::test]
async fn a_lead_is_a_person_by_each_id_that_merges_have_left() {
    const THIRD: u64 = 3;
    const LAST: u64 = 4;
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    world.apply([THIRD, LAST].map(|lead| Fact::contact("ada", &uuid(lead)))).await;
    let date = world.midnight_in(2).await.date_naive();
    let mut bookings = Vec::new();
    for (lead, time) in [(LEAD, "09:00"), (OTHER_LEAD, "10:00"), (THIRD, "11:00"), (LAST, "12:00")] {
        let mut draft = slot(date, time);
        draft["leadId"] = json!(uuid(lead));
        bookings.push(desk.booked(draft).await);
    }
    let found = async |key: &Caller, lead: u64| {
        let by_id = walked_ids(key, "bookings", &format!("leadId={}", uuid(lead)), 5).await;
        let mut by_update = walked_ids(key, "bookings", &format!("{LONG_AGO}&leadId={}", uuid(lead)), 1).await;
        by_update.sort_unstable();
        assert_eq!(by_id, by_update, "{lead}");
        by_id
    };
    // One and two merge into three, over each other; then three into the last.
    world.apply([merged(LEAD, OTHER_LEAD), merged(OTHER_LEAD, THIRD)]).await;
    for lead in [LEAD, OTHER_LEAD, THIRD] {
        assert_eq!(found(&desk.key, lead).await, bookings[..3], "{lead}");
    }
    assert_eq!(found(&desk.key, LAST).await, bookings[3..]);
    world.apply([merged(THIRD, LAST)]).await;
    for lead in [LEAD, OTHER_LEAD, THIRD, LAST] {
        assert_eq!(found(&desk.key, lead).await, bookings, "{lead}");
    }
    // A later merge leads elsewhere.
    world.apply([merged(LEAD, 5)]).await;
    assert_eq!(found(&desk.key, 5).await, bookings[..1]);
    assert_eq!(found(&desk.key, LAST).await, bookings[1..]);
    let bob = world.booking_coach("bob").await;
    assert!(found(&bob, LEAD).await.is_empty());
}

/// Bookings that a request with a filter reads.
const MOST_READ: u64 = 2_000;

#[tokio::test]
async fn a_request_with_a_filter_reads_a_limited_number_of_bookings_and_the_next_page_goes_on() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let midnight = world.midnight_in(2).await;
    world.apply([event("ada", &uuid(1_000), Some(CALENDAR), midnight, 30)]).await;
    let items = world.items("crm", "COACH#ada").await;
    let booking = items.iter().find(|item| item["sk"]["S"] == format!("EVENT#{}", uuid(1_000))).unwrap();
    let another = |number: u64| -> Value {
        serde_json::from_str(&booking.to_string().replace(&uuid(1_000), &uuid(number))).unwrap()
    };
    let last = 1_000 + MOST_READ + 400;
    world.put_items("crm", &(1_001..last).map(another).collect::<Vec<_>>()).await;
    let at_end = event("ada", &uuid(last), Some(OTHER_CALENDAR), midnight, 30);
    world.apply([at_end]).await;
    for order in ["order=asc", LONG_AGO] {
        let path = format!("/v1/crm/bookings?{order}&calendarId={}", uuid(OTHER_CALENDAR));
        let first = desk.key.get(&path).await.expect(200);
        assert!(ids(&first.body).is_empty());
        let bill = Bill::of(&world.calls("crm-bookings").await[0]);
        assert!(bill.calls <= 6 && bill.read_units <= 400.0, "{bill:?}");
        if order == "order=asc" {
            assert_eq!(first.str("next_cursor"), uuid(1_000 + MOST_READ - 1), "the last booking that was read");
        }
        let rest = desk.key.get(&format!("{path}&cursor={}", first.str("next_cursor"))).await.expect(200);
        assert_eq!((ids(&rest.body), &rest.body["next_cursor"]), (vec![uuid(last)], &Value::Null));
    }
    // A page is full before the limit, and the next one goes on after its last booking.
    let path = format!("/v1/crm/bookings?limit=2&calendarId={}", uuid(CALENDAR));
    let first = desk.key.get(&path).await.expect(200);
    assert_eq!((ids(&first.body), first.str("next_cursor")), ([1_000, 1_001].map(uuid).to_vec(), uuid(1_001).as_str()));
    let bill = Bill::of(&world.calls("crm-bookings").await[0]);
    assert!(bill.calls <= 3 && bill.read_units <= 100.0, "{bill:?}");
    let down = desk.key.get(&format!("{path}&order=desc")).await.expect(200);
    assert_eq!(ids(&down.body), [last - 1, last - 2].map(uuid));
}
