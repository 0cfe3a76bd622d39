//! A receiver that hangs delays only its own deliveries.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::world::{Answer, Endpoint, Fact, Receiver, World, time, until_within};

/// A receiver that accepts connections, reads everything and never answers.
struct Hanging {
    port: u16,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Hanging {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, peak) = (Arc::clone(&open), Arc::clone(&most));
        tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let (open, most) = (Arc::clone(&counted), Arc::clone(&peak));
                tokio::spawn(async move {
                    most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let mut bytes = [0; 1024];
                    while connection.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, open, most }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }
}

#[tokio::test]
async fn five_hundred_events_for_a_hanging_receiver_delay_another_by_at_most_2_seconds() {
    const EVENTS: usize = 500;
    // Three batches of ten.
    const MOST: usize = 30;
    let world = World::start().await;
    let hanging = Hanging::start().await;
    let healthy = Receiver::start().await;
    let ada = world.coach("ada").await;
    let key = ada.partner_key().await;
    ada.endpoint(&hanging.url(), "identifiers").await;
    let bob = world.coach("bob").await;
    bob.endpoint(&healthy.url(), "identifiers").await;
    world.publish((0..EVENTS).map(|n| Fact::client("ada", &format!("c{n:03}")))).await;
    let all_stored = async || key.get("/v1/ping").await.body["active_clients"] == EVENTS;
    until_within(Duration::from_secs(60), "storing the facts", all_stored).await;
    until_within(Duration::from_secs(20), "hanging", async || hanging.open.load(Ordering::SeqCst) > 0).await;
    for n in 0..5 {
        world.publish([Fact::client("bob", &format!("b{n}"))]).await;
        until_within(Duration::from_secs(2), "the other's event", async || healthy.hooks().len() == n + 1).await;
    }
    let most = hanging.most.load(Ordering::SeqCst);
    assert!((1..=MOST).contains(&most), "{most} deliveries in flight at once");
}

/// Emits events for a coach with hanging endpoints, one after the other, and then another coach's events. Asserts that
/// the latter arrive in time.
async fn assert_others_in_time_beside(endpoints: usize, events: usize) {
    let world = World::start().await;
    let hanging = Hanging::start().await;
    let healthy = Receiver::start().await;
    let ada = world.coach("ada").await;
    for _ in 0..endpoints {
        ada.endpoint(&hanging.url(), "identifiers").await;
    }
    let bob = world.coach("bob").await;
    bob.endpoint(&healthy.url(), "identifiers").await;
    for n in 0..events {
        world.publish([Fact::client("ada", &format!("c{n:03}"))]).await;
    }
    until_within(Duration::from_secs(20), "hanging", async || hanging.open.load(Ordering::SeqCst) >= endpoints).await;
    for n in 0..5 {
        world.publish([Fact::client("bob", &format!("b{n}"))]).await;
        until_within(Duration::from_secs(2), "the other's event", async || healthy.hooks().len() == n + 1).await;
    }
}

#[tokio::test]
async fn a_coach_with_two_hanging_endpoints_delays_no_other_coach() {
    assert_others_in_time_beside(2, 30).await;
}

#[tokio::test]
async fn a_coach_with_twenty_hanging_endpoints_delays_no_other_coach() {
    assert_others_in_time_beside(20, 3).await;
}

#[tokio::test]
async fn ten_receivers_of_a_second_each_take_at_most_1200_ms() {
    const MOST_REPEATS: usize = 6;
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let receivers = futures::future::join_all((0..10).map(|_| Receiver::start())).await;
    let mut endpoints = Vec::new();
    for receiver in &receivers {
        receiver.otherwise(Answer::status(204).after(Duration::from_secs(1)));
        endpoints.push(ada.endpoint(&receiver.url(), "identifiers").await);
    }
    let mut spans = Vec::new();
    // A busy machine may serialise parallel work, so the best of some repeats counts.
    for n in 0..MOST_REPEATS {
        world.apply([Fact::client("ada", &format!("c{n}"))]).await;
        let (mut began, mut ended) = (Vec::new(), Vec::new());
        for endpoint in &endpoints {
            let attempt = &ada.deliveries(endpoint).await[0]["attempts"][0];
            began.push(time(&attempt["at"]));
            ended.push(began[began.len() - 1] + TimeDelta::milliseconds(attempt["duration_ms"].as_i64().unwrap()));
        }
        let span = *ended.iter().max().unwrap() - *began.iter().min().unwrap();
        if span <= TimeDelta::milliseconds(1_200) {
            return;
        }
        spans.push(span);
    }
    panic!("none took at most 1.2 s: {spans:?}");
}

#[tokio::test]
async fn postponed_deliveries_are_made_once_each() {
    const EVENTS: usize = 120;
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    let endpoint: Endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    world.faults(json!({ "duplicate_messages": true })).await;
    world.apply((0..EVENTS).map(|n| Fact::client("ada", &format!("c{n:03}")))).await;
    world.advance_s(300).await;
    let mut ids: Vec<String> = receiver.hooks().iter().map(|hook| hook.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), EVENTS);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), EVENTS);
    let path = format!("/settings/webhooks/{}/deliveries?status=pending", endpoint.id);
    assert_eq!(ada.settings().await.get(&path).await.expect(200).body["data"], json!([]));
    assert!(world.take_messages("deliveries-dlq.fifo").await.is_empty());
}

#[tokio::test]
async fn a_slow_receiver_gets_events_in_parallel() {
    const EVENTS: usize = 60;
    // Sequential attempts would take twice as long.
    const LIMIT: Duration = Duration::from_secs(75);
    let world = World::start().await;
    let receiver = Receiver::start().await;
    receiver.otherwise(Answer::status(204).after(Duration::from_millis(2_500)));
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    for n in 0..EVENTS {
        world.publish([Fact::client("ada", &format!("c{n}"))]).await;
    }
    let all_received = async || receiver.hooks().len() >= EVENTS;
    until_within(LIMIT, "events of the slow receiver", all_received).await;
    world.settle().await;
    let delivered = ada.deliveries(&endpoint).await;
    assert!(delivered.iter().all(|delivery| delivery["attempts"].as_array().unwrap().len() == 1), "once each");
}
