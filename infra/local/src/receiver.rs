//! The demo receiver: what a partner's webhook endpoint would be. It verifies each delivery with the official Standard Webhooks
//! library, on stack time, and keeps the latest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use http::HeaderMap;
use runtime::Clock;
use serde::Serialize;
use serde_json::Value;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use subtle::ConstantTimeEq;

/// Older deliveries are forgotten.
const KEPT: usize = 100;
/// A signature may be this old, or this far ahead: the standard's own tolerance.
const TOLERANCE_S: i64 = 5 * 60;

/// One delivery that arrived.
#[derive(Debug, Clone, Serialize)]
pub struct Received {
    /// Stack time.
    pub received_at: DateTime<Utc>,
    /// Which of the receiver's hooks it came to.
    pub hook: String,
    /// The header of that name.
    pub webhook_id: Option<String>,
    /// The event's name.
    #[serde(rename = "type")]
    pub event: Option<String>,
    /// Whether the signature is that of a known secret and fresh.
    pub verified: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'static str>,
    /// JSON where it is JSON, text where it is not.
    pub body: Value,
}

/// Hooks with their secrets, and what came.
pub struct Receiver {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    secrets: BTreeMap<String, Vec<String>>,
    received: VecDeque<Received>,
}

impl Receiver {
    /// A receiver that knows no secrets.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// A secret more for a hook.
    pub fn trust(&self, hook: &str, secret: &str) {
        self.lock().secrets.entry(hook.to_owned()).or_default().push(secret.to_owned());
    }

    /// Takes a delivery in.
    pub fn take(&self, hook: &str, headers: &HeaderMap, body: &[u8]) {
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
        if state.received.len() == KEPT {
            state.received.pop_back();
        }
        state.received.push_front(received);
    }

    /// Newest first.
    pub fn received(&self) -> Vec<Received> {
        self.lock().received.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The library's `verify` asks the machine's clock, so the parts around it are taken: it signs what arrived, and the signatures
/// are compared here, and the time with stack time.
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
        receiver.trust("demo", SECRET);
        let body = br#"{"type":"new_client"}"#;
        receiver.take("demo", &headers(SECRET, clock.now().timestamp(), body), body);
        receiver.take("demo", &headers(SECRET, clock.real_now().timestamp(), body), body);
        receiver.take("other", &headers(SECRET, clock.now().timestamp(), body), body);
        let received = receiver.received();
        assert_eq!(received.iter().map(|one| one.verified).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(received[2].event.as_deref(), Some("new_client"));
        assert_eq!(received[2].webhook_id.as_deref(), Some("msg_1"));
    }

    #[test]
    fn what_is_not_signed_right_is_kept_as_unverified() {
        let receiver = Receiver::new(Arc::new(StackClock::default()));
        receiver.trust("demo", SECRET);
        let now = receiver.clock.now().timestamp();
        receiver.take("demo", &HeaderMap::new(), b"\xff");
        receiver.take("demo", &headers(SECRET, now, b"{}"), b"{\"a\":1}");
        receiver.take("demo", &headers("whsec_AAAA", now, b"{}"), b"{}");
        assert!(receiver.received().iter().all(|one| !one.verified && one.problem.is_some()));
    }

    #[test]
    fn only_the_latest_are_kept() {
        let receiver = Receiver::new(Arc::new(StackClock::default()));
        (0..KEPT + 5).for_each(|number| receiver.take("demo", &HeaderMap::new(), number.to_string().as_bytes()));
        assert_eq!(receiver.received().len(), KEPT);
        assert_eq!(receiver.received()[0].body, KEPT + 4);
    }
}
