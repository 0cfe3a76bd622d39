//! The webhook client against receivers that misbehave: what the log says, how often they were hit, how long it took, what was read.

use std::time::Duration;

use crate::rough::{Manner, OK, Rough};
use crate::world::{DEADLINE, client, post, said};

/// What the buffers of two sockets hold, and a little read besides.
const MOST_SENT_BYTES: u64 = 16 * 1024 * 1024;
const CLOSED: &str = "connection closed before an answer";
const LATE: &str = "timed out after 2 s";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    NoTime,
    AllTheTime,
}
use Takes::{AllTheTime, NoTime};

/// Meets one attempt so, and checks that the receiver was hit once, and when the client had enough.
async fn meets(manner: Manner, expected: &str, takes: Takes) -> Option<String> {
    let receiver = Rough::start([manner.clone()]).await;
    let answer = post(&client(), &receiver.url()).await;
    assert_eq!(said(&answer), expected, "{manner:?}");
    let hits = if matches!(manner, Manner::Resets) { 0 } else { 1 };
    assert_eq!((receiver.requests().len(), receiver.connections()), (hits, 1), "{expected}: exactly once");
    let took = Duration::from_millis(answer.duration_ms.into());
    let in_time = if takes == AllTheTime { (DEADLINE..DEADLINE * 3 / 2).contains(&took) } else { took < DEADLINE };
    assert!(in_time, "{expected} took {took:?}");
    assert!(receiver.sent_bytes() < MOST_SENT_BYTES, "{expected}: {} bytes", receiver.sent_bytes());
    assert!(answer.excerpt.as_ref().is_none_or(|excerpt| excerpt.len() <= 1024));
    assert!(!said(&answer).contains("secret") && !said(&answer).contains("127.0.0.1"));
    answer.excerpt
}

#[tokio::test]
async fn statuses_count_as_they_are_and_redirects_are_not_followed() {
    for status in [200, 201, 204, 299, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503, 599] {
        meets(Manner::status(status), &status.to_string(), NoTime).await;
    }
    let moved = b"HTTP/1.1 307 Go\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n";
    meets(Manner::says(moved), "307", NoTime).await;
    let early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    meets(Manner::says(early), "200", NoTime).await;
}

#[tokio::test]
async fn what_is_late_has_failed_wherever_it_stops() {
    let head = b"HTTP/1.1 200 OK\r\nx-slow: ".to_vec();
    let body = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nSlow: ".to_vec();
    tokio::join!(
        meets(Manner::says(b""), LATE, AllTheTime),
        meets(Manner::says(b"HTTP/1.1 200 OK\r\nx-"), LATE, AllTheTime),
        meets(Manner::SaysAndDrips(head), LATE, AllTheTime),
        meets(Manner::says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"), "200", AllTheTime),
        meets(Manner::says(CHUNKED), "200", AllTheTime),
        async {
            let excerpt = meets(Manner::SaysAndDrips(body), "200", AllTheTime).await.unwrap();
            assert!(excerpt.starts_with("Slow: xxx"), "what had come is shown: {excerpt}");
        },
    );
}

#[tokio::test]
async fn announcements_that_no_answer_follows_are_dropped_until_the_deadline() {
    let flood = Manner::SaysWithoutEnd(Vec::new(), b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
    let receiver = Rough::start([flood]).await;
    assert_eq!(said(&post(&client(), &receiver.url()).await), LATE);
    receiver.until_closed(1).await;
    assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1));
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_cut_off_and_counts_by_its_status() {
    let endless = b"1000\r\n".iter().copied().chain([b'x'; 0x1000]).chain(*b"\r\n").collect();
    let untold = "HTTP/1.1 200 OK\r\n\r\n";
    let huge = "HTTP/1.1 500 Oh\r\ncontent-length: 200000000\r\n\r\n";
    let full = Some("x".repeat(1024));
    assert_eq!(meets(Manner::SaysWithoutEnd(CHUNKED.as_bytes().to_vec(), endless), "200", NoTime).await, full);
    assert_eq!(meets(Manner::endless(untold), "200", NoTime).await, full);
    assert_eq!(meets(Manner::endless(huge), "500", NoTime).await, full);
}

#[tokio::test]
async fn a_compressed_answer_stays_compressed() {
    let excerpt = meets(Manner::gzip_bomb(), "200", NoTime).await.unwrap();
    assert!(excerpt.starts_with('\u{1f}') && !excerpt.contains(&"\0".repeat(16)), "{excerpt:?}");
}

#[tokio::test]
async fn a_head_without_end_is_no_answer() {
    meets(Manner::endless("HTTP/1.1 200 OK\r\nx-long: "), "no valid HTTP answer", NoTime).await;
    let many = (0..1000).map(|number| format!("x-{number}: y\r\n")).collect::<String>();
    meets(Manner::says(format!("HTTP/1.1 200 OK\r\n{many}\r\n")), "no valid HTTP answer", NoTime).await;
}

#[tokio::test]
async fn a_connection_that_breaks_is_not_tried_again() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    meets(Manner::Resets, "connection reset", NoTime).await;
    meets(Manner::SaysAndResets(Vec::new()), "connection reset", NoTime).await;
    meets(Manner::SaysAndResets(b"HTTP/1.1 200 O".to_vec()), "connection reset", NoTime).await;
    meets(Manner::SaysAndCloses(Vec::new()), CLOSED, NoTime).await;
    meets(Manner::SaysAndCloses(b"HTTP/1.1 200 OK\r\n".to_vec()), CLOSED, NoTime).await;
    meets(Manner::HalfCloses, CLOSED, NoTime).await;
    assert_eq!(meets(Manner::SaysAndCloses(half), "200", NoTime).await.as_deref(), Some("half"));
}

#[tokio::test]
async fn what_is_no_http_is_called_so() {
    for babble in [
        "220 mail.example.com ESMTP\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "\0\0\0\0\0\0\0\0",
    ] {
        meets(Manner::says(babble), "no valid HTTP answer", NoTime).await;
    }
}

#[tokio::test]
async fn a_request_carries_the_signed_headers_and_the_exact_body() {
    let receiver = Rough::start([Manner::says(OK)]).await;
    let answer = post(&client(), &receiver.url()).await;
    assert_eq!((said(&answer).as_str(), answer.excerpt.as_deref()), ("200", Some("ok")));
    let request = receiver.requests().remove(0);
    assert!(request.starts_with("POST /secret-path?token=secret-token HTTP/1.1\r\n"), "{request}");
    for line in [
        "content-type: application/json",
        "content-length: 2",
        "webhook-id: evt_1",
        "webhook-timestamp: 1700000000",
        "webhook-signature: v1,abc",
        "x-service-event: new_client",
        "user-agent: partner-api-webhooks/1",
    ] {
        assert!(request.contains(&format!("{line}\r\n")), "{line} in {request}");
    }
    assert!(request.ends_with("\r\n\r\n{}"));
    for absent in ["accept-encoding", "authorization", "cookie", "referer"] {
        assert!(!request.to_lowercase().contains(&format!("{absent}:")), "{absent} in {request}");
    }
}

#[tokio::test]
async fn any_path_and_query_that_a_url_may_have_can_be_sent() {
    let receiver = Rough::start([Manner::says(OK)]).await;
    let client = client();
    for path in [
        "",
        "/",
        "/a%20b",
        "/%00",
        "/a|b^c{d}`e\"f<g>",
        "/ü/💪",
        "/;,=@!$&'()*+",
        "/?q=a%20b|^{}`\"<>'ü",
        "/a?b?c/d",
        "//x",
    ] {
        let url = format!("http://127.0.0.1:{}{path}", receiver.port());
        assert_eq!(said(&post(&client, &url).await), "200", "{path}");
    }
    assert_eq!(receiver.requests().len(), 10);
}

#[tokio::test]
async fn retry_after_is_passed_on_as_it_came() {
    let busy = b"HTTP/1.1 429 Busy\r\nretry-after: soon, -5\r\ncontent-length: 0\r\n\r\n";
    let receiver = Rough::start([Manner::says(busy), Manner::status(503)]).await;
    let client = client();
    assert_eq!(post(&client, &receiver.url()).await.retry_after.as_deref(), Some("soon, -5"));
    assert_eq!(post(&client, &receiver.url()).await.retry_after, None);
}
