//! Signatures against AWS's own example, and on the wire against those of the SDK.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{Builder, Region};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_async::time::TimeSource;
use aws_smithy_types::body::SdkBody;
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::http::{Http, amazon_roots};

const TAKEN: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
/// What a service says whose clock is an hour ahead.
const TOO_EARLY: &str = "HTTP/1.1 403 Forbidden\r\nconnection: close\r\ndate: Sun, 30 Aug 2015 13:36:00 GMT\r\n\
    content-type: application/x-amz-json-1.0\r\ncontent-length: 38\r\n\r\n{\"__type\":\"InvalidSignatureException\"}";

const PATIENCE: Duration = Duration::from_secs(10);

/// 30 August 2015, 12:36:00.
const EXAMPLE_S: u64 = 1_440_938_160;
const DAY_S: u64 = 86_400;

#[derive(Debug, Clone, Default)]
struct TestClock(Arc<Mutex<u64>>);

impl TimeSource for TestClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(*self.0.lock().unwrap())
    }
}

/// A client of a service that is there to be listened to.
struct Listened {
    service: TcpListener,
    clock: TestClock,
    client: Client,
    signature: QuickSignature,
}

impl Listened {
    fn new(service: TcpListener, path: &str, token: Option<&str>, is_quick: bool) -> Self {
        let (clock, signature) = (TestClock::default(), QuickSignature::default());
        let builder = Builder::new()
            .behavior_version_latest()
            .region(Region::new("us-east-1"))
            .credentials_provider(credentials(token))
            .endpoint_url(format!("http://{}{path}", service.local_addr().unwrap()))
            .time_source(clock.clone())
            .sleep_impl(TokioSleep::new())
            .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
            .interceptor(crate::LeanHeaders)
            .http_client(Http::new(amazon_roots(), Duration::from_secs(5)));
        let builder = if is_quick { builder.push_auth_scheme(signature.clone()) } else { builder };
        Self { service, clock, client: Client::from_conf(builder.build()), signature }
    }

    /// The heads of the requests that are made to send this body at that time to a service that answers so.
    async fn heads(&self, now_s: u64, body: &str, answers: &[&str]) -> Vec<String> {
        *self.clock.0.lock().unwrap() = now_s;
        let served = async {
            let mut heads = Vec::new();
            for answer in answers {
                let (mut stream, _) = self.service.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
                }
                stream.write_all(answer.as_bytes()).await.unwrap();
                let end = head.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
                heads.push(String::from_utf8(head[..end].to_vec()).unwrap());
            }
            heads
        };
        let sent = self.client.send_message().queue_url("http://queue").message_body(body).send();
        let both = tokio::time::timeout(PATIENCE, async { tokio::join!(served, sent).0 });
        both.await.expect("as many requests as there are answers")
    }
}

fn credentials(token: Option<&str>) -> Credentials {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    Credentials::new("AKIDEXAMPLE", secret, token.map(str::to_owned), None, "test")
}

fn post(uri: &str, headers: &[(&'static str, &'static str)]) -> HttpRequest {
    let mut request = HttpRequest::new(SdkBody::from(""));
    request.set_method("POST").unwrap();
    request.set_uri(uri).unwrap();
    for (name, value) in headers {
        request.headers_mut().append(*name, *value);
    }
    request
}

/// The key of the examples in AWS's test suite.
fn example_key() -> DayKey {
    let (region, service) = (SigningRegion::from_static("us-east-1"), SigningName::from_static("service"));
    DayKey::derive(credentials(None), "20150830", region, service)
}

#[test]
fn the_example_post_vanilla_of_aws_has_the_signature_that_aws_says() {
    let request = post("https://example.amazonaws.com/", &[("host", "example.amazonaws.com")]);
    let time = timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(EXAMPLE_S));
    let signed = Signable::of(&request, &time, None).map(|signable| signable.authorization(&example_key(), &time));
    let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
        SignedHeaders=host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
    assert_eq!(signed.as_deref(), Some(expected));
}

#[rstest]
#[case::a_path_that_is_escaped("https://example.amazonaws.com/a%20b", &[])]
#[case::a_path_with_dots("https://example.amazonaws.com/a/../b", &[])]
#[case::a_path_with_an_empty_segment("https://example.amazonaws.com//", &[])]
#[case::a_query("https://example.amazonaws.com/?a=b", &[])]
#[case::a_default_port("https://example.amazonaws.com:443/", &[])]
#[case::a_header_given_twice("https://example.amazonaws.com/", &[("x-amz-a", "1"), ("x-amz-a", "2")])]
#[case::spaces_that_are_not_signed("https://example.amazonaws.com/", &[("x-amz-a", "1  2")])]
fn what_is_escaped_or_trimmed_before_it_is_signed_is_left_to_the_sdk(
    #[case] uri: &str,
    #[case] headers: &[(&'static str, &'static str)],
) {
    assert!(Signable::of(&post(uri, headers), "20150830T123600Z", None).is_none());
}

#[rstest]
#[tokio::test]
async fn a_request_is_to_the_letter_what_the_sdk_alone_would_send(
    #[values(None, Some("a/token+of=a.role"))] token: Option<&str>,
    #[values("", "/", "/env/ping-1/")] path: &str,
) {
    let long = "ünï ".repeat(3_000);
    let mut sent = Vec::new();
    let mut service = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    for is_quick in [true, false] {
        let listened = Listened::new(service, path, token, is_quick);
        let mut heads = Vec::new();
        // The same day, the next, and one before: a key is good for its own.
        for (now_s, body) in [(0, ""), (1, "{}"), (DAY_S, long.as_str()), (DAY_S + 1, "a  b"), (1, "é")] {
            heads.extend(listened.heads(EXAMPLE_S + now_s, body, &[TAKEN]).await);
        }
        sent.push(heads);
        // Else both were signed by the SDK.
        assert_eq!(listened.signature.signer.key.lock().unwrap().is_some(), is_quick);
        service = listened.service;
    }
    assert_eq!(sent[0], sent[1]);
    assert!(sent[0].iter().all(|head| head.contains("\r\nauthorization: AWS4-HMAC-SHA256 ")), "{sent:?}");
}

#[rstest]
#[case::a_busy_service(BUSY, "x-amz-date: 20150830T123600Z")]
#[case::a_service_with_another_clock(TOO_EARLY, "x-amz-date: 20150830T133600Z")]
#[tokio::test]
async fn what_is_sent_again_is_signed_for_the_time_that_the_sdk_takes_it_to_be(
    #[case] first: &str,
    #[case] second_date: &str,
) {
    let mut sent = Vec::new();
    let mut service = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    for is_quick in [true, false] {
        let listened = Listened::new(service, "/", None, is_quick);
        sent.push(listened.heads(EXAMPLE_S, "{}", &[first, TAKEN]).await);
        service = listened.service;
    }
    assert_eq!(sent[0], sent[1]);
    assert!(sent[0][1].contains(second_date), "{}", sent[0][1]);
}
