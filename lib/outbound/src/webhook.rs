//! The HTTP client for receivers. Nothing about a receiver is trusted: where it is, how fast it answers, how much it says.
//!
//! One deadline covers name, connection, answer and body. Redirects are not followed, no proxy is asked, nothing is decompressed. Names are
//! checked by the resolver; addresses in URLs, which no resolver sees, before sending.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::delivery::{AttemptResult, EXCERPT_BYTES};
use domain::id::EventId;
use domain::receiver_url::{Reach, ReceiverUrl};
use http::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use runtime::{BoxError, Config, Environment};

use crate::resolve::CheckedResolver;
use crate::webhook_error::{ADDRESS_NOT_ALLOWED, reason};

/// A receiver has to have answered by then.
const DEADLINE: Duration = Duration::from_secs(15);
/// What is read of an answer, so that its connection can be used again.
const MAX_READ_BYTES: usize = 64 * 1024;
/// Shorter than the idle time-outs of common servers: a connection that they have closed is not tried.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
const USER_AGENT: &str = "partner-api-webhooks/1";

/// One signed request.
#[derive(Debug)]
pub struct Webhook<'a> {
    pub url: &'a ReceiverUrl,
    pub event_id: &'a EventId,
    pub event_type: &'a str,
    /// When the attempt is made: the time that is signed.
    pub unix_s: i64,
    pub signature: String,
    pub body: Vec<u8>,
}

/// What a receiver made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub result: AttemptResult,
    pub duration_ms: u32,
    /// The beginning of the answer's body, at most [`EXCERPT_BYTES`]; `None` without one.
    pub excerpt: Option<String>,
}

/// Where webhooks may be sent: the variable `ALLOW_LOOPBACK_RECEIVERS`, which local runs alone set, adds loopback and http.
pub fn reach(config: &Config) -> Reach {
    if config.find("ALLOW_LOOPBACK_RECEIVERS") == Some("true") { Reach::PublicAndLoopback } else { Reach::Public }
}

/// Sends webhooks.
#[derive(Clone)]
pub struct WebhookClient {
    client: Client,
    reach: Reach,
    deadline: Duration,
}

impl WebhookClient {
    /// A client that reaches what the environment allows.
    pub fn new(env: &Environment) -> Result<Self, BoxError> {
        Self::reaching(reach(env.config()), DEADLINE)
    }

    fn reaching(reach: Reach, deadline: Duration) -> Result<Self, BoxError> {
        // The HTTP client looks for the process's provider. An error says that there is one already, which is as good: it is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .use_rustls_tls()
            .https_only(reach == Reach::Public)
            .dns_resolver(Arc::new(CheckedResolver { reach }))
            .redirect(Policy::none())
            .no_proxy()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .referer(false)
            .user_agent(USER_AGENT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()?;
        Ok(Self { client, reach, deadline })
    }

    /// Makes one attempt. Whatever comes of it is an answer.
    pub async fn post(&self, webhook: Webhook<'_>) -> Answer {
        let started = Instant::now();
        let (result, excerpt) = if ReceiverUrl::parse(webhook.url.expose(), self.reach).is_err() {
            (Err(ADDRESS_NOT_ALLOWED.to_owned()), None)
        } else {
            match tokio::time::timeout(self.deadline, self.exchange(webhook)).await {
                Ok(Ok((status, excerpt))) => (Ok(status), excerpt),
                Ok(Err(error)) => (Err(reason(&error).to_owned()), None),
                Err(_elapsed) => (Err(format!("timed out after {} s", self.deadline.as_secs())), None),
            }
        };
        let result = result.map_or_else(AttemptResult::Error, AttemptResult::StatusCode);
        let duration_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        Answer { result, duration_ms, excerpt }
    }

    async fn exchange(&self, webhook: Webhook<'_>) -> Result<(u16, Option<String>), reqwest::Error> {
        let request = self.client.post(webhook.url.url().clone()).header(CONTENT_TYPE, "application/json");
        let request = request
            .header("webhook-id", webhook.event_id.as_str())
            .header("webhook-timestamp", webhook.unix_s)
            .header("webhook-signature", webhook.signature)
            .header("x-service-event", webhook.event_type);
        let response = request.body(webhook.body).send().await?;
        let status = response.status().as_u16();
        Ok((status, excerpt(&beginning(response).await)))
    }
}

/// The first bytes of the body. A body that breaks off does not take back the status that came before it.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut read_bytes = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = EXCERPT_BYTES - kept.len();
        kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
        read_bytes += chunk.len();
        if read_bytes >= MAX_READ_BYTES {
            break;
        }
    }
    kept
}

/// The bytes as text of no more bytes than they are. A character that the limit cuts is left out; what is no text is marked.
fn excerpt(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return None;
    }
    let cut = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && bytes.len() == EXCERPT_BYTES => error.valid_up_to(),
        _ => bytes.len(),
    };
    let mut text = String::from_utf8_lossy(&bytes[..cut]).into_owned();
    text.truncate(text.floor_char_boundary(EXCERPT_BYTES));
    Some(text)
}

#[cfg(test)]
mod tests;
