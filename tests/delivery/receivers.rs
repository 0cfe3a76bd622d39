//! Misbehaving receivers through the running stack: the delivery log's reason, and a log line for each request. The
//! tests of `lib/webhook` try each misbehaviour.

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::world::{Endpoint, OK, TcpAnswer, TcpReceiver, World, list, members};

const CLOSED: &str = "connection closed before an answer";
const NO_HTTP: &str = "no valid HTTP answer";
/// Memory for 64 KiB bodies and their buffers, plus the normal growth of a running stack.
const MOST_GROWTH_BYTES: u64 = 24 * 1024 * 1024;
/// Limit of the bytes that a receiver can send in an attempt: the buffers of two sockets, and a little that is read.
const MOST_SENT_BYTES: u64 = 16 * 1024 * 1024;
const HUGE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n";

async fn create(world: &World, key: &crate::world::Caller) {
    let email = format!("c{}@example.com", world.number());
    key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).await.expect(201);
}

/// The outcome of an attempt: its status, or the reason for its absence.
fn outcome(attempt: &Value) -> String {
    attempt["status_code"]
        .as_u64()
        .map_or_else(|| attempt["error"].as_str().unwrap().to_owned(), |code| code.to_string())
}

#[tokio::test]
async fn the_log_shows_each_receivers_behaviour_and_has_a_line_for_each_request() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let mut cases: Vec<(TcpReceiver, Endpoint, &str)> = Vec::new();
    for (manner, expected) in [
        (TcpAnswer::sends(OK), "200"),
        (TcpAnswer::status(302), "302"),
        (TcpAnswer::status(500), "500"),
        (TcpAnswer::Resets, "connection reset"),
        (TcpAnswer::SendsAndResets(Vec::new()), "connection reset"),
        (TcpAnswer::SendsAndCloses(Vec::new()), CLOSED),
        (TcpAnswer::HalfCloses, CLOSED),
        (TcpAnswer::sends("220 mail.example.com ESMTP\r\n"), NO_HTTP),
        (TcpAnswer::sends(""), "timed out after 15 s"),
        (TcpAnswer::SendsAndDrips(b"HTTP/1.1 200 Slo".to_vec()), "timed out after 15 s"),
    ] {
        let receiver = TcpReceiver::start([manner]).await;
        let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
        cases.push((receiver, endpoint, expected));
    }
    let plain = TcpReceiver::start_through([TcpAnswer::sends(OK)], async |stream: TcpStream| {
        stream.writable().await?;
        stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        Ok(stream)
    });
    let plain = plain.await;
    let endpoint = ada.endpoint(&plain.url().replace("http:", "https:"), "identifiers").await;
    cases.push((plain, endpoint, "TLS: the receiver does not speak it"));
    create(&world, &ada.partner_key().await).await;
    world.settle().await;
    for (receiver, endpoint, expected) in &cases {
        let mut deliveries = ada.deliveries(endpoint).await;
        assert_eq!(deliveries.len(), 1);
        let delivery = deliveries.remove(0);
        let attempts = list(delivery["attempts"].clone());
        // The clock runs on during slow attempts, so a failure may have been retried.
        assert!(
            !attempts.is_empty() && attempts.iter().all(|attempt| outcome(attempt) == *expected),
            "{expected}: {attempts:?}"
        );
        // A connection may be reset with or without a request on it.
        let hits = receiver.requests().len().max(receiver.connections());
        assert_eq!(hits, attempts.len(), "{expected}: each hit is logged");
        let delivered = if *expected == "200" { "delivered" } else { "pending" };
        assert_eq!(delivery["status"], delivered, "{expected}");
        for attempt in &attempts {
            let shown = match attempt.get("error") {
                Some(_) => ["at", "duration_ms", "error", "response_excerpt"],
                None => ["at", "duration_ms", "response_excerpt", "status_code"],
            };
            assert_eq!(members(attempt), shown);
            let took_ms = attempt["duration_ms"].as_u64().unwrap();
            let limits = if expected.starts_with("timed out") { 15_000..17_000 } else { 0..5000 };
            assert!(limits.contains(&took_ms), "{expected} took {took_ms} ms");
            let excerpt = if *expected == "200" { json!("ok") } else { Value::Null };
            assert_eq!(attempt["response_excerpt"], excerpt);
            assert!(!attempt["error"].to_string().contains("secret"));
        }
    }
    assert!(!world.log().contains("secret-"), "no path and no query of a receiver is in the log");
}

#[tokio::test]
async fn retry_after_is_read_among_odd_headers() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let busy = format!(
        "HTTP/1.1 503 Busy\r\n{}no colon\r\nRetry-After : 900\r\ncontent-length: 0\r\n\r\n",
        "x: y\r\n".repeat(500)
    );
    let receiver = TcpReceiver::start([TcpAnswer::sends(busy), TcpAnswer::sends(OK)]).await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    create(&world, &ada.partner_key().await).await;
    world.settle().await;
    world.advance_s(800).await;
    assert_eq!(receiver.requests().len(), 1, "5 seconds would do without it");
    world.advance_s(300).await;
    assert_eq!(ada.deliveries(&endpoint).await.remove(0)["status"], "delivered");
    assert_eq!(receiver.requests().len(), 2);
}

#[tokio::test]
async fn answers_of_200_mb_take_no_memory() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = ada.partner_key().await;
    let sound = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
    ada.endpoint(&sound.url(), "identifiers").await;
    for _ in 0..3 {
        create(&world, &key).await;
    }
    world.settle().await;
    let before = world.peak_memory_bytes();
    let (huge, bomb) =
        (TcpReceiver::start([TcpAnswer::endless(HUGE)]).await, TcpReceiver::start([TcpAnswer::gzip_bomb()]).await);
    let endpoints = [ada.endpoint(&huge.url(), "identifiers").await, ada.endpoint(&bomb.url(), "identifiers").await];
    for _ in 0..3 {
        create(&world, &key).await;
    }
    world.settle().await;
    let grown = world.peak_memory_bytes().saturating_sub(before);
    println!("peak memory: {before} bytes before, {grown} more after");
    assert!(grown < MOST_GROWTH_BYTES, "{grown} bytes more");
    for (receiver, endpoint) in [&huge, &bomb].into_iter().zip(&endpoints) {
        let deliveries = ada.deliveries(endpoint).await;
        assert!(deliveries.len() == 3 && deliveries.iter().all(|delivery| delivery["status"] == "delivered"));
        assert!(receiver.sent_bytes() < 3 * MOST_SENT_BYTES, "{}", receiver.sent_bytes());
        receiver.until_closed(3).await;
        assert_eq!((receiver.requests().len(), receiver.connections()), (3, 3));
    }
}

#[tokio::test]
async fn a_receiver_keeps_its_connection_from_event_to_event() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = ada.partner_key().await;
    let receiver = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
    ada.endpoint(&format!("http://localhost:{}/hook", receiver.port()), "identifiers").await;
    for _ in 0..20 {
        create(&world, &key).await;
        world.settle().await;
    }
    println!("{} connections for 20 events", receiver.connections());
    assert_eq!(receiver.requests().len(), 20);
    assert!(receiver.connections() <= 4, "{} connections", receiver.connections());
}
