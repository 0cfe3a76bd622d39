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

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The SDK's time-out of an attempt. Loopback answers far sooner.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nx-amzn-requestid: r1\r\ncontent-length: 2\r\n\r\n{}";
const HALF_AN_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-le";

/// The behaviour of a service on a connection.
#[derive(Debug, Clone, Copy)]
enum Behaviour {
    /// Answers every request.
    Answers,
    /// Answers once and closes the connection without announcing it.
    AnswersOnce,
    /// Closes the connection in the middle of its answer.
    Breaks,
    /// Answers the first request of a connection with this status, and the others with 200. Keeps the connection.
    Refuses(u16),
    /// Does not answer the first request of a connection, and answers the others with 200. Keeps the connection.
    Ignores,
}

/// A service on loopback that counts its connections.
struct Service {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Service {
    async fn start(behaviour: Behaviour, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                match &tls {
                    None => drop(tokio::spawn(serve(behaviour, stream))),
                    Some(tls) => {
                        let accepted = tls.accept(stream);
                        tokio::spawn(async move {
                            if let Ok(stream) = accepted.await {
                                serve(behaviour, stream).await;
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

async fn serve(behaviour: Behaviour, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut request = [0; 4096];
    let mut is_first = true;
    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
        let answer = match behaviour {
            Behaviour::Breaks => HALF_AN_ANSWER.to_vec(),
            Behaviour::Refuses(status) if is_first => {
                format!("HTTP/1.1 {status} Refused\r\ncontent-length: 2\r\n\r\n{{}}").into_bytes()
            }
            Behaviour::Ignores if is_first => Vec::new(),
            Behaviour::Ignores | Behaviour::Refuses(_) | Behaviour::Answers | Behaviour::AnswersOnce => ANSWER.to_vec(),
        };
        stream.write_all(&answer).await.unwrap();
        is_first = false;
        if matches!(behaviour, Behaviour::AnswersOnce | Behaviour::Breaks) {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

/// A root store with a new authority, and an acceptor with a certificate of that authority.
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
    Http::new(roots, CONNECT_TIMEOUT)
}

async fn call(http: &Http, url: &str) -> Result<HttpResponse, ConnectorError> {
    let mut request = HttpRequest::new(SdkBody::from("{}"));
    request.set_uri(url.to_owned()).unwrap();
    request.set_method("POST").unwrap();
    http.call(request).await
}

#[tokio::test]
async fn one_connection_serves_one_call_after_another() {
    let service = Service::start(Behaviour::Answers, None).await;
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
async fn a_connection_that_the_service_closed_is_replaced() {
    let service = Service::start(Behaviour::AnswersOnce, None).await;
    let (http, url) = (http(amazon_roots()), format!("http://127.0.0.1:{}/", service.port));
    for _ in 0..3 {
        let answer = call(&http, &url).await.unwrap();
        BodyExt::collect(answer.into_body()).await.unwrap();
    }
    assert_eq!(service.connections(), 3);
}

#[tokio::test]
async fn a_service_needs_a_certificate_of_a_trusted_authority_for_its_name() {
    let (trusted, tls) = certified("localhost");
    let service = Service::start(Behaviour::Answers, Some(tls)).await;
    let by_name = format!("https://localhost:{}/", service.port);
    assert_eq!(call(&http(trusted.clone()), &by_name).await.unwrap().status().as_u16(), 200);
    let by_address = format!("https://127.0.0.1:{}/", service.port);
    assert!(call(&http(trusted), &by_address).await.unwrap_err().is_io(), "another name");
    assert!(call(&http(amazon_roots()), &by_name).await.unwrap_err().is_io(), "another authority");
}

#[tokio::test]
async fn connection_errors_are_retryable() {
    let broken = Service::start(Behaviour::Breaks, None).await;
    let error = call(&http(amazon_roots()), &format!("http://127.0.0.1:{}/", broken.port)).await.unwrap_err();
    assert_eq!(error.as_other(), Some(ErrorKind::TransientError), "{error:?}");
    let nobody = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
    let error = call(&http(amazon_roots()), &format!("http://127.0.0.1:{nobody}/")).await.unwrap_err();
    assert!(error.is_io(), "{error:?}");
}

#[rstest::rstest]
#[case(Behaviour::Refuses(500), true)]
#[case(Behaviour::Refuses(502), true)]
#[case(Behaviour::Refuses(503), true)]
#[case(Behaviour::Refuses(504), true)]
#[case(Behaviour::Ignores, true)]
#[case(Behaviour::Refuses(400), false)]
#[case(Behaviour::Refuses(403), false)]
#[tokio::test]
async fn a_connection_that_the_sdk_wants_closed_is_closed(#[case] behaviour: Behaviour, #[case] is_closed: bool) {
    let service = Service::start(behaviour, None).await;
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
