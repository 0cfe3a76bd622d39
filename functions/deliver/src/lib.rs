//! Signs and sends webhooks, and keeps the delivery log.
//!
//! A message is an order for one attempt, or the request of an operator to re-enqueue pending deliveries. The path of
//! an order: its endpoint is read (`batch`), the order is admitted (`admission`) or put back (`order`), the attempt is
//! claimed, sent and recorded, and its consequences are carried out (`attempt`). The delivery's item decides whether an
//! order still counts: messages arrive twice, late, and after a function died half-way. Messages of a batch are handled
//! concurrently and fail one by one.

mod admission;
mod attempt;
mod batch;
mod endpoint_state;
mod metrics_line;
mod order;
mod resume;

use std::sync::Arc;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use domain::time::Timestamp;
use lambda_runtime::LambdaEvent;
use outbound::delivery::{DeliveryQueue, NotAnOrder};
use outbound::queue::QueueError;
use runtime::{BoxError, Clock, Environment, Metric, Observer, Unit, add, error_chain};
use store::delivery::Deliveries;
use store::endpoint::Endpoints;
use store::outbox::Outbox;
use store::vault::Vault;
use store::{Db, StoreError};
use webhook::WebhookClient;

/// Messages that are redelivered after a failure. Neither Lambda's errors nor the age of the queue show them.
const MESSAGES_FAILED: Metric = Metric::new("messages_failed", Unit::Count);

/// The failure for which a message is redelivered.
#[derive(Debug, thiserror::Error)]
enum DeliverError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A fault of ours. Redeliveries fail, too, until the message is a dead letter.
    #[error(transparent)]
    Malformed(#[from] NotAnOrder),
    /// The endpoint of several orders could not be read, or gave no permit or place.
    #[error(transparent)]
    Group(Arc<StoreError>),
    #[error("the attempt panicked")]
    Panicked,
    /// Another function makes the attempt. The message must remain in case that function dies.
    #[error("the attempt is under way elsewhere")]
    Held,
}

/// A started deliverer.
pub struct App {
    clock: Arc<dyn Clock>,
    endpoints: Endpoints,
    deliveries: Deliveries,
    outbox: Outbox,
    retries: DeliveryQueue,
    webhooks: WebhookClient,
    observer: Observer,
}

impl App {
    /// Connects to everything that the deliverer uses.
    pub async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        Ok(Self {
            clock: env.clock(),
            endpoints: Endpoints::new(env, &db, &vault)?,
            deliveries: Deliveries::new(env, &db, &vault)?,
            outbox: Outbox::new(env, &db, &vault)?,
            retries: DeliveryQueue::new(env, "DELIVERY_RETRIES_QUEUE_URL")?,
            webhooks: WebhookClient::new(env)?,
            observer: env.observer(),
        })
    }

    /// Handles a batch. The answer names the messages to redeliver.
    pub async fn handle(&self, event: LambdaEvent<SqsEvent>) -> SqsBatchResponse {
        let LambdaEvent { payload, context } = event;
        self.observer.event(&context.request_id, self.take_all(payload)).await
    }

    async fn take_all(&self, event: SqsEvent) -> SqsBatchResponse {
        let mut response = SqsBatchResponse::default();
        for (message, outcome) in self.handle_batch(event.records).await {
            let Err(error) = outcome else { continue };
            let message_id = message.message_id.unwrap_or_default();
            match &error {
                DeliverError::Held => tracing::info!(message_id, "{error}"),
                error => {
                    tracing::error!(message_id, error = error_chain(error), "a message failed");
                    add(MESSAGES_FAILED, 1.0);
                }
            }
            response.add_failure(message_id);
        }
        response
    }

    fn now(&self) -> Timestamp {
        Timestamp::new(self.clock.now())
    }
}
