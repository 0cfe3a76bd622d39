//! The demo receiver of webhooks. It verifies each delivery with the official Standard Webhooks library on stack time,
//! and keeps the latest deliveries.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use http::HeaderMap;
use runtime::Clock;
use serde::Serialize;
use serde_json::Value;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use subtle::ConstantTimeEq;

/// Number of deliveries that are kept.
const MAX_DELIVERIES: usize = 100;
/// Maximum age of a signature, and maximum time ahead: the tolerance of Standard Webhooks.
const TOLERANCE_S: i64 = 5 * 60;

/// One received delivery.
#[derive(Debug, Clone, Serialize)]
pub struct Received {
    /// Stack time of arrival.
    pub received_at: DateTime<Utc>,
    /// The receiver's hook that was called.
    pub hook: String,
    /// The header `webhook-id`.
    pub webhook_id: Option<String>,
    /// The event's name.
    #[serde(rename = "type")]
    pub event: Option<String>,
    /// True when the signature is by a known secret and within the tolerance.
    pub verified: bool,
    /// The reason why the verification failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'static str>,
    /// The body as JSON, or as a string when it is not JSON.
    pub body: Value,
}

/// The hooks' secrets and the received deliveries.
pub struct Receiver {
    clock: Arc<dyn Clock>,
    state: Mutex<ReceiverState>,
}

#[derive(Default)]
struct ReceiverState {
    secrets: BTreeMap<String, Vec<String>>,
    received: VecDeque<Received>,
}

impl Receiver {
    /// Creates a receiver without secrets.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Adds a secret to a hook.
    pub fn add_secret(&self, hook: &str, secret: &str) {
        self.lock().secrets.entry(hook.to_owned()).or_default().push(secret.to_owned());
    }

    /// Verifies and stores a delivery.
    pub fn receive(&self, hook: &str, headers: &HeaderMap, body: &[u8]) {
        let now = self.clock.now();
        let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let mut state = self.lock();
        let secrets = state.secrets.get(hook).map(Vec::as_slice).unwrap_or_default();
        let problem = verify(secrets, headers, body, now).err();
        let body: Value = serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into());
        let received = Received {
            received_at: now,
            hook: hook.to_owned(),
            webhook_id: header(HEADER_WEBHOOK_ID),
            event: body["type"].as_str().map(str::to_owned).or_else(|| header("x-service-event")),
            verified: problem.is_none(),
            problem,
            body,
        };
        if state.received.len() == MAX_DELIVERIES {
            state.received.pop_back();
        }
        state.received.push_front(received);
    }

    /// Returns the deliveries, newest first.
    pub fn received(&self) -> Vec<Received> {
        self.lock().received.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, ReceiverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Verifies the signature against the secrets on stack time.
///
/// The library's `verify` reads the machine's clock. So the library only signs the message here, and this function
/// compares the signatures and the time.
fn verify(secrets: &[String], headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Result<(), &'static str> {
    if secrets.is_empty() {
        return Err("no secret is known for this hook");
    }
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).ok_or("a webhook header is missing");
    let id = header(HEADER_WEBHOOK_ID)?;
    let signatures = header(HEADER_WEBHOOK_SIGNATURE)?;
    let timestamp: i64 =
        header(HEADER_WEBHOOK_TIMESTAMP)?.parse().map_err(|_| "webhook-timestamp is not a number of seconds")?;
    let signed = secrets.iter().any(|secret| {
        let expected = Webhook::new(secret).and_then(|webhook| webhook.sign(id, timestamp, body));
        expected.is_ok_and(|expected| {
            signatures.split(' ').any(|given| bool::from(given.as_bytes().ct_eq(expected.as_bytes())))
        })
    });
    if !signed {
        return Err("the signature is not that of a known secret");
    }
    if now.timestamp().abs_diff(timestamp) > TOLERANCE_S.unsigned_abs() {
        return Err("the signature is more than five minutes off stack time");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::StackClock;

    const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

    fn headers(secret: &str, timestamp: i64, body: &[u8]) -> HeaderMap {
        let signature = Webhook::new(secret).unwrap().sign("msg_1", timestamp, body).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HEADER_WEBHOOK_ID, "msg_1".parse().unwrap());
        headers.insert(HEADER_WEBHOOK_TIMESTAMP, timestamp.to_string().parse().unwrap());
        headers.insert(HEADER_WEBHOOK_SIGNATURE, format!("v1,AAAA {signature}").parse().unwrap());
        headers
    }

    #[test]
    fn a_delivery_is_verified_on_stack_time() {
        let clock = Arc::new(StackClock::default());
        clock.set_offset_ms(86_400_000 * 120).unwrap();
        let receiver = Receiver::new(Arc::clone(&clock) as Arc<dyn Clock>);
        receiver.add_secret("demo", SECRET);
        let body = br#"{"type":"new_client"}"#;
        receiver.receive("demo", &headers(SECRET, clock.now().timestamp(), body), body);
        receiver.receive("demo", &headers(SECRET, clock.base().timestamp(), body), body);
        receiver.receive("other", &headers(SECRET, clock.now().timestamp(), body), body);
        let received = receiver.received();
        assert_eq!(received.iter().map(|one| one.verified).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(received[2].event.as_deref(), Some("new_client"));
        assert_eq!(received[2].webhook_id.as_deref(), Some("msg_1"));
    }

    #[test]
    fn a_wrong_signature_is_kept_as_unverified() {
        let receiver = Receiver::new(Arc::new(StackClock::default()));
        receiver.add_secret("demo", SECRET);
        let now = receiver.clock.now().timestamp();
        receiver.receive("demo", &HeaderMap::new(), b"\xff");
        receiver.receive("demo", &headers(SECRET, now, b"{}"), b"{\"a\":1}");
        receiver.receive("demo", &headers("whsec_AAAA", now, b"{}"), b"{}");
        assert!(receiver.received().iter().all(|one| !one.verified && one.problem.is_some()));
    }

    #[test]
    fn only_the_latest_are_kept() {
        let receiver = Receiver::new(Arc::new(StackClock::default()));
        (0..MAX_DELIVERIES + 5)
            .for_each(|number| receiver.receive("demo", &HeaderMap::new(), number.to_string().as_bytes()));
        assert_eq!(receiver.received().len(), MAX_DELIVERIES);
        assert_eq!(receiver.received()[0].body, MAX_DELIVERIES + 4);
    }
}
