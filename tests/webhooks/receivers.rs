//! Receivers that misbehave, through the running stack: what the delivery log says, and that the log has a line for each hit.

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::world::{Endpoint, Manner, OK, Rough, World, list};

const CLOSED: &str = "connection closed before an answer";
const NO_HTTP: &str = "no valid HTTP answer";
/// What 64 KiB and the buffers around them come to, and what a stack that lives on takes anyway.
const MOST_GROWTH_BYTES: u64 = 24 * 1024 * 1024;
const HUGE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n";

async fn create(world: &World, key: &crate::world::Caller) {
    let email = format!("c{}@example.com", world.number());
    key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).await.expect(201);
}

/// What an attempt came to: its status, or the reason why there is none.
fn said(attempt: &Value) -> String {
    attempt["status_code"]
        .as_u64()
        .map_or_else(|| attempt["error"].as_str().unwrap().to_owned(), |code| code.to_string())
}

#[tokio::test]
async fn the_log_names_what_each_receiver_did_and_has_a_line_for_each_hit() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    let mut cases: Vec<(Rough, Endpoint, &str)> = Vec::new();
    for (manner, expected) in [
        (Manner::says(OK), "200"),
        (Manner::status(302), "302"),
        (Manner::status(500), "500"),
        (Manner::says("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"), "200"),
        (Manner::SaysAndCloses(half), "200"),
        (Manner::endless(HUGE), "200"),
        (Manner::gzip_bomb(), "200"),
        (Manner::Resets, "connection reset"),
        (Manner::SaysAndResets(Vec::new()), "connection reset"),
        (Manner::SaysAndCloses(Vec::new()), CLOSED),
        (Manner::HalfCloses, CLOSED),
        (Manner::says("220 mail.example.com ESMTP\r\n"), NO_HTTP),
        (Manner::says(""), "timed out after 15 s"),
        (Manner::SaysAndDrips(b"HTTP/1.1 200 Slo".to_vec()), "timed out after 15 s"),
        (Manner::SaysAndDrips(b"HTTP/1.1 200 OK\r\nx-slow: ".to_vec()), "200"),
    ] {
        let receiver = Rough::start([manner]).await;
        let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
        cases.push((receiver, endpoint, expected));
    }
    let plain = Rough::start_through([Manner::says(OK)], async |stream: TcpStream| {
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
        // Time goes on while slow ones are waited for: a failure may have been tried again.
        assert!(
            !attempts.is_empty() && attempts.iter().all(|attempt| said(attempt) == *expected),
            "{expected}: {attempts:?}"
        );
        // A connection is reset with or without a request on it.
        let hits = receiver.requests().len().max(receiver.connections());
        assert_eq!(hits, attempts.len(), "{expected}: each hit is logged");
        let delivered = if *expected == "200" { "delivered" } else { "pending" };
        assert_eq!(delivery["status"], delivered, "{expected}");
        assert!(receiver.sent_bytes() < 16 * 1024 * 1024, "{expected}: {}", receiver.sent_bytes());
        for attempt in &attempts {
            let took_ms = attempt["duration_ms"].as_u64().unwrap();
            let limits = if expected.starts_with("timed out") { 15_000..17_000 } else { 0..5000 };
            assert!(limits.contains(&took_ms), "{expected} took {took_ms} ms");
            let excerpt = attempt["response_excerpt"].as_str().unwrap_or_default();
            assert!(excerpt.len() <= 1024 && !attempt["error"].to_string().contains("secret"));
        }
    }
    assert!(!world.log().contains("secret-"), "no path and no query of a receiver is in the log");
}

#[tokio::test]
async fn an_event_is_delivered_whatever_the_headers_of_the_answer_look_like() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let mut endpoints = Vec::new();
    for lines in [
        "x-many: y\r\n".repeat(101),
        "x-many: y\r\n".repeat(1000),
        format!("x-large: {}\r\n", "y".repeat(64 * 1024)),
        format!("x-large: {}\r\n", "y".repeat(1024 * 1024)),
        "Allow-Credentials : true\r\nno colon\r\n".to_owned(),
        "X-Folded: a\r\n b\r\nX-Größe: groß\r\nX-Bell: \u{7}\0\r\n".to_owned(),
        "Transfer-Encoding: identity\r\nConnection: keep-alive\r\n".to_owned(),
        "Content-Length: 3\r\n".to_owned(),
        "Content-Length: many\r\n".to_owned(),
    ] {
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            let answer = format!("{version} 200 OK\r\n{lines}content-length: 2\r\n\r\nok");
            let receiver = Rough::start([Manner::says(&answer)]).await;
            endpoints.push((ada.endpoint(&receiver.url(), "identifiers").await, receiver, answer));
        }
    }
    create(&world, &ada.partner_key().await).await;
    world.settle().await;
    for (endpoint, receiver, answer) in &endpoints {
        let told = ada.deliveries(endpoint).await.remove(0);
        let shown: String = answer.chars().take(60).collect();
        assert_eq!((&told["status"], receiver.requests().len()), (&json!("delivered"), 1), "{shown}");
        assert_eq!(told["attempts"][0]["response_excerpt"], "ok", "{shown}");
        assert!(told["attempts"][0]["duration_ms"].as_u64().unwrap() < 5_000, "{shown}");
    }
}

#[tokio::test]
async fn a_status_counts_though_nothing_behind_it_ends() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let mut endpoints = Vec::new();
    let body = "content-length: 9999\r\n\r\n";
    let odd = "no colon\r\nContent-Length: 1\r\ncontent-length: 9999\r\nAllow-Credentials : true\r\n\r\n";
    for (head, expected) in [
        (format!("HTTP/1.1 200 OK\r\n{body}"), ("delivered", 200, "enabled")),
        (format!("HTTP/1.1 410 Gone\r\n{body}"), ("failed", 410, "gone")),
        (format!("HTTP/1.1 410 Gone\r\n{odd}"), ("failed", 410, "gone")),
        ("HTTP/1.1 410 Gone\r\nx-slow: ".to_owned(), ("failed", 410, "gone")),
    ] {
        let receiver = Rough::start([Manner::SaysAndDrips(head.into_bytes())]).await;
        endpoints.push((ada.endpoint(&receiver.url(), "identifiers").await, receiver, expected));
    }
    create(&world, &ada.partner_key().await).await;
    world.settle().await;
    let settings = ada.settings().await;
    for (endpoint, receiver, (delivery, status, state)) in &endpoints {
        let told = ada.deliveries(endpoint).await.remove(0);
        assert_eq!((&told["status"], &told["attempts"][0]["status_code"]), (&json!(delivery), &json!(status)));
        let took_ms = told["attempts"][0]["duration_ms"].as_u64().unwrap();
        assert!((400..5_000).contains(&took_ms), "{status}: {took_ms} ms");
        let shown = settings.get(&format!("/settings/webhooks/{}", endpoint.id)).await.expect(200);
        assert_eq!(shown.body["status"], *state);
        assert_eq!(receiver.requests().len(), 1);
    }
}

#[tokio::test]
async fn retry_after_is_read_among_odd_headers() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let busy = format!(
        "HTTP/1.1 503 Busy\r\n{}no colon\r\nRetry-After : 900\r\ncontent-length: 0\r\n\r\n",
        "x: y\r\n".repeat(500)
    );
    let receiver = Rough::start([Manner::says(busy), Manner::says(OK)]).await;
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
    let sound = Rough::start([Manner::says(OK)]).await;
    ada.endpoint(&sound.url(), "identifiers").await;
    for _ in 0..3 {
        create(&world, &key).await;
    }
    world.settle().await;
    let before = world.peak_memory_bytes();
    let (huge, bomb) = (Rough::start([Manner::endless(HUGE)]).await, Rough::start([Manner::gzip_bomb()]).await);
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
        receiver.until_closed(3).await;
        assert_eq!((receiver.requests().len(), receiver.connections()), (3, 3));
    }
}

#[tokio::test]
async fn a_receiver_keeps_its_connection_from_event_to_event() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = ada.partner_key().await;
    let receiver = Rough::start([Manner::says(OK)]).await;
    ada.endpoint(&format!("http://localhost:{}/hook", receiver.port()), "identifiers").await;
    for _ in 0..20 {
        create(&world, &key).await;
        world.settle().await;
    }
    println!("{} connections for 20 events", receiver.connections());
    assert_eq!(receiver.requests().len(), 20);
    assert!(receiver.connections() <= 4, "{} connections", receiver.connections());
}

#[tokio::test]
async fn a_url_that_would_leak_or_lead_inside_is_refused_with_a_reason() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    let refused = join_all(
        [
            ("https://user:password@hooks.example.com/", "user name or password"),
            ("https://user@hooks.example.com/", "user name or password"),
            ("https://hooks.example.com/#part", "fragment"),
            ("http://hooks.example.com/", "https://"),
            ("https://hooks.example.com@10.0.0.1/", "user name or password"),
            ("https://0xa9fea9fe/latest", "special address"),
            ("https://[::ffff:a00:1]/", "special address"),
            ("https://Metadata.Google.Internal./", "private network"),
            ("https://router.home.arpa/", "private network"),
            ("https://a{b}.example.com/", "letters, digits and hyphens"),
        ]
        .map(async |(url, reason)| {
            let body = json!({ "url": url, "events": ["new_client"], "payload_mode": "identifiers" });
            (url, reason, settings.post("/settings/webhooks", body).await)
        }),
    )
    .await;
    for (url, reason, reply) in refused {
        assert_eq!(reply.status, 400, "{url}: {}", reply.text);
        assert!(reply.str("error").contains(reason), "{url}: {}", reply.text);
        assert!(!reply.text.contains("password@") && !reply.text.contains("latest"), "{}", reply.text);
    }
}
