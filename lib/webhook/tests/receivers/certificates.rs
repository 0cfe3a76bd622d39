//! TLS: versions, protocols, and invalid certificates with their reasons in the log.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::tcp_receiver::{OK, TcpAnswer, TcpReceiver};
use crate::world::{Book, DEADLINE, client_with, mozilla, outcome, post};

pub(crate) const NAME: &str = "hooks.example.com";
const BOTH: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];

/// A certificate authority of the test's own.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

impl Authority {
    pub(crate) fn named(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// A store that trusts this authority and no other.
    pub(crate) fn trusted(&self) -> RootCertStore {
        let mut store = RootCertStore::empty();
        store.add(self.certificate.clone()).unwrap();
        store
    }

    /// A server's certificate, made by this authority.
    fn sign(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        Identity { certificate, key }
    }

    pub(crate) fn identity(&self) -> Identity {
        self.sign(params(NAME))
    }
}

/// A server's certificate and key.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Identity {
    pub(crate) fn acceptor(&self, versions: &[&'static SupportedProtocolVersion], protocols: &[&str]) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    pub(crate) fn both_versions(&self, protocols: &[&str]) -> TlsAcceptor {
        self.acceptor(&BOTH, protocols)
    }
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

fn self_signed(params: CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    Identity { certificate: params.self_signed(&key).unwrap().der().clone(), key }
}

type Accepting = Pin<Box<dyn Future<Output = io::Result<TlsStream<TcpStream>>> + Send>>;

fn layer(acceptor: TlsAcceptor) -> impl Fn(TcpStream) -> Accepting + Send + Sync + 'static {
    move |stream| Box::pin(acceptor.accept(stream))
}

/// Sends a webhook to a receiver behind `acceptor`, with a client that trusts `authority`. Returns the outcome and the
/// number of requests.
async fn post_through(authority: &Authority, acceptor: TlsAcceptor) -> (String, usize) {
    let receiver = TcpReceiver::start_through([TcpAnswer::sends(OK)], layer(acceptor)).await;
    let client = client_with(DEADLINE, Book::of(&[(NAME, &["127.0.0.1"])]), authority.trusted());
    let answer = post(&client, &format!("https://{NAME}:{}/secret-path", receiver.port())).await;
    (outcome(&answer), receiver.requests().len())
}

#[tokio::test]
async fn both_versions_of_tls_are_spoken() {
    let authority = Authority::named("One");
    let identity = authority.identity();
    for versions in [&[&version::TLS13][..], &[&version::TLS12], &BOTH] {
        let acceptor = identity.acceptor(versions, &[]);
        assert_eq!(post_through(&authority, acceptor).await, ("200".to_owned(), 1), "{versions:?}");
    }
    let old = identity.acceptor(&BOTH, &["http/1.1"]);
    assert_eq!(post_through(&authority, old).await, ("200".to_owned(), 1), "HTTP/1.1 where nothing else is offered");
}

#[tokio::test]
async fn an_invalid_certificate_is_reported_and_nothing_is_sent() {
    let (authority, stranger) = (Authority::named("One"), Authority::named("Two"));
    let impostor = Authority::named("One");
    let mut expired = params(NAME);
    (expired.not_before, expired.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let mut early = params(NAME);
    (early.not_before, early.not_after) = (date_time_ymd(3000, 1, 1), date_time_ymd(3001, 1, 1));
    let mut above = params(NAME);
    above.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for (identity, reason) in [
        (authority.sign(expired), "TLS: certificate expired"),
        (authority.sign(early), "TLS: certificate not valid yet"),
        (authority.sign(params("other.example.com")), "TLS: certificate is for another name"),
        (authority.sign(params("*.hooks.example.com")), "TLS: certificate is for another name"),
        (stranger.identity(), "TLS: certificate issuer not trusted"),
        (impostor.identity(), "TLS: certificate signature not valid"),
        (self_signed(params(NAME)), "TLS: certificate is self-signed"),
        (self_signed(params("other.example.com")), "TLS: certificate is self-signed"),
        (self_signed(above.clone()), "TLS: certificate is self-signed"),
        (authority.sign(above), "TLS: certificate not valid"),
    ] {
        assert_eq!(post_through(&authority, identity.both_versions(&[])).await, (reason.to_owned(), 0));
    }
}

#[tokio::test]
async fn a_private_authority_is_not_on_mozillas_list() {
    let authority = Authority::named("One");
    let receiver =
        TcpReceiver::start_through([TcpAnswer::sends(OK)], layer(authority.identity().both_versions(&[]))).await;
    let client = client_with(DEADLINE, Book::of(&[(NAME, &["127.0.0.1"])]), mozilla());
    let answer = post(&client, &format!("https://{NAME}:{}/", receiver.port())).await;
    assert_eq!(outcome(&answer), "TLS: certificate issuer not trusted");
}

#[tokio::test]
async fn a_handshake_that_does_not_end_or_breaks_fails_the_attempt() {
    let client = client_with(DEADLINE, Book::of(&[]), mozilla());
    // A TLS hello contains no blank line, so the plain receiver waits for more bytes.
    let silent = TcpReceiver::start([TcpAnswer::sends(OK)]).await;
    let resetting = TcpReceiver::start([TcpAnswer::Resets]).await;
    let babbling = TcpReceiver::start_through([TcpAnswer::sends(OK)], |stream: TcpStream| async move {
        stream.writable().await?;
        stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        Ok(stream)
    })
    .await;
    for (receiver, reason) in [
        (silent, "timed out after 2 s"),
        (resetting, "connection reset"),
        (babbling, "TLS: the receiver does not speak it"),
    ] {
        let answer = post(&client, &format!("https://127.0.0.1:{}/", receiver.port())).await;
        assert_eq!((outcome(&answer).as_str(), receiver.requests().len()), (reason, 0));
    }
}
