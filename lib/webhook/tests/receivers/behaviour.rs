//! The webhook client against misbehaving receivers: the logged reason, the number of requests, the time, the excerpt.

use std::task::Poll;
use std::time::Duration;

use crate::tcp_receiver::{OK, TcpAnswer, TcpReceiver};
use crate::world::{DEADLINE, client, outcome, post};

/// Limit of the bytes that a receiver can send: the buffers of two sockets, and a little that is read.
const MOST_SENT_BYTES: u64 = 16 * 1024 * 1024;
const CLOSED: &str = "connection closed before an answer";
const LATE: &str = "timed out after 2 s";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// Time for a body, less the tolerance of a timer.
const BODY_GRACE: Duration = Duration::from_millis(1990);
/// Longest time of an attempt that waits for nothing.
const QUICK: Duration = Duration::from_millis(1000);
const NOT_HTTP: &str = "no valid HTTP answer";

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    NoTime,
    /// For a body that does not end.
    BodyGrace,
    AllTheTime,
}
use Takes::{AllTheTime, BodyGrace, NoTime};

/// Makes one attempt against a scripted receiver. Checks the outcome, that the receiver got one request, and the time.
async fn check(scripted: TcpAnswer, expected: &str, takes: Takes) -> Option<String> {
    let receiver = TcpReceiver::start([scripted.clone()]).await;
    let answer = post(&client(), &receiver.url()).await;
    assert_eq!(outcome(&answer), expected, "{scripted:?}");
    let hits = if matches!(scripted, TcpAnswer::Resets) { 0 } else { 1 };
    assert_eq!((receiver.requests().len(), receiver.connections()), (hits, 1), "{expected}: exactly once");
    let took = Duration::from_millis(answer.duration_ms.into());
    let in_time = match takes {
        NoTime => took < DEADLINE,
        BodyGrace => (BODY_GRACE..DEADLINE * 3 / 2).contains(&took),
        AllTheTime => (DEADLINE..DEADLINE * 3 / 2).contains(&took),
    };
    assert!(in_time, "{expected} took {took:?}");
    assert!(receiver.sent_bytes() < MOST_SENT_BYTES, "{expected}: {} bytes", receiver.sent_bytes());
    assert!(answer.excerpt.as_ref().is_none_or(|excerpt| excerpt.len() <= 1024));
    assert!(!outcome(&answer).contains("secret") && !outcome(&answer).contains("127.0.0.1"));
    answer.excerpt
}

#[tokio::test]
async fn statuses_count_as_they_are_and_redirects_are_not_followed() {
    for status in [200, 201, 204, 299, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503, 599] {
        check(TcpAnswer::status(status), &status.to_string(), NoTime).await;
    }
    let moved = b"HTTP/1.1 307 Go\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n";
    check(TcpAnswer::sends(moved), "307", NoTime).await;
    let early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    check(TcpAnswer::sends(early), "200", NoTime).await;
}

#[tokio::test]
async fn an_answer_without_a_whole_head_is_late_wherever_it_stops() {
    let head = b"HTTP/1.1 200 OK\r\nx-slow: ".to_vec();
    tokio::join!(
        check(TcpAnswer::sends(b""), LATE, AllTheTime),
        check(TcpAnswer::sends(b"HTTP/1.1 200 O"), LATE, AllTheTime),
        check(TcpAnswer::sends(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 2"), LATE, AllTheTime),
        check(TcpAnswer::SendsAndDrips(b"HTTP/1.1 200 Slo".to_vec()), LATE, AllTheTime),
        check(TcpAnswer::sends(b"HTTP/1.1 200 OK\r\n"), LATE, AllTheTime),
        check(TcpAnswer::sends(b"HTTP/1.1 410 Gone\r\nx-"), LATE, AllTheTime),
        check(TcpAnswer::SendsAndDrips(head), LATE, AllTheTime),
    );
}

#[tokio::test]
async fn a_body_is_waited_for_two_seconds_at_most() {
    let body = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nSlow: ".to_vec();
    let identity = b"HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\nok";
    tokio::join!(
        check(TcpAnswer::sends(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"), "200", BodyGrace),
        check(TcpAnswer::sends(CHUNKED), "200", BodyGrace),
        async { assert_eq!(check(TcpAnswer::sends(identity), "200", BodyGrace).await.as_deref(), Some("ok")) },
        async {
            let excerpt = check(TcpAnswer::SendsAndDrips(body), "200", BodyGrace).await.unwrap();
            assert!(excerpt.starts_with("Slow: xxx"), "the bytes that arrived are shown: {excerpt}");
        },
    );
}

#[tokio::test]
async fn interim_answers_without_end_are_cut_off() {
    let flood = TcpAnswer::SendsForever(Vec::new(), b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
    let receiver = TcpReceiver::start([flood]).await;
    let answer = post(&client(), &receiver.url()).await;
    assert_eq!(outcome(&answer), NOT_HTTP);
    assert!(Duration::from_millis(answer.duration_ms.into()) < QUICK, "{} ms", answer.duration_ms);
    receiver.until_closed(1).await;
    assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1));
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_cut_off_and_counts_by_its_status() {
    let endless = b"1000\r\n".iter().copied().chain([b'x'; 0x1000]).chain(*b"\r\n").collect();
    let without_length = "HTTP/1.1 200 OK\r\n\r\n";
    let huge = "HTTP/1.1 500 Oh\r\ncontent-length: 200000000\r\n\r\n";
    let full = Some("x".repeat(1024));
    assert_eq!(check(TcpAnswer::SendsForever(CHUNKED.as_bytes().to_vec(), endless), "200", NoTime).await, full);
    assert_eq!(check(TcpAnswer::endless(without_length), "200", NoTime).await, full);
    assert_eq!(check(TcpAnswer::endless(huge), "500", NoTime).await, full);
}

#[tokio::test]
async fn a_compressed_answer_is_named_and_not_shown() {
    assert_eq!(check(TcpAnswer::gzip_bomb(), "200", NoTime).await.as_deref(), Some("compressed, not shown"));
    for (coding, excerpt) in [("br", Some("compressed, not shown")), ("identity", Some("ok"))] {
        let answer = odd("HTTP/1.1 200 OK", &format!("Content-Encoding: {coding}\r\n"));
        assert_eq!(check(answer, "200", NoTime).await.as_deref(), excerpt, "{coding}");
    }
    let empty = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(check(TcpAnswer::sends(empty), "200", NoTime).await, None);
}

#[tokio::test]
async fn a_head_without_end_is_cut_off() {
    check(TcpAnswer::endless("HTTP/1.1 200 OK\r\nx-long: "), NOT_HTTP, NoTime).await;
    let lines = TcpAnswer::SendsForever(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x-many: y\r\n".repeat(1000));
    check(lines, NOT_HTTP, NoTime).await;
}

/// An answer with these lines in its head, whose body is `ok`.
fn odd(status: &str, lines: &str) -> TcpAnswer {
    TcpAnswer::sends(format!("{status}\r\n{lines}Content-Length: 2\r\n\r\nok"))
}

#[tokio::test]
async fn a_status_counts_whatever_the_headers_look_like_and_the_connection_is_kept() {
    let many = |count| (0..count).map(|number| format!("x-{number}: y\r\n")).collect::<String>();
    let large = |bytes| format!("x-large: {}\r\n", "y".repeat(bytes));
    for lines in [
        many(101),
        many(500),
        many(1000),
        large(64 * 1024),
        large(256 * 1024),
        (0..8).map(|_| large(32 * 1024)).collect(),
        "Set-Cookie: a=b\r\n".repeat(200),
        "Allow-Credentials : true\r\n".to_owned(),
        "no colon\r\n: no name\r\n\t folded\r\n".to_owned(),
        "X-Folded: a\r\n b\r\n\tc\r\n".to_owned(),
        "X-Bell: \u{7}\u{1b}[0m\r\n".to_owned(),
        "X-Größe: groß\r\nX (comment): y\r\n<html>: y\r\n".to_owned(),
        "X: bare\nY: line feeds\n".to_owned(),
        "Connection: keep-alive\r\n".to_owned(),
        "Content-Length: 2\r\nContent-Length: 2, 2\r\n".to_owned(),
    ] {
        let shown: String = lines.chars().take(60).collect();
        for (status, code) in [
            ("HTTP/1.1 200 OK", "200"),
            ("HTTP/1.1 202", "202"),
            ("HTTP/1.1 299 G\u{f6}", "299"),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive", "200"),
            ("HTTP/1.1 410 Gone", "410"),
        ] {
            let receiver = TcpReceiver::start([odd(status, &lines)]).await;
            let client = client();
            for _ in 0..2 {
                let answer = post(&client, &receiver.url()).await;
                assert_eq!(
                    (outcome(&answer).as_str(), answer.excerpt.as_deref()),
                    (code, Some("ok")),
                    "{status} {shown}"
                );
                assert!(Duration::from_millis(answer.duration_ms.into()) < QUICK, "{status} {shown}");
            }
            assert_eq!((receiver.requests().len(), receiver.connections()), (2, 1), "{status} {shown}");
        }
    }
}

#[tokio::test]
async fn a_status_counts_if_the_end_of_the_body_is_unknown_and_the_connection_is_not_used_again() {
    let answers = [
        "HTTP/1.1 200 OK\r\ntransfer-encoding: rot13\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\n\r\nok",
    ];
    await_all(answers.map(async |answer| {
        let receiver = TcpReceiver::start([TcpAnswer::sends(answer)]).await;
        let client = client();
        for posted in 1..=2 {
            let received = post(&client, &receiver.url()).await;
            assert_eq!((outcome(&received).as_str(), received.excerpt.as_deref()), ("200", Some("ok")), "{answer}");
            assert!(Duration::from_millis(received.duration_ms.into()) >= BODY_GRACE, "{answer}");
            assert_eq!((receiver.requests().len(), receiver.connections()), (posted, posted), "{answer}");
        }
    }))
    .await;
}

/// Awaits all await_all concurrently.
async fn await_all(all: impl IntoIterator<Item = impl Future<Output = ()>>) {
    let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        all.retain_mut(|one| one.as_mut().poll(cx).is_pending());
        if all.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_breaks_is_not_tried_again() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    check(TcpAnswer::Resets, "connection reset", NoTime).await;
    check(TcpAnswer::SendsAndResets(Vec::new()), "connection reset", NoTime).await;
    check(TcpAnswer::SendsAndResets(b"HTTP/1.1 200 O".to_vec()), "connection reset", NoTime).await;
    check(TcpAnswer::SendsAndCloses(Vec::new()), CLOSED, NoTime).await;
    check(TcpAnswer::SendsAndCloses(b"HTTP/1.1 200 OK".to_vec()), CLOSED, NoTime).await;
    check(TcpAnswer::SendsAndCloses(b"HTTP/1.1 200 OK\r\n".to_vec()), CLOSED, NoTime).await;
    check(TcpAnswer::HalfCloses, CLOSED, NoTime).await;
    assert_eq!(check(TcpAnswer::SendsAndCloses(half), "200", NoTime).await.as_deref(), Some("half"));
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_reported_as_such() {
    for babble in [
        "220 mail.example.com ESMTP\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "\0\0\0\0\0\0\0\0",
        "HTTP/1.1 200 OK\r\nX-Null: \0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\nok",
    ] {
        check(TcpAnswer::sends(babble), NOT_HTTP, NoTime).await;
    }
}

#[tokio::test]
async fn a_request_carries_the_signed_headers_and_the_exact_body() {
    let receiver = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
    let answer = post(&client(), &receiver.url()).await;
    assert_eq!((outcome(&answer).as_str(), answer.excerpt.as_deref()), ("200", Some("ok")));
    let request = receiver.requests().remove(0);
    assert!(request.starts_with("POST /secret-path?token=secret-token HTTP/1.1\r\n"), "{request}");
    for line in [
        "accept-encoding: identity",
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
    for absent in ["authorization", "cookie", "referer"] {
        assert!(!request.to_lowercase().contains(&format!("{absent}:")), "{absent} in {request}");
    }
}

#[tokio::test]
async fn any_path_and_query_that_a_url_may_have_can_be_sent() {
    let receiver = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
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
        assert_eq!(outcome(&post(&client, &url).await), "200", "{path}");
    }
    assert_eq!(receiver.requests().len(), 10);
}

#[tokio::test]
async fn retry_after_is_passed_on_as_it_came() {
    let busy = b"HTTP/1.1 429 Busy\r\nretry-after: soon, -5\r\ncontent-length: 0\r\n\r\n";
    let lines = format!("{}no colon\r\nRetry-After :\r\n 120\r\n", "x: y\r\n".repeat(1000));
    let odd = odd("HTTP/1.1 503 Busy", &lines);
    let receiver = TcpReceiver::start([TcpAnswer::sends(busy), TcpAnswer::status(503), odd]).await;
    let client = client();
    assert_eq!(post(&client, &receiver.url()).await.retry_after.as_deref(), Some("soon, -5"));
    assert_eq!(post(&client, &receiver.url()).await.retry_after, None);
    let folded = post(&client, &receiver.url()).await;
    assert_eq!((outcome(&folded).as_str(), folded.retry_after.as_deref()), ("503", Some("120")));
}
