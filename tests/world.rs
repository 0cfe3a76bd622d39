//! A world to test in: a stack of its own in a process of its own, with coaches, keys, receivers and a clock that can be moved.
//!
//! Everything goes through the surfaces that the product has: HTTP, the bus, and the AWS endpoint for looking at what is stored.

mod application;
mod aws;
mod caller;
mod coach;
mod confidential;
mod costs;
mod crm;
mod odd;
mod raw;
mod receiver;
mod rough;
mod stack;
pub(crate) mod sweep;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

pub(crate) use application::{Application, Invitation};
pub(crate) use aws::{Fact, bytes_of, fact};
pub(crate) use caller::{Call, Caller, Reply};
pub(crate) use coach::{CRM_PERMISSIONS, Coach, Endpoint};
pub(crate) use costs::{Bill, costs};
pub(crate) use crm::{PIPELINE, ids, uuid};
pub(crate) use receiver::{Answer, Receiver};
pub(crate) use rough::{Manner, OK, Rough};

use caller::Addresses;
use confidential::Confidential;
use stack::Stack;

/// Longest wait for a condition. A busy machine is slow.
const POLL_DEADLINE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Polls until the condition holds. Fails after [`POLL_DEADLINE`].
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    until_within(POLL_DEADLINE, what, holds).await;
}

/// Polls until the condition holds. Fails after `limit`.
pub(crate) async fn until_within(limit: Duration, what: &str, holds: impl AsyncFn() -> bool) {
    let (began, mut polls) = (Instant::now(), tokio::time::interval(POLL_EVERY));
    polls.tick().await;
    while !holds().await {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        polls.tick().await;
    }
}

/// A stack and all that is around it. Gone when dropped, and then its log is searched for what may be in no log.
pub(crate) struct World {
    stack: Mutex<Stack>,
    addresses: Addresses,
    confidential: Confidential,
    local: Caller,
    numbers: AtomicU64,
}

impl World {
    /// An empty world.
    pub(crate) async fn start() -> Self {
        let addresses = Addresses::default();
        let stack = Stack::start(&addresses).await;
        let confidential = Confidential::default();
        let local = Caller::anonymous(&addresses, &confidential);
        Self { stack: Mutex::new(stack), addresses, confidential, local, numbers: AtomicU64::new(0) }
    }

    /// Kills the stack as `kill -9` does and starts it again on what it had stored.
    pub(crate) async fn kill_and_restart(&self) {
        let dir = self.stack.lock().unwrap().kill();
        let stack = Stack::start_in(dir, &self.addresses).await;
        *self.stack.lock().unwrap() = stack;
    }

    /// A caller without a key.
    pub(crate) fn anonymous(&self) -> Caller {
        Caller::anonymous(&self.addresses, &self.confidential)
    }

    /// Where the API is, which is also the origin of the settings page.
    pub(crate) fn base_url(&self) -> String {
        self.addresses.base()
    }

    /// Returns when nothing is left to do now.
    pub(crate) async fn settle(&self) {
        self.local.post("/_local/settle", json!({})).await.expect(200);
    }

    /// Moves the stack's clock forward; what becomes due meanwhile happens.
    pub(crate) async fn advance_s(&self, seconds: u64) {
        self.local.post("/_local/clock", json!({ "advance_s": seconds })).await.expect(200);
    }

    /// Moves on to the first second of a calendar minute, so that what follows has a minute of its own.
    pub(crate) async fn advance_to_next_minute(&self) {
        let into_minute = self.now().await.timestamp().rem_euclid(60);
        self.advance_s(60 - into_minute.unsigned_abs()).await;
    }

    /// The stack's time.
    pub(crate) async fn now(&self) -> DateTime<Utc> {
        let health = self.local.get("/_local/health").await.expect(200);
        time(&health.body["now"])
    }

    /// The stack's time, and so many seconds more, as the API writes it.
    pub(crate) async fn timestamp_in(&self, seconds: i64) -> String {
        rendered(self.now().await + TimeDelta::seconds(seconds))
    }

    /// Sets faults.
    pub(crate) async fn faults(&self, plan: Value) {
        self.local.post("/_local/faults", plan).await.expect(200);
    }

    /// What faults are still to come.
    pub(crate) async fn local_faults(&self) -> Value {
        self.local.get("/_local/faults").await.expect(200).body
    }

    /// Waits until the calls that were to stall have come.
    pub(crate) async fn until_stalled(&self) {
        until("calls stall", async || self.local_faults().await["stalled_calls"] == 0).await;
    }

    /// All mails sent, oldest first.
    pub(crate) async fn mail(&self) -> Vec<Value> {
        list(self.local.get("/_local/mail").await.expect(200).body)
    }

    /// What the service has put on the bus, oldest first: `detail-type` and `detail`.
    pub(crate) async fn outgoing(&self, detail_type: &str) -> Vec<Value> {
        let events = self.local.get("/_local/events?source=partner-api&limit=1000").await.expect(200).body;
        let mut details: Vec<Value> = list(events)
            .into_iter()
            .filter(|event| event["detail-type"] == detail_type)
            .map(|event| event["detail"].clone())
            .collect();
        details.sort_by_key(|detail| detail["occurred_at"].to_string());
        details
    }

    /// The latest invocations of a function with the calls that each made, newest first.
    pub(crate) async fn calls(&self, function: &str) -> Vec<Value> {
        list(self.local.get(&format!("/_local/calls?function={function}&limit=500")).await.expect(200).body)
    }

    /// The most memory that the stack has had so far.
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        self.stack.lock().unwrap().peak_memory_bytes()
    }

    /// Everything that the stack has written so far.
    pub(crate) fn log(&self) -> String {
        self.stack.lock().unwrap().log()
    }

    /// A number that this world has not used yet.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A test that fails says why; it is not to say something else.
        if !std::thread::panicking() {
            let log = self.stack.get_mut().unwrap().end();
            self.confidential.is_not_in(&log);
        }
    }
}

/// A JSON array's items.
#[track_caller]
pub(crate) fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        other => panic!("no array: {other}"),
    }
}

/// A time as the API writes it.
#[track_caller]
pub(crate) fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no time: {value}"))
}

/// A time as the API writes it.
pub(crate) fn rendered(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The names of an object's members, sorted.
#[track_caller]
pub(crate) fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> =
        value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}
