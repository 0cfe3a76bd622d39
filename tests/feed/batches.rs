//! Facts in one batch do not hold up each other. A fact whose work grows with the stored data is applied in parts.

use std::time::Duration;

use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, event};
use crate::feed::erasure::erased;
use crate::world::{Bill, Fact, Receiver, World, fact, list, until_within, uuid};

/// Delay of a batch's messages, so that they arrive together.
const TOGETHER_IN_S: u32 = 5;
/// Less than the time-out of a store call.
const AT_ONCE: Duration = Duration::from_secs(3);
/// More calls than any one invocation makes in these tests.
const MOST_CALLS: usize = 400;

/// Sends facts that arrive as one batch.
async fn send_together(world: &World, facts: impl IntoIterator<Item = Fact>) {
    let body = |Fact { detail_type, mut detail }| {
        detail["id"] = json!(format!("fact-{}", world.number()));
        detail["occurred_at"] = json!("2026-01-02T03:04:05Z");
        json!({ "detail-type": detail_type, "detail": detail }).to_string()
    };
    let bodies: Vec<String> = facts.into_iter().map(body).collect();
    world.send_together("application-feed", &bodies, TOGETHER_IN_S).await;
}

fn clients() -> Vec<Fact> {
    (0..6).map(|number| Fact::client("ada", &format!("c{number}"))).collect()
}

#[tokio::test]
async fn a_slow_fact_delays_no_other_fact_of_its_batch() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    send_together(&world, clients()).await;
    // The batch is looked up together; the next call is the first fact's.
    world.faults(json!({ "function": "ingest", "spared_calls": 1, "stalled_calls": 1 })).await;
    let count = async || key.get("/v1/clients").await.expect(200).body["count"].clone();
    let others = async {
        world.until_stalled().await;
        until_within(AT_ONCE, "the others are applied", async || count().await == 5).await;
        world.faults(json!({ "stalled_calls": 0, "spared_calls": 0, "function": "" })).await;
    };
    futures::future::join(world.advance_s(u64::from(TOGETHER_IN_S)), others).await;
    world.settle().await;
    assert_eq!(count().await, 6);
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
}

#[tokio::test]
async fn facts_about_one_client_in_one_batch_never_write_at_the_same_time() {
    const CHECK_INS: usize = 4;
    // A fact takes longer than it may hold up the facts about others.
    const STORE_LATENCY_MS: u32 = 400;
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    world.apply([Fact::client("ada", "c1")]).await;
    let check_in = |number: usize| {
        let submitted_at = format!("2026-01-0{}T08:00:00Z", number + 1);
        let ids = json!({ "client_id": "c1", "check_in_id": format!("k{number}") });
        fact("check_in.submitted", ids)
            .with("submitted_at", submitted_at)
            .with("scores", json!({}))
            .with("grades", json!({}))
    };
    send_together(&world, (0..CHECK_INS).map(check_in)).await;
    world.faults(json!({ "function": "ingest", "store_latency_ms": STORE_LATENCY_MS })).await;
    world.advance_s(u64::from(TOGETHER_IN_S)).await;
    world.clear_faults().await;
    let latest = &world.calls("ingest").await[0];
    let transactions =
        list(latest["calls"].clone()).into_iter().filter(|call| call["operation"] == "TransactWriteItems");
    assert_eq!(transactions.count(), CHECK_INS, "none is refused");
    assert_eq!(key.get("/v1/clients/c1/check-ins").await.expect(200).body["count"], CHECK_INS);
}

/// Largest number of calls of an invocation of `ingest`.
async fn most_calls(world: &World) -> usize {
    world.calls("ingest").await.iter().map(|invocation| Bill::of(invocation).calls).max().unwrap()
}

#[tokio::test]
async fn a_calendar_gives_many_waiting_events_their_buffers_in_parts() {
    const EVENTS: u64 = 130;
    let world = World::start().await;
    world.coach("ada").await;
    let waiting_event = |number: u64| {
        let day = chrono::DateTime::from_timestamp(1_800_000_000 + 86_400 * i64::try_from(number).unwrap(), 0).unwrap();
        event("ada", &uuid(1_000 + number), Some(CALENDAR), day, 60)
    };
    world.apply((0..EVENTS).map(waiting_event)).await;
    let waiting = async || {
        let items = world.items("crm", "COACH#ada").await;
        items.iter().filter(|item| item["sk"]["S"].as_str().unwrap().starts_with("WAITING#")).count()
    };
    assert_eq!(waiting().await, usize::try_from(EVENTS).unwrap());
    let saved = Fact::calendar("ada", &uuid(CALENDAR)).with("buffer_before_minutes", 15);
    world.apply([saved]).await;
    assert_eq!(waiting().await, 0);
    let events = world.items("crm", "COACH#ada").await;
    let buffered = events.iter().filter(|item| item["sk"]["S"].as_str().unwrap().starts_with("EVENT#"));
    assert!(buffered.clone().all(|item| item.to_string().contains("buffer")), "{:?}", events.first());
    assert_eq!(buffered.count(), usize::try_from(EVENTS).unwrap());
    assert!(most_calls(&world).await < MOST_CALLS, "{}", most_calls(&world).await);
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_client_with_a_long_history_is_erased_in_parts() {
    const RECORDS: usize = 2_300;
    const DELIVERIES: usize = 700;
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    ada.endpoint(&receiver.url(), "contact_details").await;
    world.apply([Fact::client("ada", "c1").with("full_name", "gwendolyn")]).await;
    let log = fact("daily_log.saved", json!({ "client_id": "c1", "date": "2026-05-01" }));
    world.apply([log]).await;
    let record = world.items("records", "CLIENT#c1").await.remove(0);
    let records = (0..RECORDS).map(|number| {
        let sk = format!("OLD#{number:05}");
        json!({ "pk": record["pk"], "sk": { "S": sk } })
    });
    world.put_items("records", &records.collect::<Vec<_>>()).await;
    let delivery = world.delivery_items().await.remove(0);
    let deliveries = (0..DELIVERIES).map(|number| {
        let mut copy = delivery.clone();
        let sk = delivery["sk"]["S"].as_str().unwrap();
        let id = format!("{}{number:05}", &sk[..sk.len() - 5]);
        copy["sk"]["S"] = json!(id);
        if copy["delivery_id"].is_object() {
            copy["delivery_id"]["S"] = json!(id.trim_start_matches("DELIVERY#"));
        }
        copy
    });
    world.put_items("deliveries", &deliveries.collect::<Vec<_>>()).await;
    world.apply([erased("c1")]).await;
    let sealed = async || {
        let items = world.delivery_items().await;
        assert!(items.len() >= DELIVERIES, "the log stays");
        items.iter().filter(|item| item["sealed"]["B"] != "").count()
    };
    assert_eq!(sealed().await, 0, "before any later pass");
    assert_eq!(world.items("records", "CLIENT#c1").await, [] as [Value; 0]);
    assert!(most_calls(&world).await < MOST_CALLS, "{}", most_calls(&world).await);
    world.advance_s(3_600).await;
    assert_eq!(sealed().await, 0);
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
    assert!(!world.log().contains("could not be stored"));
}

#[tokio::test]
async fn a_client_whose_contact_has_many_opportunities_is_erased_in_parts() {
    const OPPORTUNITIES: u64 = 450;
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = ada.crm_key().await;
    let contact = Fact::contact("ada", &uuid(1)).with("email", "gwendolyn@example.com").with("do_not_contact", false);
    world.apply([Fact::pipeline("ada"), contact]).await;
    world.apply([Fact::opportunity("ada", &uuid(10), &uuid(1)).with("name", "gwendolyn")]).await;
    let stored = world.items("crm", "COACH#ada").await;
    let stored = stored.into_iter().find(|item| item["sk"]["S"].as_str().unwrap().starts_with("OPPORTUNITY#")).unwrap();
    let copies: Vec<Value> = (0..OPPORTUNITIES)
        .map(|number| {
            let text = stored.to_string().replace(&uuid(10), &uuid(1_000 + number));
            serde_json::from_str(&text).unwrap()
        })
        .collect();
    world.put_items("crm", &copies).await;
    let made =
        ada.partner_key().await.post("/v1/clients", json!({ "email": "gwendolyn@example.com", "send_welcome": false }));
    let client = made.await.expect(201).str("client_id").to_owned();
    world.apply([erased(&client)]).await;
    world.advance_s(3_600).await;
    assert_eq!(key.get("/v1/crm/opportunities").await.expect(200).body["data"], json!([]));
    let left = world.items("crm", "COACH#ada").await;
    assert!(left.iter().all(|item| !item.to_string().contains("gwendolyn")));
    assert!(most_calls(&world).await < MOST_CALLS, "{}", most_calls(&world).await);
}
