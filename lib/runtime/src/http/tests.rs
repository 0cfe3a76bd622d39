//! The client against services on loopback: connections, trust, errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_credential_types::Credentials;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Region};
use aws_smithy_async::rt::sleep::TokioSleep;
use http_body_util::BodyExt;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const PATIENCE: Duration = Duration::from_secs(5);
/// How long the SDK waits for an answer that does not come. Loopback answers within far less.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nx-amzn-requestid: r1\r\ncontent-length: 2\r\n\r\n{}";
const HALF_AN_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-le";

/// What a service does with a connection.
#[derive(Debug, Clone, Copy)]
enum Habit {
    /// Answers whatever comes.
    Answers,
    /// Answers once and hangs up, without saying so.
    AnswersOnce,
    /// Hangs up amid its answer.
    Breaks,
    /// Answers what comes first on a connection with this status, and whatever follows with 200. Keeps the connection.
    Refuses(u16),
    /// Does not answer what comes first on a connection, and whatever follows with 200. Keeps the connection.
    Ignores,
}

/// A service on loopback that counts its connections.
struct Service {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Service {
    async fn start(habit: Habit, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                match &tls {
                    None => drop(tokio::spawn(serve(habit, stream))),
                    Some(tls) => {
                        let accepted = tls.accept(stream);
                        tokio::spawn(async move {
                            if let Ok(stream) = accepted.await {
                                serve(habit, stream).await;
                            }
                        });
                    }
                }
            }
        });
        Self { port, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(habit: Habit, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut request = [0; 4096];
    let mut is_first = true;
    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
        let answer = match habit {
            Habit::Breaks => HALF_AN_ANSWER.to_vec(),
            Habit::Refuses(status) if is_first => {
                format!("HTTP/1.1 {status} Refused\r\ncontent-length: 2\r\n\r\n{{}}").into_bytes()
            }
            Habit::Ignores if is_first => Vec::new(),
            Habit::Ignores | Habit::Refuses(_) | Habit::Answers | Habit::AnswersOnce => ANSWER.to_vec(),
        };
        stream.write_all(&answer).await.unwrap();
        is_first = false;
        if matches!(habit, Habit::AnswersOnce | Habit::Breaks) {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

/// An authority, and a service's certificate by it.
fn certified(host: &str) -> (RootCertStore, TlsAcceptor) {
    let root_key = KeyPair::generate().unwrap();
    let mut root = CertificateParams::new(Vec::new()).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let trusted = roots([root.self_signed(&root_key).unwrap().der().clone()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![host.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::new(root, root_key)).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    (trusted, TlsAcceptor::from(Arc::new(config)))
}

fn http(roots: RootCertStore) -> Http {
    Http::new(roots, PATIENCE)
}

async fn call(http: &Http, url: &str) -> Result<HttpResponse, ConnectorError> {
    let mut request = HttpRequest::new(SdkBody::from("{}"));
    request.set_uri(url.to_owned()).unwrap();
    request.set_method("POST").unwrap();
    http.call(request).await
}

#[tokio::test]
async fn one_connection_serves_one_call_after_another() {
    let service = Service::start(Habit::Answers, None).await;
    let (http, url) = (http(amazon_roots()), format!("http://127.0.0.1:{}/", service.port));
    for _ in 0..3 {
        let answer = call(&http, &url).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers().get("x-amzn-requestid")), (200, Some("r1")));
        let body = BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        assert_eq!(body, "{}");
    }
    assert_eq!(service.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_the_service_closed_meanwhile_is_made_anew() {
    let service = Service::start(Habit::AnswersOnce, None).await;
    let (http, url) = (http(amazon_roots()), format!("http://127.0.0.1:{}/", service.port));
    for _ in 0..3 {
        let answer = call(&http, &url).await.unwrap();
        BodyExt::collect(answer.into_body()).await.unwrap();
    }
    assert_eq!(service.connections(), 3);
}

#[tokio::test]
async fn a_service_is_spoken_to_if_a_trusted_authority_vouches_for_its_name() {
    let (trusted, tls) = certified("localhost");
    let service = Service::start(Habit::Answers, Some(tls)).await;
    let by_name = format!("https://localhost:{}/", service.port);
    assert_eq!(call(&http(trusted.clone()), &by_name).await.unwrap().status().as_u16(), 200);
    let by_address = format!("https://127.0.0.1:{}/", service.port);
    assert!(call(&http(trusted), &by_address).await.unwrap_err().is_io(), "another name");
    assert!(call(&http(amazon_roots()), &by_name).await.unwrap_err().is_io(), "another authority");
}

#[tokio::test]
async fn what_is_wrong_with_a_connection_is_worth_another_attempt() {
    let broken = Service::start(Habit::Breaks, None).await;
    let error = call(&http(amazon_roots()), &format!("http://127.0.0.1:{}/", broken.port)).await.unwrap_err();
    assert_eq!(error.as_other(), Some(ErrorKind::TransientError), "{error:?}");
    let nobody = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
    let error = call(&http(amazon_roots()), &format!("http://127.0.0.1:{nobody}/")).await.unwrap_err();
    assert!(error.is_io(), "{error:?}");
}

#[rstest::rstest]
#[case(Habit::Refuses(500), true)]
#[case(Habit::Refuses(502), true)]
#[case(Habit::Refuses(503), true)]
#[case(Habit::Refuses(504), true)]
#[case(Habit::Ignores, true)]
#[case(Habit::Refuses(400), false)]
#[case(Habit::Refuses(403), false)]
#[tokio::test]
async fn a_connection_that_the_sdk_wants_closed_is_closed(#[case] habit: Habit, #[case] is_closed: bool) {
    let service = Service::start(habit, None).await;
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
        .endpoint_url(format!("http://127.0.0.1:{}", service.port))
        .sleep_impl(TokioSleep::new())
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT).build())
        .http_client(http(amazon_roots()))
        .build();
    let client = aws_sdk_sqs::Client::from_conf(config);
    let send = async || client.send_message().queue_url("http://queue").message_body("{}").send().await;
    send().await.unwrap_err();
    assert_eq!(service.connections(), 1);
    let _ = send().await;
    assert_eq!(service.connections(), if is_closed { 2 } else { 1 });
}
