//! Pages of the feed: their events, their order, filters, cursors, and the time for which events are kept.

use chrono::TimeDelta;
use serde_json::json;

use super::{follow, id, ids, message, page, reader, reader_of, whole_feed};
use crate::crm::contacts::merges::pseudo_random;
use crate::crm::events::{MODES, all_types, endpoint};
use crate::feed::erasure::life;
use crate::world::{
    CRM_EVENTS, Fact, Receiver, World, emitted_events, list, made_up_cursor, members, position_of, time, uuid,
};

const DAY_S: u64 = 86_400;

#[tokio::test]
async fn the_feed_has_the_bodies_and_ids_of_webhooks_in_the_payload_mode_of_the_key() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    let mut keys = Vec::new();
    for mode in MODES {
        endpoint(&ada, &receiver, &emitted_events(), mode).await;
        keys.push(reader(&ada, mode).await);
    }
    let client = Fact::client("ada", "c1").with("email", "grace@example.com").with("phone", "+1 415 555 0132");
    world.apply([client].into_iter().chain(life("c1", "Build"))).await;
    all_types(&world).await;
    let sent: Vec<_> = receiver.hooks();
    for (mode, key) in MODES.into_iter().zip(&keys) {
        let events = whole_feed(key).await;
        assert_eq!(events.len(), 4 + CRM_EVENTS.len(), "{events:?}");
        for event in &events {
            assert_eq!(members(event), ["data", "id", "timestamp", "type"]);
            let mut body = event.clone();
            body.as_object_mut().unwrap().remove("id");
            let names_person = mode == "contact_details" && event["data"]["client"].is_object();
            assert_eq!(event["data"]["client"]["email"] == "grace@example.com", names_person, "{event}");
            let same = sent.iter().filter(|hook| hook.header("webhook-id") == id(event) && hook.json() == body);
            assert_eq!(same.count(), 1, "{event}");
        }
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
                        assert_eq!(page.next_cursor.is_some(), order == "asc", "{query}");
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
async fn a_malformed_parameter_is_refused_by_name_and_an_empty_one_is_absent() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    key.get("/v1/events?types=&since=&cursor=&limit=&order=").await.expect(200);
    for (parameter, bad) in [
        ("types", "client_created"),
        ("since", "2026-11-20"),
        ("order", "newest"),
        ("type", "new_client"),
        ("updated_since", ""),
        ("cursor", "x"),
        ("cursor", "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f74"),
    ] {
        key.get(&format!("/v1/events?{parameter}={bad}")).await.refused_for(parameter);
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
    for mode in MODES {
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
            key.get(&format!("/v1/events/samples{query}")).await.refused_for("type");
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
