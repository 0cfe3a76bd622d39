//! Exactly once through an assistant: races, kills and an unreachable service.

use futures::future::join_all;
use serde_json::{Value, json};

use super::{Assistant, LEGACY, MODERN, error_of, result_of};
use crate::crm::bookings::{CALENDAR, LEAD};
use crate::world::{Fact, Reply, World, ids, uuid};

/// Keys that share the calls of a race: a key may make 300 requests a minute.
const KEYS: usize = 4;
const CALLS: usize = 200;

async fn arguments(world: &World, time: &str, key: &str) -> Value {
    let date = world.midnight_in(2).await.date_naive();
    json!({ "leadId": uuid(LEAD), "calendarId": uuid(CALENDAR), "date": date, "time": time, "idempotency_key": key })
}

fn is_done(reply: &Reply) -> bool {
    reply.body["result"]["isError"] == false
}

#[tokio::test]
async fn one_of_two_hundred_calls_for_a_time_gets_it() {
    let world = World::start().await;
    let first = world.booking_coach("ada").await;
    let mut keys = vec![first.clone()];
    let coach = world.coach("ada").await;
    while keys.len() < KEYS {
        keys.push(coach.crm_key().await);
    }
    world.advance_to_next_minute().await;
    let base = arguments(&world, "09:00", "").await;
    let calls = (0..CALLS).map(|number| {
        let mut arguments = base.clone();
        arguments["idempotency_key"] = json!(format!("race-{number}"));
        let version = if number % 2 == 0 { MODERN } else { LEGACY };
        let call = Assistant::new(&keys[number % KEYS], version).call("create_booking", arguments);
        async move { call.await }
    });
    let replies = join_all(calls).await;
    let (done, refused): (Vec<&Reply>, Vec<&Reply>) = replies.iter().partition(|reply| is_done(reply));
    assert_eq!(done.len(), 1);
    for reply in refused {
        let text = error_of(reply);
        assert!(
            ["[slot_unavailable]", "[outcome_unknown]", "[unconfirmed]"].iter().any(|code| text.contains(code)),
            "{text}"
        );
    }
    assert_eq!(ids(&first.get("/v1/crm/bookings").await.expect(200).body).len(), 1);
}

#[tokio::test]
async fn the_same_call_again_is_the_same_booking_and_other_arguments_are_refused() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    for (version, time) in [(MODERN, "09:00"), (LEGACY, "11:00")] {
        let assistant = Assistant::new(&key, version);
        let call = arguments(&world, time, version).await;
        let made = result_of(&assistant.call("create_booking", call.clone()).await);
        assert!(made["_meta"].get("partner-api/replayed").is_none(), "{made}");
        let again = result_of(&assistant.call("create_booking", call.clone()).await);
        assert_eq!(again["structuredContent"], made["structuredContent"]);
        assert_eq!(again["_meta"]["partner-api/replayed"], true);
        assert_eq!(again["content"].as_array().unwrap().len(), 2);
        let mut other = call.clone();
        other["time"] = json!("13:00");
        assert!(assistant.refused("create_booking", other).await.contains("[idempotency_payload_mismatch]"));
        // The key of a tool is the key of the API.
        let mut body = call;
        body.as_object_mut().unwrap().remove("idempotency_key");
        let reply = key.post("/v1/crm/bookings", body).idempotent(version).await.expect(201);
        assert!(reply.is_replay());
    }
    assert_eq!(ids(&key.get("/v1/crm/bookings").await.expect(200).body).len(), 2);
}

#[tokio::test]
async fn a_function_that_dies_between_call_and_answer_leaves_one_booking() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let assistant = Assistant::new(&key, MODERN);
    for (number, fault) in ["crash_after_commit", "crash_before_call", "store_lost_answers"].into_iter().enumerate() {
        let call = arguments(&world, &format!("{:02}:00", 9 + number), fault).await;
        // Enough for both attempts of the request, and the SDK's own.
        world.faults(json!({ fault: 8, "function": "crm-bookings" })).await;
        let text = error_of(&assistant.call("create_booking", call.clone()).await);
        let is_told = text.contains("[outcome_unknown]") || text.contains("[unconfirmed]");
        assert!(is_told && text.contains("same idempotency_key"), "{fault}: {text}");
        world.clear_faults().await;
        world.advance_s(crate::world::LAPSED_S).await;
        let made = result_of(&assistant.call("create_booking", call).await);
        assert_eq!(made["structuredContent"]["ok"], true, "{fault}: {made}");
        let booked = ids(&key.get("/v1/crm/bookings").await.expect(200).body);
        assert_eq!(booked.len(), number + 1, "{fault}");
    }
}

#[tokio::test]
async fn an_assistant_that_dies_after_the_call_finds_the_booking_made() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let assistant = Assistant::new(&key, LEGACY);
    let call = arguments(&world, "09:00", "once").await;
    let abandoned = assistant.call("create_booking", call.clone());
    // The connection is cut while the service works.
    let _cut = tokio::time::timeout(std::time::Duration::from_millis(40), abandoned).await;
    let mut made = assistant.call("create_booking", call.clone()).await;
    if made.text.contains("[idempotency_in_progress]") {
        world.advance_s(crate::world::LAPSED_S).await;
        made = assistant.call("create_booking", call).await;
    }
    assert_eq!(result_of(&made)["structuredContent"]["ok"], true);
    assert_eq!(ids(&key.get("/v1/crm/bookings").await.expect(200).body).len(), 1);
}

#[tokio::test]
async fn a_day_at_the_desk_moves_and_cancels_once() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let assistant = Assistant::new(&key, MODERN);
    let made = assistant.done("create_booking", arguments(&world, "09:00", "day").await).await;
    let id = made["booking"]["id"].clone();
    let date = made["booking"]["date"].clone();
    let move_to = json!({ "id": id, "leadId": uuid(LEAD), "date": date, "time": "15:00" });
    let moved = assistant.done("reschedule_booking", move_to.clone()).await;
    assert_eq!(moved["booking"]["time"], "15:00");
    assert_eq!(assistant.done("reschedule_booking", move_to).await["booking"], moved["booking"]);
    let cancel = json!({ "id": id, "leadId": uuid(LEAD) });
    for _ in 0..2 {
        let cancelled = assistant.done("cancel_booking", cancel.clone()).await;
        assert_eq!(cancelled["booking"]["status"], "cancelled");
    }
    let again = assistant.done("create_contact", json!({ "name": "Bob", "email": "bob@bücher.example" })).await;
    let same = assistant.done("create_contact", json!({ "name": "Bob", "email": "BOB@bücher.example" })).await;
    assert_eq!(again["contact"]["id"], same["contact"]["id"]);
}

#[tokio::test]
async fn a_read_that_is_not_answered_may_be_made_again() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let assistant = Assistant::new(&ada.partner_key().await, LEGACY);
    world.faults(json!({ "crash_before_call": 8, "function": "clients" })).await;
    let text = assistant.refused("get_client", json!({ "client_id": "c1" })).await;
    assert!(text.contains("[no_answer]") && !text.contains("unknown whether"), "{text}");
    world.clear_faults().await;
    world.faults(json!({ "crash_before_call": 8, "function": "ping" })).await;
    let reply = assistant.request("tools/list", json!({})).await.expect(500);
    assert_eq!((&reply.body["error"]["code"], &reply.body["id"]), (&json!(-32603), &json!(7)), "{}", reply.text);
    world.clear_faults().await;
    assistant.done("get_client", json!({ "client_id": "c1" })).await;
}
