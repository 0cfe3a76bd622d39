//! Connections: used again while that is safe. A request that arrives twice has met a kept connection that broke.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::certificates::{Authority, NAME};
use crate::tcp_receiver::{OK, TcpAnswer, TcpReceiver};
use crate::world::{Book, DEADLINE, client, client_with, mozilla, outcome, post};
use domain::receiver_url::{Reach, ReceiverUrl};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use webhook::WebhookClient;

#[tokio::test]
async fn twenty_posts_go_over_one_connection() {
    let receiver = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
    let client = client();
    for _ in 0..20 {
        assert_eq!(outcome(&post(&client, &receiver.url()).await), "200");
    }
    assert_eq!((receiver.requests().len(), receiver.connections()), (20, 1));
}

#[tokio::test]
async fn a_connection_is_closed_as_the_receiver_wishes() {
    let closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let receiver = TcpReceiver::start([TcpAnswer::sends(closing)]).await;
    let client = client();
    for posted in 1..=3 {
        assert_eq!(outcome(&post(&client, &receiver.url()).await), "200");
        receiver.until_closed(posted).await;
    }
    assert_eq!((receiver.requests().len(), receiver.connections()), (3, 3));
    let old = TcpReceiver::start([TcpAnswer::SendsAndCloses(b"HTTP/1.0 200 OK\r\n\r\nold".to_vec())]).await;
    assert_eq!(post(&client, &old.url()).await.excerpt.as_deref(), Some("old"));
}

#[tokio::test]
async fn a_connection_is_not_kept_after_an_answer_that_was_not_read_to_its_end() {
    let overlong = [OK, b"and more than announced"].concat();
    let late = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    let huge = TcpAnswer::endless("HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n");
    for first in [huge, TcpAnswer::sends(overlong), TcpAnswer::sends(late)] {
        let receiver = TcpReceiver::start([first, TcpAnswer::sends(OK)]).await;
        let client = client();
        post(&client, &receiver.url()).await;
        receiver.until_closed(1).await;
        assert_eq!(outcome(&post(&client, &receiver.url()).await), "200");
        assert_eq!((receiver.requests().len(), receiver.connections()), (2, 2));
    }
}

#[tokio::test]
async fn a_request_that_a_kept_connection_loses_unanswered_is_sent_again_within_the_attempt() {
    for breaking in [TcpAnswer::SendsAndResets(Vec::new()), TcpAnswer::SendsAndCloses(Vec::new())] {
        let receiver = TcpReceiver::start([TcpAnswer::sends(OK), breaking, TcpAnswer::sends(OK)]).await;
        let client = client();
        for _ in 0..2 {
            assert_eq!(outcome(&post(&client, &receiver.url()).await), "200");
        }
        assert_eq!((receiver.requests().len(), receiver.connections()), (3, 2), "once more, on a fresh connection");
    }
}

#[tokio::test]
async fn a_request_is_sent_once_more_at_most_and_not_once_an_answer_has_begun() {
    let resets = TcpAnswer::SendsAndResets(Vec::new());
    let begun = TcpAnswer::SendsAndResets(b"HTTP/1.1 200 O".to_vec());
    for (breaking, requests) in [(vec![resets.clone(), resets], 3), (vec![begun], 2)] {
        let script = [vec![TcpAnswer::sends(OK)], breaking, vec![TcpAnswer::sends(OK)]].concat();
        let receiver = TcpReceiver::start(script).await;
        let client = client();
        assert_eq!(outcome(&post(&client, &receiver.url()).await), "200");
        assert_eq!(outcome(&post(&client, &receiver.url()).await), "connection reset");
        assert_eq!(receiver.requests().len(), requests);
    }
}

#[tokio::test]
async fn an_idle_connection_is_given_up_after_a_second() {
    let receiver = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
    let client = client();
    assert_eq!(outcome(&post(&client, &receiver.url()).await), "200");
    let answered = Instant::now();
    receiver.until_closed(1).await;
    let idle = answered.elapsed();
    assert!((Duration::from_millis(990)..Duration::from_secs(4)).contains(&idle), "{idle:?}");
    assert_eq!(outcome(&post(&client, &receiver.url()).await), "200");
    assert_eq!((receiver.requests().len(), receiver.connections()), (2, 2));
}

#[tokio::test]
async fn a_connection_that_no_attempt_needs_is_given_up() {
    let authority = Authority::named("One");
    let (acceptor, has_accepted) = (authority.identity().both_versions(&[]), Arc::new(AtomicBool::new(false)));
    // The first connection works; all others hang before TLS begins.
    let layer = move |mut stream: TcpStream| {
        let (acceptor, is_late) = (acceptor.clone(), has_accepted.swap(true, Ordering::Relaxed));
        async move {
            if is_late {
                stream.read_to_end(&mut Vec::new()).await?;
                return Err(io::Error::other("given up"));
            }
            acceptor.accept(stream).await
        }
    };
    let receiver = TcpReceiver::start_through([TcpAnswer::sends(OK)], layer).await;
    let client = client_with(DEADLINE, Book::of(&[(NAME, &["127.0.0.1"])]), authority.trusted());
    let url = format!("https://{NAME}:{}/", receiver.port());
    assert_eq!(outcome(&post(&client, &url).await), "200");
    let (first, second) = tokio::join!(post(&client, &url), post(&client, &url));
    assert_eq!([outcome(&first), outcome(&second)], ["200", "200"], "the second goes by the first one's connection");
    assert_eq!((receiver.requests().len(), receiver.connections()), (3, 2));
    receiver.until_closed(1).await;
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_used() {
    let receiver = TcpReceiver::start([TcpAnswer::SendsAndCloses(OK.to_vec())]).await;
    let client = client();
    for posted in 1..=20 {
        // Either the close is seen before the request and nothing is sent, or the attempt fails and is logged.
        let result = outcome(&post(&client, &receiver.url()).await);
        assert!(
            ["200", "connection closed before an answer", "connection reset"].contains(&result.as_str()),
            "{result}"
        );
        assert!(receiver.requests().len() <= posted, "never twice");
        receiver.until_closed(receiver.connections()).await;
    }
}

#[tokio::test]
async fn a_name_is_resolved_for_each_connection_and_the_connection_goes_to_its_address() {
    let receiver =
        TcpReceiver::start([TcpAnswer::SendsAndCloses(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec())]).await;
    let book = Book::of(&[("localhost", &["127.0.0.1"])]);
    let client = client_with(DEADLINE, Arc::clone(&book) as _, mozilla());
    let url = format!("http://localhost:{}/", receiver.port());
    assert_eq!((outcome(&post(&client, &url).await), book.lookups()), ("200".to_owned(), 1));
    book.set("localhost", &["10.0.0.1"]);
    assert_eq!((outcome(&post(&client, &url).await), book.lookups()), ("address not allowed".to_owned(), 2));
    book.set("localhost", &["127.0.0.1", "10.0.0.1"]);
    assert_eq!(outcome(&post(&client, &url).await), "address not allowed", "a mixed answer is refused whole");
    book.set("localhost", &["127.0.0.1", "::ffff:169.254.169.254"]);
    assert_eq!(outcome(&post(&client, &url).await), "address not allowed");
    book.set("localhost", &[]);
    assert_eq!(outcome(&post(&client, &url).await), "name does not resolve");
    assert_eq!(receiver.connections(), 1);
    book.set("localhost", &["::1", "127.0.0.1"]);
    assert_eq!(outcome(&post(&client, &url).await), "200", "where one address is dead, the next is tried");
}

#[tokio::test]
async fn production_reaches_loopback_neither_by_address_nor_by_name() {
    let receiver = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
    let book = Book::of(&[("hooks.example.com", &["127.0.0.1"]), ("mixed.example.com", &["8.8.8.8", "::1"])]);
    let client = WebhookClient::with(Reach::Public, DEADLINE, book, mozilla()).unwrap();
    let port = receiver.port();
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://hooks.example.com:{port}/"),
        format!("https://mixed.example.com:{port}/"),
    ] {
        assert_eq!(outcome(&post(&client, &url).await), "address not allowed", "{url}");
    }
    assert_eq!(outcome(&post(&client, "https://unknown.example.com/").await), "name does not resolve");
    assert_eq!(receiver.connections(), 0);
    assert!(ReceiverUrl::parse(&format!("http://127.0.0.1:{port}/"), Reach::Public).is_err());
}

#[tokio::test]
async fn a_closed_port_is_reported_and_a_slow_resolver_is_within_the_deadline() {
    struct Slow;
    impl webhook::resolve::Names for Slow {
        fn lookup(&self, _name: &str) -> webhook::resolve::Lookup {
            Box::pin(std::future::pending())
        }
    }
    let gone = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
    let url = gone.url();
    drop(gone);
    tokio::task::yield_now().await;
    assert_eq!(outcome(&post(&client(), &url).await), "connection refused");
    let slow = WebhookClient::with(Reach::Public, DEADLINE, Arc::new(Slow), mozilla()).unwrap();
    assert_eq!(outcome(&post(&slow, "https://hooks.example.com/").await), "timed out after 2 s");
}
