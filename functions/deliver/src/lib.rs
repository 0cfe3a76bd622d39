//! Signs and sends webhooks, and keeps the delivery log.
//!
//! A message is an order for one attempt. The way of an order: its endpoint is read (`batch`), it is admitted
//! (`admission`) or put back (`order`), the attempt is claimed, sent and recorded, and what follows is carried out
//! (`attempt`). The delivery's item decides whether the order still counts: messages arrive twice, late, and after a
//! function died half-way. Messages of a batch are worked on at once and fail one by one.

mod admission;
mod attempt;
mod batch;
mod order;
mod receiver;
mod resume;
mod telling;

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

/// Messages that come again since something failed. Neither Lambda's errors nor the age of the queue tell of them.
const MESSAGES_FAILED: Metric = Metric::new("messages_failed", Unit::Count);

/// The failure for which a message is to be brought again.
#[derive(Debug, thiserror::Error)]
enum DeliverError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// An error of ours. Brought again it fails again, until it lies with the dead letters for someone to see.
    #[error(transparent)]
    Malformed(#[from] NotAnOrder),
    /// The endpoint of several orders could not be read, or gave no slot or place.
    #[error(transparent)]
    Group(Arc<StoreError>),
    #[error("the attempt panicked")]
    Panicked,
    /// Another function makes the attempt. If that function dies, the message has to be there.
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

    /// Handles a batch; the answer names the messages that are to be brought again.
    pub async fn handle(&self, event: LambdaEvent<SqsEvent>) -> SqsBatchResponse {
        let LambdaEvent { payload, context } = event;
        self.observer.event(&context.request_id, self.take_all(payload)).await
    }

    async fn take_all(&self, event: SqsEvent) -> SqsBatchResponse {
        // Said of every batch: an alarm sees that failures have ended.
        add(MESSAGES_FAILED, 0.0);
        let mut response = SqsBatchResponse::default();
        for (message, outcome) in self.carry_out_all(event.records).await {
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
