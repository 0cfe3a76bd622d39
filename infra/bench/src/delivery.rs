//! Events on their way to receivers: one endpoint an event, and ten.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::error::{BenchError, because};
use crate::fleet::Fleet;
use crate::seed::{client, workspace};
use crate::stand::{Call, Cost, Stand, rendered, text};

/// Deliveries before those that are measured: processes start, connections open.
const WARM_UP: usize = 100;
/// Deliveries that are measured.
const DELIVERIES: usize = 1_000;
/// The local stack keeps the calls of so many invocations.
const KEPT_INVOCATIONS: usize = 500;

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
}

/// Measures deliveries of events that go to so many endpoints each.
pub(crate) async fn measure(endpoints: usize, stand: &Stand, fleet: &Fleet) -> Result<Figures, BenchError> {
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

    let message = |number: usize| {
        let detail: Value = json!({
            "client_id": client_id, "message_id": format!("message-{endpoints}-{number}"), "received_at": rendered(stand.now()),
        });
        ("message.received", detail)
    };
    stand.facts((0..WARM_UP / endpoints).map(message).collect()).await?;
    let (before, relay_before) = (fleet.used("deliver").await, fleet.used("relay").await);
    let (received, began) = (receiver.received.load(Ordering::Relaxed), Instant::now());
    let first = WARM_UP / endpoints;
    stand.facts((first..first + DELIVERIES / endpoints).map(message).collect()).await?;
    let wall = began.elapsed();
    let (after, relay_after) = (fleet.used("deliver").await, fleet.used("relay").await);
    let deliveries = receiver.received.load(Ordering::Relaxed) - received;
    if deliveries != DELIVERIES {
        return Err(BenchError::new(format!("{deliveries} of {DELIVERIES} deliveries came to the receiver")));
    }
    let cost = |function: &str| {
        let mut invocations = stand.calls(function, KEPT_INVOCATIONS);
        invocations.retain(|invocation| !invocation.calls.is_empty());
        Cost::total(&invocations)
    };
    // The history may hold fewer invocations than there were: what each delivery cost is as good of those.
    let share = |cost: Cost, of: usize| Cost {
        calls: cost.calls / of as f64,
        read_units: cost.read_units / of as f64,
        write_units: cost.write_units / of as f64,
    };
    let all = DELIVERIES + WARM_UP;
    Ok(Figures {
        endpoints,
        deliveries,
        wall,
        deliver: after.cpu.saturating_sub(before.cpu),
        relay: relay_after.cpu.saturating_sub(relay_before.cpu),
        deliver_cost: share(cost("deliver"), all),
        relay_cost: share(cost("relay"), all),
        peak_memory_bytes: after.peak_memory_bytes,
    })
}
