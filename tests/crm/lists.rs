//! Lists of the CRM: pages in either direction, and the parameters that all lists take.

use serde_json::Value;

use crate::crm::bookings::{LEAD, event};
use crate::world::{Caller, Fact, World, ids, uuid};

const LISTS: [&str; 5] = ["contacts", "opportunities", "calendars", "bookings", "workflows"];

/// Reads a list page by page to its end. `query` has the other parameters, as `a=b&c=d`.
pub(crate) async fn walk(key: &Caller, list: &str, query: &str, limit: usize) -> Vec<Value> {
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = key.get(&format!("/v1/crm/{list}?{query}&limit={limit}&cursor={cursor}")).await.expect(200);
        assert_eq!(page.members(), ["data", "next_cursor"]);
        let data = page.body["data"].as_array().unwrap();
        assert!(data.len() <= limit, "{}", page.text);
        walked.extend(data.iter().cloned());
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return walked,
        }
    }
}

/// The ids of a walk, in order.
pub(crate) async fn walked_ids(key: &Caller, list: &str, query: &str, limit: usize) -> Vec<String> {
    let walked = walk(key, list, query, limit).await;
    walked.iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect()
}

/// A coach with five records in each list. Returns a caller with her key.
async fn five_of_each(world: &World, coach: &str) -> Caller {
    let key = world.coach(coach).await.crm_key().await;
    let at = world.midnight_in(2).await;
    let numbers = [13, 11, 15, 12, 14];
    let facts = numbers.into_iter().flat_map(|number| {
        let id = uuid(number);
        [
            Fact::contact(coach, &id),
            Fact::opportunity(coach, &id, &uuid(11)),
            Fact::calendar(coach, &id),
            event(coach, &id, Some(11), at, 60),
            Fact::workflow(coach, &id),
        ]
    });
    world.apply([Fact::pipeline(coach)].into_iter().chain(facts)).await;
    key
}

#[tokio::test]
async fn every_list_goes_up_by_default_and_down_on_demand_page_by_page() {
    let world = World::start().await;
    let key = five_of_each(&world, "ada").await;
    five_of_each(&world, "bob").await;
    let up = [11, 12, 13, 14, 15].map(uuid);
    let down = [15, 14, 13, 12, 11].map(uuid);
    for list in LISTS {
        let default = key.get(&format!("/v1/crm/{list}")).await.expect(200);
        let without_updates = ["calendars", "workflows"].contains(&list);
        let empty_time = if without_updates { "cursor=" } else { "updated_since=&order=" };
        for same in ["order=asc", "order=", "order=asc&order=desc", empty_time] {
            let reply = key.get(&format!("/v1/crm/{list}?{same}")).await.expect(200);
            assert_eq!(reply.text, default.text, "{list} {same}");
        }
        for limit in 1..=6 {
            assert_eq!(walked_ids(&key, list, "order=asc", limit).await, up, "{list} {limit}");
            assert_eq!(walked_ids(&key, list, "order=desc", limit).await, down, "{list} {limit}");
        }
        // The record of a cursor may be gone, in either direction and at either end.
        let (least, most) = ("00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF");
        for cursor in [uuid(13), uuid(10), uuid(16), least.to_owned(), most.to_owned()] {
            for (order, all) in [("asc", &up), ("desc", &down)] {
                let is_rest = |id: &&String| **id != cursor && (**id > cursor.to_lowercase()) == (order == "asc");
                let rest: Vec<String> = all.iter().filter(is_rest).cloned().collect();
                let page = key.get(&format!("/v1/crm/{list}?order={order}&cursor={cursor}")).await.expect(200);
                assert_eq!(
                    (ids(&page.body), &page.body["next_cursor"]),
                    (rest, &Value::Null),
                    "{list} {order} {cursor}"
                );
            }
        }
        let whole = key.get(&format!("/v1/crm/{list}?limit=5")).await.expect(200);
        assert_eq!(whole.body["next_cursor"], Value::Null, "{list}: a full last page is known to be the last");
        let first = key.get(&format!("/v1/crm/{list}?order=desc&limit=2")).await.expect(200);
        assert_eq!(first.str("next_cursor"), uuid(14), "{list}");
        if !without_updates {
            let mut updated = walked_ids(&key, list, "updated_since=2000-01-01T00:00:00Z", 2).await;
            updated.sort_unstable();
            assert_eq!(updated, up, "{list}: none of the other coach, whose records have the same ids");
        }
    }
}

#[tokio::test]
async fn a_parameter_that_breaks_its_rule_is_named() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    for list in LISTS {
        for (field, bad) in [("order", "DESC"), ("cursor", "next")] {
            let reply = key.get(&format!("/v1/crm/{list}?{field}={bad}")).await.refused_for(field);
            assert_eq!(reply.body["field"], field, "{list}");
        }
    }
    // A misspelt filter would show everybody.
    for (list, unknown, known) in [
        ("contacts", "emial", "email"),
        ("contacts", "phone", "email"),
        ("opportunities", "contactId", "updated_since"),
        ("bookings", "lead_id", "leadId"),
        ("bookings", "Limit", "limit"),
        ("calendars", "updated_since", "cursor"),
        ("workflows", "updated_since", "order"),
    ] {
        let reply = key.get(&format!("/v1/crm/{list}?limit=5&{unknown}=x")).await.refused_for(unknown);
        assert_eq!(reply.body["field"], unknown, "{list}");
        assert!(reply.error().contains(known), "{}", reply.text);
    }
    let since = "updated_since=2026-01-01T00:00:00Z";
    let opaque = opaque_cursor(&key).await;
    for list in ["contacts", "opportunities", "bookings"] {
        for (query, field) in [
            ("updated_since=2026-01-01".to_owned(), "updated_since"),
            (format!("{since}&order=asc"), "order"),
            (format!("{since}&cursor={}", uuid(1)), "cursor"),
            (format!("{since}&cursor={opaque}="), "cursor"),
            (format!("cursor={opaque}"), "cursor"),
        ] {
            let reply = key.get(&format!("/v1/crm/{list}?{query}")).await.refused_for(field);
            assert_eq!(reply.body["field"], field, "{list} {query}");
        }
        for good in ["2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00%2B02:00", "0000-01-01T00:00:00Z"] {
            key.get(&format!("/v1/crm/{list}?updated_since={good}&order=&cursor=")).await.expect(200);
        }
        let none = key.get(&format!("/v1/crm/{list}?updated_since=9999-12-31T23:59:59.999Z")).await.expect(200);
        assert_eq!(none.text, r#"{"data":[],"next_cursor":null}"#);
    }
    for (filter, bad) in [("from", "2026-01-01"), ("to", "now"), ("calendarId", "1"), ("leadId", "lead")] {
        for other in ["", "order=desc&", &format!("{since}&")] {
            let reply = key.get(&format!("/v1/crm/bookings?{other}{filter}={bad}")).await.refused_for(filter);
            assert_eq!(reply.body["field"], filter);
        }
        let [empty, none] = [format!("?{filter}="), String::new()].map(|query| format!("/v1/crm/bookings{query}"));
        assert_eq!(key.get(&empty).await.expect(200).text, key.get(&none).await.expect(200).text);
    }
}

/// A cursor of the list of updates.
async fn opaque_cursor(key: &Caller) -> String {
    let path = "/v1/crm/contacts?updated_since=2000-01-01T00:00:00Z&limit=1";
    let page = key.get(path).await.expect(200);
    assert_eq!(page.body["data"][0]["id"], uuid(LEAD));
    let cursor = page.str("next_cursor").to_owned();
    assert_eq!(key.get(&format!("{path}&cursor={cursor}")).await.expect(200).body["next_cursor"], Value::Null);
    cursor
}
