//! HTTP/2 by ALPN: one connection, requests side by side, and no request twice where the protocol would allow it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, SendStream};
use http::{Response, Version};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use webhook::WebhookClient;

use crate::certificates::{Authority, NAME};
use crate::world::{Book, DEADLINE, client_with, outcome, post};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Reply {
    Ok,
    /// A header list of `count` fields of `bytes` bytes each, by a library's encoder with its table and its Huffman
    /// code.
    ManyFields(usize, usize),
    Hangs,
    NeverEnds,
    HeadAlone,
    Refuses,
    Resets,
    GoesAway,
    DiesAfterOne,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
    sent_bytes: AtomicUsize,
}

struct Http2Receiver {
    port: u16,
    seen: Arc<Counts>,
    server: JoinHandle<()>,
}

impl Http2Receiver {
    async fn start(reply: Reply, acceptor: TlsAcceptor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Counts::default());
        let counted = Arc::clone(&seen);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, acceptor.clone(), reply, Arc::clone(&counted)));
            }
        });
        Self { port, seen, server }
    }

    fn url(&self) -> String {
        format!("https://{NAME}:{}/secret-path", self.port)
    }

    /// Requests, connections.
    fn counts(&self) -> (usize, usize) {
        (self.seen.requests.load(Ordering::Relaxed), self.seen.connections.load(Ordering::Relaxed))
    }
}

impl Drop for Http2Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, reply: Reply, seen: Arc<Counts>) {
    let stream = acceptor.accept(stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut connection: Connection<TlsStream<TcpStream>, Bytes> = h2::server::handshake(stream).await.unwrap();
    if reply == Reply::GoesAway {
        connection.abrupt_shutdown(Reason::NO_ERROR);
    }
    let mut unanswered = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_eq!((request.version(), request.uri().path()), (Version::HTTP_2, "/secret-path"));
        seen.requests.fetch_add(1, Ordering::Relaxed);
        match reply {
            Reply::Ok => drop(head(&mut respond).send_data(Bytes::from_static(b"ok"), true)),
            Reply::ManyFields(count, bytes) => {
                let mut response = Response::builder().header("retry-after", "120");
                for number in 0..count {
                    response = response.header(format!("x-field-{number}"), format!("{number} {}", "y".repeat(bytes)));
                }
                let mut body = respond.send_response(response.body(()).unwrap(), false).unwrap();
                body.send_data(Bytes::from_static(b"ok"), true).unwrap();
            }
            Reply::Hangs | Reply::GoesAway => unanswered.push((respond, None)),
            Reply::HeadAlone => {
                let body = head(&mut respond);
                unanswered.push((respond, Some(body)));
            }
            Reply::NeverEnds => drop(tokio::spawn(pour(head(&mut respond), Arc::clone(&seen)))),
            Reply::DiesAfterOne => {
                head(&mut respond).send_data(Bytes::from_static(b"ok"), true).unwrap();
                // Long enough to send the answer. Afterwards nothing is answered, not even a ping.
                let _ = tokio::time::timeout(DEADLINE / 10, connection.accept()).await;
                return std::future::pending().await;
            }
            Reply::Refuses => respond.send_reset(Reason::REFUSED_STREAM),
            Reply::Resets => respond.send_reset(Reason::INTERNAL_ERROR),
        }
    }
}

fn head(respond: &mut SendResponse<Bytes>) -> SendStream<Bytes> {
    respond.send_response(Response::new(()), false).unwrap()
}

/// Sends data as long as the client grants capacity.
async fn pour(mut body: SendStream<Bytes>, seen: Arc<Counts>) {
    loop {
        body.reserve_capacity(16 * 1024);
        let Some(Ok(room)) = std::future::poll_fn(|context| body.poll_capacity(context)).await else { return };
        if body.send_data(Bytes::from(vec![b'x'; room]), false).is_err() {
            return;
        }
        seen.sent_bytes.fetch_add(room, Ordering::Relaxed);
    }
}

async fn start(reply: Reply) -> (Http2Receiver, WebhookClient) {
    let authority = Authority::named("One");
    let receiver = Http2Receiver::start(reply, authority.identity().both_versions(&["h2", "http/1.1"])).await;
    let client = client_with(DEADLINE, Book::of(&[(NAME, &["127.0.0.1"])]), authority.trusted());
    (receiver, client)
}

#[tokio::test]
async fn twenty_posts_go_over_one_connection_one_after_the_other_and_side_by_side() {
    let (receiver, client) = start(Reply::Ok).await;
    for _ in 0..20 {
        let answer = post(&client, &receiver.url()).await;
        assert_eq!((outcome(&answer).as_str(), answer.excerpt.as_deref()), ("200", Some("ok")));
    }
    let url = receiver.url();
    tokio::join!(post(&client, &url), post(&client, &url), post(&client, &url));
    assert_eq!(receiver.counts(), (23, 1));
}

#[tokio::test]
async fn header_lists_of_any_size_are_read_one_after_the_other_and_side_by_side() {
    for (count, bytes) in [(3, 10), (101, 10), (1000, 10), (10, 6600), (500, 1000)] {
        let (receiver, client) = start(Reply::ManyFields(count, bytes)).await;
        let url = receiver.url();
        for _ in 0..3 {
            let (first, second) = tokio::join!(post(&client, &url), post(&client, &url));
            for answer in [first, second] {
                assert_eq!(
                    (outcome(&answer).as_str(), answer.excerpt.as_deref()),
                    ("200", Some("ok")),
                    "{count}, {bytes}"
                );
                assert_eq!(answer.retry_after.as_deref(), Some("120"));
            }
        }
        assert!(receiver.counts().1 <= 2, "{:?}", receiver.counts());
    }
}

#[tokio::test]
async fn a_request_that_is_refused_or_cut_off_is_not_sent_again() {
    for (reply, expected, requests) in [
        (Reply::Refuses, "HTTP/2 stream reset", 1),
        (Reply::Resets, "HTTP/2 stream reset", 1),
        (Reply::GoesAway, "connection closed before an answer", 0),
        (Reply::Hangs, "timed out after 2 s", 1),
        (Reply::HeadAlone, "200", 1),
    ] {
        let (receiver, client) = start(reply).await;
        assert_eq!(outcome(&post(&client, &receiver.url()).await), expected, "{reply:?}");
        assert_eq!(receiver.counts(), (requests, 1), "{reply:?}");
    }
}

#[tokio::test]
async fn an_endless_body_is_cut_off_and_leaves_its_connection_to_others() {
    let (receiver, client) = start(Reply::NeverEnds).await;
    for posted in 1..=5 {
        let answer = post(&client, &receiver.url()).await;
        assert_eq!((outcome(&answer).as_str(), answer.excerpt), ("200", Some("x".repeat(1024))));
        assert_eq!(receiver.counts(), (posted, 1));
    }
    let sent_bytes = receiver.seen.sent_bytes.load(Ordering::Relaxed);
    assert!(sent_bytes <= 5 * 3 * 64 * 1024, "{sent_bytes}: a window or two for each");
}

#[tokio::test]
async fn a_connection_that_has_died_is_given_up_within_one_attempt() {
    let authority = Authority::named("One");
    let receiver = Http2Receiver::start(Reply::DiesAfterOne, authority.identity().both_versions(&["h2"])).await;
    let client = client_with(DEADLINE * 8, Book::of(&[(NAME, &["127.0.0.1"])]), authority.trusted());
    let mut results = Vec::new();
    for _ in 0..3 {
        results.push(outcome(&post(&client, &receiver.url()).await));
    }
    assert_eq!(results, ["200", "connection lost", "200"]);
    assert_eq!(receiver.counts().1, 2);
}
