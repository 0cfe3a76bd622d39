//! The HTTP client for receivers. Nothing about a receiver is trusted: its address, its speed, the size of its answers.
//!
//! One deadline covers name, connection, TLS, answer and body. Redirects are not followed, proxies are not used, and
//! nothing is decompressed. The resolver checks names. Addresses in URLs, which no resolver sees, are checked before
//! sending.
//!
//! HTTP/1.1 alone, read by hyper's lenient settings. An attempt sends its request once, and once more only if a reused
//! connection ended without a byte of an answer. The status decides. The body is for the log: it is read until two
//! seconds after the status, up to 64 KiB.

mod certificate;
mod connect;
mod error;
mod excerpt;
pub mod resolve;
mod traffic;

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::{ATTEMPT_TIMEOUT, AttemptResult, WebhookHeaders};
use domain::receiver_url::{Reach, ReceiverUrl};
use http::header::{CONTENT_ENCODING, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use runtime::{BoxError, Environment};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout_at};

use crate::certificate::Certificates;
use crate::connect::Client;
use crate::error::{ADDRESS_NOT_ALLOWED, reason};
use crate::excerpt::Excerpt;
use crate::resolve::{CheckedResolver, Names, SystemNames};

/// Time from the status to the end of the attempt. The body must arrive within it.
const STATUS_GRACE: Duration = Duration::from_secs(2);
/// Limit of an answer's body that is read, so that its connection can be used again. The chunk that reaches it is the
/// last.
const MAX_READ_BYTES: usize = 64 * 1024;
/// Stands in the log for a body that the receiver compressed although it was asked not to.
const COMPRESSED: &str = "compressed, not shown";

/// A signed request.
pub struct Webhook<'a> {
    pub url: &'a ReceiverUrl,
    pub headers: WebhookHeaders<'a>,
    pub body: Vec<u8>,
}

/// The outcome of an attempt.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    pub result: AttemptResult,
    pub duration_ms: u32,
    /// The beginning of the answer's body, at most [`domain::delivery::EXCERPT_BYTES`]; `None` without one. A
    /// compressed body is only named as such.
    pub excerpt: Option<String>,
    /// The answer's `Retry-After`, as it came.
    pub retry_after: Option<String>,
}
domain::discreet! { Answer }

/// Sends webhooks.
#[derive(Clone)]
pub struct WebhookClient {
    client: Client,
    reach: Reach,
    deadline: Duration,
}

impl WebhookClient {
    /// A client that reaches what the environment allows, and trusts Mozilla's list of certificate authorities.
    pub fn new(env: &Environment) -> Result<Self, BoxError> {
        let reach = Reach::by_setting(env.config().find(Reach::SETTING));
        Self::with(reach, ATTEMPT_TIMEOUT.to_std()?, Arc::new(SystemNames), mozilla())
    }

    /// A client with this resolver and these certificate authorities, of which there is at least one.
    pub fn with(
        reach: Reach,
        deadline: Duration,
        names: Arc<dyn Names>,
        authorities: RootCertStore,
    ) -> Result<Self, BoxError> {
        let client = Client::new(CheckedResolver { reach, names }, tls(authorities)?, reach == Reach::Public, deadline);
        Ok(Self { client, reach, deadline })
    }

    /// Makes one attempt. A failure is an answer, too. The beginning of the body is read as far as it arrives in time.
    pub async fn send(&self, webhook: Webhook<'_>) -> Answer {
        let started = Instant::now();
        let deadline = started + self.deadline;
        let (mut beginning, mut retry_after, mut is_compressed) = (Excerpt::default(), None, false);
        let result = match self.exchange(webhook, deadline).await {
            Err(reason) => AttemptResult::Error(reason),
            Ok(response) => {
                let status = response.status().as_u16();
                let value = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                retry_after = value.map(str::to_owned);
                let codings = response.headers().get_all(CONTENT_ENCODING);
                is_compressed = codings.iter().any(|coding| coding != "identity" && !coding.is_empty());
                let deadline = deadline.min(Instant::now() + STATUS_GRACE);
                let _ended = timeout_at(deadline, read(response, &mut beginning)).await;
                AttemptResult::StatusCode(status)
            }
        };
        let excerpt = beginning.into_text().map(|text| if is_compressed { COMPRESSED.to_owned() } else { text });
        let duration_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        Answer { result, duration_ms, excerpt, retry_after }
    }

    async fn exchange(&self, webhook: Webhook<'_>, deadline: Instant) -> Result<Response<Incoming>, String> {
        if !webhook.url.is_within(self.reach) {
            return Err(ADDRESS_NOT_ALLOWED.to_owned());
        }
        let request = request(webhook).map_err(|_| "no valid HTTP request".to_owned())?;
        match timeout_at(deadline, self.client.request(request)).await {
            Ok(response) => response.map_err(|error| reason(&error).to_owned()),
            Err(_elapsed) => Err(format!("timed out after {} s", self.deadline.as_secs())),
        }
    }
}

/// Mozilla's list of certificate authorities.
fn mozilla() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn request(webhook: Webhook<'_>) -> Result<Request<Full<Bytes>>, http::Error> {
    let request = Request::post(webhook.url.expose());
    let headers = webhook.headers.pairs();
    let request = headers.fold(request, |request, (name, value)| request.header(name, value.as_ref()));
    request.body(Full::from(webhook.body))
}

fn tls(authorities: RootCertStore) -> Result<ClientConfig, BoxError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Certificates::new(authorities, provider)?))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads the body until it ends, breaks off or gets too long.
async fn read(response: Response<Incoming>, beginning: &mut Excerpt) {
    let (mut body, mut read_bytes) = (response.into_body(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        let Some(chunk) = frame.data_ref() else { continue };
        beginning.add(chunk);
        read_bytes += chunk.len();
        if read_bytes >= MAX_READ_BYTES {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide for receivers.
    const GUIDE: &str = include_str!("../../../functions/docs/pages/events.md");

    #[test]
    fn the_guide_names_the_versions_and_suites_that_are_spoken() {
        let config = tls(mozilla()).unwrap();
        let suites = &config.crypto_provider().cipher_suites;
        for suite in suites {
            let name = format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
            assert!(GUIDE.contains(&format!("`{name}`")), "{name}");
            let version = format!("{:?}", suite.version().version).replace("TLSv1_", "TLSv1.");
            assert!(GUIDE.contains(&format!("`{version}`")), "{version}");
        }
        assert_eq!(GUIDE.matches("`TLS_").count(), suites.len());
    }
}
