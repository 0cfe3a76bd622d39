//! Events on their way to receivers: one endpoint an event, and ten.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::error::{BenchError, because};
use crate::fleet::Fleet;
use crate::process::{Mode, instructions};
use crate::seed::{client, workspace};
use crate::stand::{Call, Cost, Stand, Variables, rendered, text};

/// Deliveries before those that are measured: processes start, connections open.
const WARM_UP: usize = 100;
/// Deliveries that are measured.
const DELIVERIES: usize = 1_000;
/// Deliveries below callgrind, and those before them.
const COUNTED: usize = 400;
const COUNTED_WARM_UP: usize = 100;
/// Events that are under way at the same time.
const AT_ONCE: usize = 20;
/// All of them take no longer.
const DEADLINE: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What so many deliveries came to.
pub(crate) struct Figures {
    pub(crate) endpoints: usize,
    pub(crate) deliveries: usize,
    pub(crate) wall: Duration,
    /// CPU time of the function that sends.
    pub(crate) deliver: Duration,
    /// CPU time of the function that hands over to the queue.
    pub(crate) relay: Duration,
    /// For each delivery.
    pub(crate) deliver_cost: Cost,
    pub(crate) relay_cost: Cost,
    /// Invocations for each delivery.
    pub(crate) deliver_invocations: f64,
    pub(crate) relay_invocations: f64,
    pub(crate) peak_memory_bytes: u64,
}

/// A receiver that is content with everything.
struct Receiver {
    port: u16,
    received: Arc<AtomicUsize>,
}

impl Receiver {
    async fn start() -> Result<Self, BenchError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(because("listen"))?;
        let port = listener.local_addr().map_err(because("listen"))?.port();
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

    /// Waits for so many. Orders that were put off, since their endpoint was busy, come a second later.
    async fn until(&self, count: usize) -> Result<(), BenchError> {
        let began = Instant::now();
        while self.received() < count {
            if began.elapsed() > DEADLINE {
                let received = self.received();
                return Err(BenchError::new(format!("{received} of {count} deliveries came to the receiver")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

/// A coach whose events go to so many endpoints each.
struct Source<'a> {
    stand: &'a Stand,
    receiver: Receiver,
    client_id: String,
    endpoints: usize,
    /// Of the next event.
    number: usize,
}

impl<'a> Source<'a> {
    async fn set_up(stand: &'a Stand, endpoints: usize) -> Result<Self, BenchError> {
        let coach = format!("coach_delivery_{endpoints}");
        let client_id = format!("client_delivery_{endpoints}");
        stand.facts(vec![("workspace.saved", workspace(&coach))]).await?;
        stand.facts(vec![("client.saved", client(&coach, &client_id, stand.now()))]).await?;
        let receiver = Receiver::start().await?;
        let session = stand.session(&coach)?;
        let mut steps = Vec::new();
        for number in 0..endpoints {
            let url = format!("http://127.0.0.1:{}/{number}", receiver.port);
            let endpoint = json!({ "url": url, "events": [], "payload_mode": "identifiers" });
            let made = stand.call(Call::post("/settings/webhooks", endpoint).by(&session)).await?;
            steps.push(json!({ "kind": "webhook", "endpoint_id": text(&made, "id")? }));
        }
        let automation = json!({
            "automation_id": format!("automation_{endpoints}"), "coach_id": coach, "name": "Bench", "active": true,
            "trigger": { "event": "message_received" }, "steps": steps,
        });
        stand.facts(vec![("automation.saved", automation)]).await?;
        Ok(Self { stand, receiver, client_id, endpoints, number: 0 })
    }

    /// Makes events, no more at once than an endpoint takes: what waits for a place is put off, which costs too, and is another matter.
    async fn deliver(&mut self, deliveries: usize) -> Result<(), BenchError> {
        let mut left = deliveries / self.endpoints;
        while left > 0 {
            let events = left.min(AT_ONCE);
            let reached = self.receiver.received() + events * self.endpoints;
            self.stand.put((0..events).map(|_| self.message()).collect()).await?;
            self.receiver.until(reached).await?;
            left -= events;
        }
        self.stand.settle().await
    }

    fn message(&mut self) -> (&'static str, Value) {
        self.number += 1;
        let detail = json!({
            "client_id": self.client_id,
            "message_id": format!("message-{}-{}", self.endpoints, self.number),
            "received_at": rendered(self.stand.now()),
        });
        ("message.received", detail)
    }
}

/// Measures deliveries of events that go to so many endpoints each.
pub(crate) async fn measure(endpoints: usize, stand: &Stand, fleet: &Fleet) -> Result<Figures, BenchError> {
    let mut source = Source::set_up(stand, endpoints).await?;
    source.deliver(WARM_UP).await?;
    let (before, relay_before) = (fleet.used("deliver").await, fleet.used("relay").await);
    let (calls, relay_calls) = (stand.totals("deliver"), stand.totals("relay"));
    let began = Instant::now();
    source.deliver(DELIVERIES).await?;
    let wall = began.elapsed();
    let (after, relay_after) = (fleet.used("deliver").await, fleet.used("relay").await);
    let (calls_after, relay_calls_after) = (stand.totals("deliver"), stand.totals("relay"));
    let each = |before: u64, after: u64| (after - before) as f64 / DELIVERIES as f64;
    Ok(Figures {
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

/// Counts the instructions that a delivery takes of the function that sends. On a stand of its own, where one process handles all batches.
pub(crate) async fn count(endpoints: usize, binaries: &Path, dir: &Path, counts: &Path) -> Result<u64, BenchError> {
    let fleet = Fleet::new(binaries);
    let stand = Stand::start_with(&dir.join(format!("counted-{endpoints}")), &fleet.functions(), 1).await?;
    let counted = count_on(&stand, &fleet, endpoints, counts).await;
    stand.end().await;
    fleet.close().await;
    counted
}

async fn count_on(stand: &Stand, fleet: &Fleet, endpoints: usize, counts: &Path) -> Result<u64, BenchError> {
    let mut source = Source::set_up(stand, endpoints).await?;
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
