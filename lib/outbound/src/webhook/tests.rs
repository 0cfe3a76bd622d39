//! The client against receivers of all kinds on this machine.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Answers each connection with these bytes and closes it; gives the URL and what the last request was.
async fn receiver(
    answer: &'static [u8],
    hold: Duration,
) -> (ReceiverUrl, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret-path?token=1", listener.local_addr().unwrap());
    let (requests, received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 16 * 1024];
            let length = stream.read(&mut buffer).await.unwrap_or(0);
            let _ = requests.send(String::from_utf8_lossy(&buffer[..length]).into_owned());
            let _ = stream.write_all(answer).await;
            tokio::time::sleep(hold).await;
        }
    });
    (ReceiverUrl::parse(&url, Reach::PublicAndLoopback).unwrap(), received)
}

async fn post(reach: Reach, url: &ReceiverUrl) -> Answer {
    let client = WebhookClient::reaching(reach, Duration::from_secs(1)).unwrap();
    let event_id = EventId::parse("evt_1").unwrap();
    let signature = "v1,abc".to_owned();
    let webhook = Webhook {
        url,
        event_id: &event_id,
        event_type: "new_client",
        unix_s: 1_700_000_000,
        signature,
        body: b"{}".to_vec(),
    };
    client.post(webhook).await
}

fn failed(reason: &str) -> AttemptResult {
    AttemptResult::Error(reason.to_owned())
}

#[tokio::test]
async fn a_request_carries_the_signed_headers_and_the_exact_body() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let (url, mut requests) = receiver(answer, Duration::ZERO).await;
    let answer = post(Reach::PublicAndLoopback, &url).await;
    assert_eq!(answer.result, AttemptResult::StatusCode(200));
    assert_eq!(answer.excerpt.as_deref(), Some("ok"));
    let request = requests.recv().await.unwrap();
    assert!(request.starts_with("POST /secret-path?token=1 HTTP/1.1\r\n"), "{request}");
    for line in [
        "content-type: application/json",
        "webhook-id: evt_1",
        "webhook-timestamp: 1700000000",
        "webhook-signature: v1,abc",
        "x-service-event: new_client",
        "user-agent: partner-api-webhooks/1",
    ] {
        assert!(request.contains(&format!("{line}\r\n")), "{line} in {request}");
    }
    assert!(request.ends_with("\r\n\r\n{}") && !request.contains("accept-encoding"));
}

#[tokio::test]
async fn a_redirect_is_an_answer_like_any_other() {
    let (url, _requests) =
        receiver(b"HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n", Duration::ZERO).await;
    let answer = post(Reach::PublicAndLoopback, &url).await;
    assert_eq!((answer.result, answer.excerpt), (AttemptResult::StatusCode(302), None));
}

#[tokio::test]
async fn failures_have_short_stable_reasons() {
    let hold = Duration::from_secs(5);
    let (silent, _r1) = receiver(b"", hold).await;
    assert_eq!(post(Reach::PublicAndLoopback, &silent).await.result, failed("timed out after 1 s"));
    let (dripping, _r2) = receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", hold).await;
    assert_eq!(post(Reach::PublicAndLoopback, &dripping).await.result, failed("timed out after 1 s"));
    let (closing, _r3) = receiver(b"", Duration::ZERO).await;
    assert_eq!(post(Reach::PublicAndLoopback, &closing).await.result, failed("connection closed before an answer"));
    let (babbling, _r4) = receiver(b"220 mail.example.com ESMTP\r\n", Duration::ZERO).await;
    assert_eq!(post(Reach::PublicAndLoopback, &babbling).await.result, failed("no valid HTTP answer"));
    let tls = ReceiverUrl::parse(&babbling.expose().replace("http:", "https:"), Reach::PublicAndLoopback).unwrap();
    assert_eq!(post(Reach::PublicAndLoopback, &tls).await.result, failed("TLS: the receiver does not speak it"));
}

#[tokio::test]
async fn a_closed_port_and_an_unknown_name_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let closed = ReceiverUrl::parse(&url, Reach::PublicAndLoopback).unwrap();
    assert_eq!(post(Reach::PublicAndLoopback, &closed).await.result, failed("connection refused"));
    let unknown = ReceiverUrl::parse("https://receiver.invalid/", Reach::Public).unwrap();
    assert_eq!(post(Reach::Public, &unknown).await.result, failed("name does not resolve"));
}

#[tokio::test]
async fn loopback_is_not_reached_in_production_by_address_or_by_name() {
    let (url, mut requests) = receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Duration::ZERO).await;
    assert_eq!(post(Reach::Public, &url).await.result, failed("address not allowed"));
    let named = url.expose().replace("http://127.0.0.1", "https://localhost");
    let named = ReceiverUrl::parse(&named, Reach::PublicAndLoopback).unwrap();
    assert_eq!(post(Reach::Public, &named).await.result, failed("address not allowed"));
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn a_name_that_resolves_to_a_refused_address_is_refused_by_the_resolver() {
    use reqwest::dns::Resolve;
    let resolver = CheckedResolver { reach: Reach::Public };
    let refused = resolver.resolve("localhost".parse().unwrap()).await.err().unwrap();
    assert_eq!(refused.to_string(), "address not allowed");
}

#[test]
fn an_excerpt_is_text_of_at_most_1_kib() {
    assert_eq!(excerpt(b""), None);
    assert_eq!(excerpt("äöü".as_bytes()).as_deref(), Some("äöü"));
    let cut = "ä".repeat(600);
    assert_eq!(excerpt(&format!("x{cut}").as_bytes()[..EXCERPT_BYTES]), Some(format!("x{}", "ä".repeat(511))));
    let binary = excerpt(&[0xff; EXCERPT_BYTES]).unwrap();
    assert!(binary.len() <= EXCERPT_BYTES && binary.chars().all(|c| c == char::REPLACEMENT_CHARACTER));
    assert_eq!(excerpt(b"ok\xff").as_deref(), Some("ok\u{fffd}"));
}
