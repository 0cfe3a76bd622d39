//! Measures deliveries to receivers, with one endpoint an event and with ten.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::error::{BenchError, context};
use crate::fleet::Fleet;
use crate::process::{Mode, instructions};
use crate::seed::{client, workspace};
use crate::stack::{ApiCall, BenchStack, Cost, Variables, rendered, text};

/// Unmeasured deliveries, during which processes start and connections open.
const WARM_UP: usize = 100;
/// Number of measured deliveries.
const DELIVERIES: usize = 1_000;
/// Measured deliveries under callgrind.
const COUNTED: usize = 400;
/// Unmeasured deliveries under callgrind before them.
const COUNTED_WARM_UP: usize = 100;
/// Number of concurrent events.
const CONCURRENT_EVENTS: usize = 20;
/// Time limit for all deliveries to arrive.
const DEADLINE: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The measured cost of deliveries.
pub(crate) struct DeliveryFigures {
    pub(crate) endpoints: usize,
    pub(crate) deliveries: usize,
    pub(crate) wall: Duration,
    /// CPU time of `deliver`.
    pub(crate) deliver: Duration,
    /// CPU time of `relay`.
    pub(crate) relay: Duration,
    /// Cost per delivery.
    pub(crate) deliver_cost: Cost,
    pub(crate) relay_cost: Cost,
    /// Invocations per delivery.
    pub(crate) deliver_invocations: f64,
    pub(crate) relay_invocations: f64,
    pub(crate) peak_memory_bytes: u64,
}

/// A receiver that accepts every delivery.
struct Receiver {
    port: u16,
    received: Arc<AtomicUsize>,
}

impl Receiver {
    async fn start() -> Result<Self, BenchError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(context("listen"))?;
        let port = listener.local_addr().map_err(context("listen"))?.port();
        let received = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&received);
        let hook = async move || {
            counter.fetch_add(1, Ordering::Relaxed);
            http::StatusCode::NO_CONTENT
        };
        tokio::spawn(axum::serve(listener, Router::new().route("/{*path}", post(hook))).into_future());
        Ok(Self { port, received })
    }

    fn received(&self) -> usize {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits for this number of deliveries. Those deferred because their endpoint was busy arrive a second later.
    async fn wait_for(&self, count: usize) -> Result<(), BenchError> {
        let began = Instant::now();
        while self.received() < count {
            if began.elapsed() > DEADLINE {
                let received = self.received();
                return Err(BenchError::new(format!("{received} of {count} deliveries reached the receiver")));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// A coach whose events go to `endpoints` endpoints each.
struct EventSource<'a> {
    stack: &'a BenchStack,
    receiver: Receiver,
    client_id: String,
    endpoints: usize,
    /// Number of events so far, for their ids.
    number: usize,
}

impl<'a> EventSource<'a> {
    async fn set_up(stack: &'a BenchStack, endpoints: usize) -> Result<Self, BenchError> {
        let coach = format!("coach_delivery_{endpoints}");
        let client_id = format!("client_delivery_{endpoints}");
        stack.apply_facts(vec![("workspace.saved", workspace(&coach))]).await?;
        stack.apply_facts(vec![("client.saved", client(&coach, &client_id, stack.now()))]).await?;
        let receiver = Receiver::start().await?;
        let session = stack.session(&coach)?;
        let mut steps = Vec::new();
        for number in 0..endpoints {
            let url = format!("http://127.0.0.1:{}/{number}", receiver.port);
            let endpoint = json!({ "url": url, "events": [], "payload_mode": "identifiers" });
            let made = stack.call(ApiCall::post("/settings/webhooks", endpoint).bearer(&session)).await?;
            steps.push(json!({ "kind": "webhook", "endpoint_id": text(&made, "id")? }));
        }
        let automation = json!({
            "automation_id": format!("automation_{endpoints}"), "coach_id": coach, "name": "Bench", "active": true,
            "trigger": { "event": "message_received" }, "steps": steps,
        });
        stack.apply_facts(vec![("automation.saved", automation)]).await?;
        Ok(Self { stack, receiver, client_id, endpoints, number: 0 })
    }

    /// Emits events, at most `CONCURRENT_EVENTS` at a time: more would wait for their endpoint, and deferred deliveries
    /// cost more.
    async fn deliver(&mut self, deliveries: usize) -> Result<(), BenchError> {
        let mut left = deliveries / self.endpoints;
        while left > 0 {
            let events = left.min(CONCURRENT_EVENTS);
            let reached = self.receiver.received() + events * self.endpoints;
            self.stack.put_facts((0..events).map(|_| self.message()).collect()).await?;
            self.receiver.wait_for(reached).await?;
            left -= events;
        }
        self.stack.settle().await
    }

    fn message(&mut self) -> (&'static str, Value) {
        self.number += 1;
        let detail = json!({
            "client_id": self.client_id,
            "message_id": format!("message-{}-{}", self.endpoints, self.number),
            "received_at": rendered(self.stack.now()),
        });
        ("message.received", detail)
    }
}

/// Measures deliveries of events with `endpoints` endpoints each.
pub(crate) async fn measure(
    endpoints: usize,
    stack: &BenchStack,
    fleet: &Fleet,
) -> Result<DeliveryFigures, BenchError> {
    let mut source = EventSource::set_up(stack, endpoints).await?;
    source.deliver(WARM_UP).await?;
    let (before, relay_before) = (fleet.usage("deliver").await, fleet.usage("relay").await);
    let (calls, relay_calls) = (stack.totals("deliver"), stack.totals("relay"));
    let began = Instant::now();
    source.deliver(DELIVERIES).await?;
    let wall = began.elapsed();
    let (after, relay_after) = (fleet.usage("deliver").await, fleet.usage("relay").await);
    let (calls_after, relay_calls_after) = (stack.totals("deliver"), stack.totals("relay"));
    let each = |before: u64, after: u64| (after - before) as f64 / DELIVERIES as f64;
    Ok(DeliveryFigures {
        endpoints,
        deliveries: DELIVERIES,
        wall,
        deliver: after.cpu.saturating_sub(before.cpu),
        relay: relay_after.cpu.saturating_sub(relay_before.cpu),
        deliver_cost: Cost::between(calls, calls_after, DELIVERIES),
        relay_cost: Cost::between(relay_calls, relay_calls_after, DELIVERIES),
        deliver_invocations: each(calls.invocations, calls_after.invocations),
        relay_invocations: each(relay_calls.invocations, relay_calls_after.invocations),
        peak_memory_bytes: after.peak_memory_bytes,
    })
}

/// Counts the instructions of `deliver` for a delivery, on a separate stack in which one process handles all batches.
pub(crate) async fn count(endpoints: usize, binaries: &Path, dir: &Path, counts: &Path) -> Result<u64, BenchError> {
    let fleet = Fleet::new(binaries);
    let stack = BenchStack::start_with(&dir.join(format!("counted-{endpoints}")), &fleet.functions(), 1).await?;
    let counted = count_on(&stack, &fleet, endpoints, counts).await;
    stack.end().await;
    fleet.close().await;
    counted
}

async fn count_on(stack: &BenchStack, fleet: &Fleet, endpoints: usize, counts: &Path) -> Result<u64, BenchError> {
    let mut source = EventSource::set_up(stack, endpoints).await?;
    source.deliver(WARM_UP).await?;
    let file = counts.join(format!("callgrind.out.deliver_{endpoints}"));
    let mut counted = [0; 2];
    for (count, deliveries) in counted.iter_mut().zip([COUNTED_WARM_UP, COUNTED_WARM_UP + COUNTED]) {
        fleet.run_as(Mode::Counted(file.clone()), Variables::new());
        fleet.restart("deliver").await?;
        source.deliver(deliveries).await?;
        fleet.end("deliver").await;
        *count = instructions(&file)?;
    }
    let [few, many] = counted;
    Ok(many.saturating_sub(few) / COUNTED as u64)
}
