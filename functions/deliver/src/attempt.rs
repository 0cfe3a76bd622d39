//! One attempt: sign, send, record, and order the next.

use domain::delivery::{Attempt, Next, after_attempt};
use domain::endpoint::{EndpointStatus, SignedEndpoint};
use domain::signature::signature_header;
use outbound::webhook::Webhook;
use runtime::random_bytes;
use store::delivery::{Recorded, Taken};

use crate::{App, DeliverError};

impl App {
    /// Makes the attempt, or ends the delivery where its endpoint takes none any more.
    pub(crate) async fn attempt(&self, taken: &Taken, endpoint: Option<SignedEndpoint>) -> Result<(), DeliverError> {
        match sendable(endpoint) {
            Ok(endpoint) => {
                let line = self.send(taken, &endpoint).await;
                let jitter = u16::from_be_bytes(random_bytes());
                let next = after_attempt(&line.result, taken.order.attempt, self.now(), jitter);
                self.record(taken, &line, next).await
            }
            Err(reason) => self.record(taken, &Attempt::unsent(self.now(), reason), Next::Exhausted).await,
        }
    }

    async fn send(&self, taken: &Taken, signed: &SignedEndpoint) -> Attempt {
        let at = self.now();
        let webhook = Webhook {
            url: &signed.endpoint.url,
            event_id: &taken.event_id,
            event_type: &taken.event_type,
            unix_s: at.unix_s(),
            signature: signature_header(&signed.secrets, &taken.event_id, at.unix_s(), &taken.body),
            body: taken.body.clone(),
        };
        let answer = self.webhooks.post(webhook).await;
        Attempt { at, result: answer.result, duration_ms: answer.duration_ms, response_excerpt: answer.excerpt }
    }

    /// Records first: an order that was sent and an attempt that was forgotten would be two chains.
    async fn record(&self, taken: &Taken, line: &Attempt, next: Next) -> Result<(), DeliverError> {
        let order = &taken.order;
        let (delivery, endpoint) = (order.delivery_id.as_str(), order.endpoint_id.as_str());
        tracing::info!(delivery, endpoint, attempt = order.attempt, result = ?line.result, duration_ms = line.duration_ms, ?next, "attempted");
        match (self.deliveries.record(taken, line, next).await?, next) {
            (Recorded::Lost, _) => {
                tracing::warn!(
                    delivery,
                    endpoint,
                    attempt = order.attempt,
                    "the attempt took longer than its lease and is not recorded"
                );
                Ok(())
            }
            (Recorded::Done, Next::RetryAt(due_at)) => {
                let order = order.for_attempt(order.attempt + 1, due_at);
                Ok(self.retries.send(&order, self.now()).await?)
            }
            (Recorded::Done, Next::Delivered | Next::Exhausted) => Ok(()),
        }
    }
}

/// The endpoint, if it takes deliveries; else why it does not, for the log.
fn sendable(endpoint: Option<SignedEndpoint>) -> Result<SignedEndpoint, &'static str> {
    let endpoint = endpoint.ok_or("not sent: endpoint deleted")?;
    match endpoint.endpoint.status {
        EndpointStatus::Enabled => Ok(endpoint),
        EndpointStatus::Disabled => Err("not sent: endpoint disabled"),
        EndpointStatus::Gone => Err("not sent: endpoint gone"),
    }
}
