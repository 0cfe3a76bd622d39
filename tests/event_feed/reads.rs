//! Pages of the feed: their events, their order, filters, cursors, and the time for which events are kept.

use chrono::TimeDelta;
use serde_json::json;

use super::{follow, id, ids, message, page, reader, reader_of, whole_feed};
use crate::crm::contacts::merges::pseudo_random;
use crate::feed::erasure::life;
use crate::world::{Fact, Receiver, World, emitted_events, list, made_up_cursor, members, position_of, time, uuid};

const DAY_S: u64 = 86_400;

#[tokio::test]
async fn the_feed_has_the_bodies_and_ids_of_webhooks_in_the_payload_mode_of_the_key() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let modes = ["identifiers", "contact_details"];
    let mut keys = Vec::new();
    for mode in modes {
        let body =
            json!({ "url": receiver.url(), "events": emitted_events(), "payload_mode": mode, "description": mode });
        settings.post("/settings/webhooks", body).await.expect(201);
        keys.push(reader(&ada, mode).await);
    }
    let client = Fact::client("ada", "c1").with("email", "grace@example.com").with("phone", "+1 415 555 0132");
    world.apply([client].into_iter().chain(life("c1", "Build"))).await;
    world.settle().await;
    let sent: Vec<_> = receiver.hooks();
    for (mode, key) in modes.into_iter().zip(&keys) {
        let events = whole_feed(key).await;
        assert_eq!(events.len(), 4, "{events:?}");
        for event in &events {
            assert_eq!(members(event), ["data", "id", "timestamp", "type"]);
            let mut body = event.clone();
            body.as_object_mut().unwrap().remove("id");
            let names_person = mode == "contact_details";
            assert_eq!(event["data"]["client"]["email"] == "grace@example.com", names_person, "{event}");
            let same = sent.iter().filter(|hook| hook.header("webhook-id") == id(event) && hook.json() == body);
            assert_eq!(same.count(), 1, "{event}");
        }
    }
}

#[tokio::test]
async fn an_ascending_reader_always_has_a_cursor_and_gets_what_is_stored_later() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    let empty = page(&key, "").await;
    assert_eq!((empty.data.len(), empty.has_more), (0, false));
    let (mut got, mut cursor) = (Vec::new(), empty.next_cursor.unwrap());
    world.apply([Fact::client("ada", "c1")]).await;
    for round in 0..5 {
        let at = world.timestamp_in(0).await;
        world.apply((0..round).map(|number| message("c1", 10 * round + number, &at))).await;
        let (events, next) = follow(&key, &cursor, 2).await;
        got.extend(events);
        assert_eq!(follow(&key, &next, 2).await.0.len(), 0);
        cursor = next;
    }
    assert_eq!(got.len(), 11);
    assert_eq!(ids(&got), ids(&whole_feed(&key).await));
}

#[tokio::test]
async fn a_descending_reader_gets_the_newest_events_first_and_null_at_the_end() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    assert_eq!(page(&key, "order=desc").await.next_cursor, None);
    world.apply([Fact::client("ada", "c1")]).await;
    let mut middle = String::new();
    for number in 0..6 {
        world.advance_s(10).await;
        let at = world.timestamp_in(0).await;
        world.apply([message("c1", number, &at)]).await;
        if number == 3 {
            middle = at;
        }
    }
    let mut newest_first = ids(&whole_feed(&key).await);
    newest_first.reverse();
    let first = page(&key, "order=desc&limit=4").await;
    assert_eq!((ids(&first.data), first.has_more), (newest_first[..4].to_vec(), true));
    world.apply([message("c1", 99, &world.timestamp_in(0).await)]).await;
    let second = page(&key, &format!("order=desc&limit=4&cursor={}", first.next_cursor.unwrap())).await;
    assert_eq!((ids(&second.data), second.next_cursor, second.has_more), (newest_first[4..].to_vec(), None, false));
    for order in ["asc", "desc"] {
        let mut since = ids(&page(&key, &format!("order={order}&since={middle}")).await.data);
        since.sort_unstable();
        let mut expected = newest_first[..3].to_vec();
        expected.push(page(&key, "order=desc&limit=1").await.data[0]["id"].as_str().unwrap().to_owned());
        expected.sort_unstable();
        assert_eq!(since, expected, "{order}: the bound is inclusive");
    }
}

#[tokio::test]
async fn an_event_of_a_fast_clock_counts_as_of_its_storing_and_since_finds_it_in_either_order() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    world.apply([Fact::client("ada", "c1")]).await;
    world.advance_s(60).await;
    let before = world.timestamp_in(-1).await;
    let ahead = world.timestamp_in(4).await;
    let contact = Fact::contact("ada", &uuid(1)).with("occurred_at", ahead.as_str());
    for fact in [message("c1", 1, &ahead), message("c1", 2, &ahead), contact, message("c1", 3, &before)] {
        world.apply([fact]).await;
    }
    let stored_by = world.now().await;
    let events = whole_feed(&key).await;
    assert!(events.iter().all(|event| time(&event["timestamp"]) <= stored_by), "{events:?}");
    for (since, count) in [(&before, 4), (&ahead, 0)] {
        for order in ["asc", "desc"] {
            let found = page(&key, &format!("order={order}&since={since}")).await.data;
            assert_eq!(found.len(), count, "{order} {since}: {found:?}");
        }
    }
}

#[tokio::test]
async fn types_choose_events_and_every_page_of_any_size_together_has_all_of_them() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    let mut random = pseudo_random(7);
    for client in 0..12 {
        let client = format!("c{client}");
        let mut facts = vec![Fact::client("ada", &client)];
        facts.extend(life(&client, "Build").into_iter().filter(|_| random(2) == 0));
        world.apply(facts).await;
    }
    let whole = whole_feed(&key).await;
    for types in
        ["new_client", "new_client,message_received,new_client", "phase_advanced,low_check_in_score,check_in_submitted"]
    {
        let wanted: Vec<_> =
            whole.iter().filter(|event| types.split(',').any(|named| event["type"] == named)).cloned().collect();
        for order in ["asc", "desc"] {
            for limit in [1, 3, 200] {
                let (mut got, mut cursor) = (Vec::new(), String::new());
                loop {
                    let query = format!("types={types}&order={order}&limit={limit}&cursor={cursor}");
                    let page = page(&key, &query).await;
                    assert!(page.data.len() <= limit);
                    got.extend(page.data);
                    if !page.has_more {
                        break;
                    }
                    cursor = page.next_cursor.unwrap();
                }
                if order == "desc" {
                    got.reverse();
                }
                assert_eq!(ids(&got), ids(&wanted), "{types} {order} {limit}");
            }
        }
    }
    let of_messages = reader_of(&ada, &["message_received"], "identifiers").await;
    assert!(whole_feed(&of_messages).await.iter().all(|event| event["type"] == "message_received"));
}

#[tokio::test]
async fn events_are_kept_for_30_days_and_a_cursor_counts_as_long_as_nothing_behind_it_is_lost() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    world.apply([Fact::client("ada", "c1")]).await;
    world.apply([message("c1", 1, &world.timestamp_in(0).await)]).await;
    let middle = page(&key, "limit=1").await.next_cursor.unwrap();
    let end = follow(&key, "", 9).await.1;
    world.down_for(TimeDelta::days(29)).await;
    assert_eq!(follow(&key, &middle, 9).await.0.len(), 1);
    // Whoever polls a quiet feed gets a new cursor each time.
    let polled = follow(&key, &end, 9).await.1;
    world.down_for(TimeDelta::days(2)).await;
    for cursor in [&middle, &end] {
        key.get(&format!("/v1/events?cursor={cursor}")).await.refused(400, "cursor_expired");
    }
    assert_eq!(page(&key, "").await.data.len(), 0, "no event is younger than 30 days");
    world.apply([message("c1", 2, &world.timestamp_in(0).await)]).await;
    let (events, next) = follow(&key, &polled, 9).await;
    assert_eq!(events.len(), 1);
    // The table forgets the events, and the feed begins again.
    for _ in 0..3 {
        world.down_for(TimeDelta::days(25)).await;
    }
    let mut cursor = page(&key, "").await.next_cursor.unwrap();
    assert_ne!(cursor, next);
    for number in 3..6 {
        world.apply([message("c1", number, &world.timestamp_in(0).await)]).await;
        let (events, later) = follow(&key, &cursor, 9).await;
        assert_eq!(events.len(), 1, "{number}");
        cursor = later;
    }
}

#[tokio::test]
async fn a_reader_that_polls_a_quiet_feed_for_months_misses_nothing() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let (_, mut cursor) = follow(&key, "", 9).await;
    for month in 0..3 {
        world.down_for(TimeDelta::days(29)).await;
        let is_busy = month > 0;
        if is_busy {
            world.apply([message("c1", month, &world.timestamp_in(0).await)]).await;
        }
        let (events, next) = follow(&key, &cursor, 9).await;
        assert_eq!(events.len(), usize::from(is_busy), "month {month}");
        cursor = next;
    }
}

#[tokio::test]
async fn a_malformed_parameter_is_refused_by_name_and_an_empty_one_is_absent() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    key.get("/v1/events?types=&since=&cursor=&limit=&order=").await.expect(200);
    for (parameter, bad) in [
        ("types", "client_created"),
        ("types", "new_client,,message_received"),
        ("types", "compliance_drop"),
        ("since", "2026-11-20"),
        ("order", "newest"),
        ("type", "new_client"),
        ("updated_since", ""),
        ("cursor", "x"),
        ("cursor", "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f74"),
    ] {
        key.get(&format!("/v1/events?{parameter}={bad}")).await.refused(400, "invalid_request").refused_for(parameter);
    }
    for number in ["18446744073709551615", "9223372036854775807", "1000000000000", "-1"] {
        let now = world.now().await.timestamp_millis();
        let made_up = made_up_cursor("ada", "events, oldest first", &format!("0.{number}.{now}.{now}"));
        key.get(&format!("/v1/events?cursor={made_up}")).await.refused_for("cursor");
    }
    let given = position_of("ada", "events, oldest first", &page(&key, "").await.next_cursor.unwrap());
    let rest = given.splitn(3, '.').nth(2).unwrap();
    let farthest = made_up_cursor("ada", "events, oldest first", &format!("0.999999999999.{rest}"));
    assert!(page(&key, &format!("cursor={farthest}")).await.data.is_empty());
}

#[tokio::test]
async fn a_sample_is_one_example_of_the_type_in_the_payload_mode_of_the_key() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for mode in ["identifiers", "contact_details"] {
        let key = reader(&ada, mode).await;
        for event_type in emitted_events() {
            let body = key.get(&format!("/v1/events/samples?type={event_type}")).await.expect(200).body;
            let data = list(body["data"].clone());
            assert_eq!((members(&body), data.len()), (vec!["data"], 1));
            assert_eq!(members(&data[0]), ["data", "id", "timestamp", "type"]);
            assert_eq!(data[0]["type"], event_type);
            let data = &data[0]["data"];
            let person = data.get("client").or(data.get("contact")).unwrap();
            assert_eq!(person["phone"].is_string(), mode == "contact_details");
        }
        for query in ["", "?type=", "?type=compliance_drop", "?type=x"] {
            key.get(&format!("/v1/events/samples{query}")).await.refused(400, "invalid_request").refused_for("type");
        }
    }
}

#[tokio::test]
async fn only_events_for_subscribers_are_in_the_feed() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    let step = json!([{ "kind": "webhook", "endpoint_id": endpoint.id }]);
    let automation = |id: &str, trigger| {
        let detail = json!({
            "automation_id": id, "coach_id": "ada", "name": id, "active": true, "trigger": trigger, "steps": step,
        });
        crate::world::fact("automation.saved", detail)
    };
    world.apply([automation("a1", json!({ "event": "new_client" }))]).await;
    world.apply([automation("a2", json!({ "event": "check_in_inactivity", "days": 1 }))]).await;
    world.apply([Fact::client("ada", "c1").with("created_at", world.timestamp_in(0).await)]).await;
    let settings = ada.settings().await;
    settings.post(&format!("/settings/webhooks/{}/test", endpoint.id), json!({})).await.expect(202);
    world.advance_s(3 * DAY_S).await;
    assert_eq!(ada.deliveries(&endpoint).await.len(), 4, "subscriber, step, computed event, test");
    let events = whole_feed(&key).await;
    assert_eq!((events.len(), &events[0]["type"]), (1, &json!("new_client")));
}
