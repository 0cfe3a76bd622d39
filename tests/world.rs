//! Test world: a stack in a process of its own, with coaches, keys, receivers and a movable clock.
//!
//! Tests use the product's own surfaces: HTTP, the bus, and the AWS endpoint to inspect stored data.

mod application;
mod at_rest;
mod aws;
mod caller;
mod coach;
mod confidential;
mod costs;
mod crm;
mod cursors;
mod names;
mod odd_headers;
mod receiver;
mod stack;
pub(crate) mod sweep;
mod tcp_receiver;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use domain::retry::MAX_ATTEMPTS;
use serde_json::{Value, json};

pub(crate) use application::{Application, Invitation};
pub(crate) use aws::{Fact, bytes_of, fact};
pub(crate) use caller::{Call, Caller, Reply, the_one_answer};
pub(crate) use coach::{
    CLIENT_EVENTS, CRM_EVENTS, CRM_PERMISSIONS, Coach, Endpoint, PARTNER_PERMISSIONS, emitted_events,
};
pub(crate) use costs::{Bill, assert_cost};
pub(crate) use crm::{PIPELINE, ids, uuid};
pub(crate) use cursors::{made_up_cursor, position_of};
pub(crate) use names::{BAD_NAME_FILTERS, FOUND_BY_NAME, NAMES, encoded};
pub(crate) use receiver::{Answer, Hook, Receiver};
pub(crate) use tcp_receiver::{OK, TcpAnswer, TcpReceiver};

use caller::Addresses;
use confidential::Confidential;
use stack::Stack;

/// Longest wait for a condition, generous because the machine may be busy.
const POLL_DEADLINE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(25);

/// Longer than the lease of an idempotency claim.
pub(crate) const LAPSED_S: u64 = 61;
/// Attempts of a delivery that never succeeds.
pub(crate) const ATTEMPTS: usize = MAX_ATTEMPTS as usize;
/// Failures in a row after which the SDK gives a call up.
pub(crate) const SDK_ATTEMPTS: usize = 4;

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

/// A stack and its surroundings. On drop, the stack's log is searched for confidential texts.
pub(crate) struct World {
    stack: Mutex<Stack>,
    /// The stack's options, which hold for each restart.
    options: Vec<String>,
    addresses: Addresses,
    confidential: Confidential,
    local: Caller,
    numbers: AtomicU64,
}

impl World {
    /// An empty world.
    pub(crate) async fn start() -> Self {
        Self::start_with(&stack::usual()).await
    }

    /// An empty world with other values of parameters of the template.
    pub(crate) async fn start_with_parameters(values: &[(&str, &str)]) -> Self {
        let options = values.iter().flat_map(|(name, value)| ["--parameter".to_owned(), format!("{name}={value}")]);
        Self::start_with(&stack::usual().into_iter().chain(options).collect::<Vec<_>>()).await
    }

    /// An empty world whose log is the local stack's default, for people.
    pub(crate) async fn start_readable() -> Self {
        Self::start_with(&stack::slow_clock()).await
    }

    /// An empty world whose time passes as the machine's does: to measure how long something takes, or for work in
    /// flight while time passes, since the clock cannot be moved before the work has ended.
    pub(crate) async fn start_in_real_time() -> Self {
        Self::start_with(&stack::json_log()).await
    }

    async fn start_with(options: &[String]) -> Self {
        let options = &stack::in_the_suites_mode(options);
        let addresses = Addresses::default();
        let stack = Stack::start(&addresses, options).await;
        let confidential = Confidential::default();
        let local = Caller::anonymous(&addresses, &confidential);
        let (stack, options) = (Mutex::new(stack), options.to_vec());
        Self { stack, options, addresses, confidential, local, numbers: AtomicU64::new(0) }
    }

    /// Kills the stack as `kill -9` does and restarts it on its stored data.
    pub(crate) async fn kill_and_restart(&self) {
        let dir = self.stack.lock().unwrap().kill();
        let stack = Stack::start_in(dir, &self.addresses, &self.options).await;
        *self.stack.lock().unwrap() = stack;
    }

    /// Stops the stack for a time: no schedule runs, no fact is applied and no delivery attempted. Sessions of before
    /// are not valid on its new port.
    pub(crate) async fn down_for(&self, time: TimeDelta) {
        let dir = self.stack.lock().unwrap().kill();
        stack::advance_clock(&dir, time);
        let stack = Stack::start_in(dir, &self.addresses, &self.options).await;
        *self.stack.lock().unwrap() = stack;
    }

    /// Stops the stack until an instant.
    pub(crate) async fn down_until(&self, at: DateTime<Utc>) {
        self.down_for(at - self.now().await).await;
    }

    /// A caller without a key.
    pub(crate) fn anonymous(&self) -> Caller {
        Caller::anonymous(&self.addresses, &self.confidential)
    }

    /// Base URL of the API, which is also the origin of the settings page.
    pub(crate) fn base_url(&self) -> String {
        self.addresses.base()
    }

    /// Returns once no work is due.
    pub(crate) async fn settle(&self) {
        self.local.post("/_local/settle", json!({})).await.expect(200);
    }

    /// Moves the stack's clock forward and runs the work that becomes due.
    pub(crate) async fn advance_s(&self, seconds: u64) {
        self.local.post("/_local/clock", json!({ "advance_s": seconds })).await.expect(200);
    }

    /// Advances to the start of the next calendar minute, so that the test has that minute's rate limit to itself.
    pub(crate) async fn advance_to_next_minute(&self) {
        let into_minute = self.now().await.timestamp().rem_euclid(60);
        self.advance_s(60 - into_minute.unsigned_abs()).await;
    }

    /// The stack's time.
    pub(crate) async fn now(&self) -> DateTime<Utc> {
        let health = self.local.get("/_local/health").await.expect(200);
        time(&health.body["now"])
    }

    /// The stack's time plus `seconds`, as the API writes it.
    pub(crate) async fn timestamp_in(&self, seconds: i64) -> String {
        rendered(self.now().await + TimeDelta::seconds(seconds))
    }

    /// Sets faults.
    pub(crate) async fn faults(&self, plan: Value) {
        self.local.post("/_local/faults", plan).await.expect(200);
    }

    /// Switches all faults off, of every function.
    pub(crate) async fn clear_faults(&self) {
        let off = json!({
            "spared_calls": 0, "crash_before_call": 0, "crash_after_commit": 0, "stalled_calls": 0, "mail_failures": 0,
            "store_failures": 0, "store_lost_answers": 0, "store_conflicts": 0, "store_latency_ms": 0, "function": "",
        });
        self.faults(off).await;
    }

    /// Repeats a request until it has a definite answer. An abandoned claim has to lapse first.
    pub(crate) async fn answered(&self, send: impl AsyncFn() -> Reply) -> Reply {
        let reply = send().await;
        if reply.status != 409 {
            return reply;
        }
        reply.assert_in_progress();
        self.advance_s(LAPSED_S).await;
        send().await
    }

    /// Faults that have not been used up yet.
    pub(crate) async fn remaining_faults(&self) -> Value {
        self.local.get("/_local/faults").await.expect(200).body
    }

    /// The address of the AWS endpoint.
    pub(crate) fn aws_url(&self) -> String {
        self.addresses.aws()
    }

    /// Waits until every call that is set to stall has stalled.
    pub(crate) async fn until_stalled(&self) {
        until("calls stall", async || self.remaining_faults().await["stalled_calls"] == 0).await;
    }

    /// All mails sent, oldest first.
    pub(crate) async fn mail(&self) -> Vec<Value> {
        list(self.local.get("/_local/mail").await.expect(200).body)
    }

    /// Details of the changes that the service published on the bus under this `detail-type`, oldest first.
    pub(crate) async fn changes(&self, detail_type: &str) -> Vec<Value> {
        let events = self.local.get("/_local/events?source=partner-api&limit=1000").await.expect(200).body;
        let mut details: Vec<Value> = list(events)
            .into_iter()
            .filter(|event| event["detail-type"] == detail_type)
            .map(|event| event["detail"].clone())
            .collect();
        details.sort_by_key(|detail| detail["occurred_at"].to_string());
        details
    }

    /// The latest invocations of a function, each with its calls, newest first.
    pub(crate) async fn calls(&self, function: &str) -> Vec<Value> {
        list(self.local.get(&format!("/_local/calls?function={function}&limit=500")).await.expect(200).body)
    }

    /// Peak memory of the stack's process so far.
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        self.stack.lock().unwrap().peak_memory_bytes()
    }

    /// The stack's whole log so far.
    pub(crate) fn log(&self) -> String {
        self.stack.lock().unwrap().log()
    }

    /// A number that is unique in this world.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A failing test already reports its own reason.
        if !std::thread::panicking() {
            let log = self.stack.get_mut().unwrap().stop();
            self.confidential.assert_absent_from(&log);
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

/// Parses a time as the API writes it.
#[track_caller]
pub(crate) fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no time: {value}"))
}

/// Renders a time as the API writes it.
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
