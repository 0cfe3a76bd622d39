//! Signs and sends webhooks, and keeps the delivery log.
//!
//! A message of the FIFO queue is an order for one attempt. The orders of a lane, a part of an endpoint, are carried
//! out one after the other, the lanes of a batch at once (`batch`). An order reads its delivery and endpoint,
//! decides, sends, records, and sends the next order (`attempt`). The delivery's record decides whether an order
//! still counts: messages arrive twice, late, and after a function died half-way.
//!
//! A message of the other queue has waited: an order moves to the FIFO queue, an event that waits for its contact goes
//! back to the relay (`waiting`). Or it asks for a page of a job on many deliveries (`job`).
//!
//! A message that fails is received again after some seconds (`redelivery`).

mod attempt;
mod batch;
mod counts;
mod job;
mod metrics_line;
mod redelivery;
mod waiting;

use std::sync::Arc;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use domain::mode::Mode;
use domain::time::Timestamp;
use futures::future::{BoxFuture, FutureExt};
use lambda_runtime::LambdaEvent;
use outbound::delivery::{DeliveryQueue, NotAnOrder, RetryQueue};
use outbound::queue::QueueError;
use runtime::{BoxError, Clock, Environment, Metric, Observer, Unit, add, error_chain};
use store::delivery::Deliveries;
use store::endpoint::Endpoints;
use store::outbox::Outbox;
use store::unit::Units;
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
    #[error("the attempt panicked")]
    Panicked,
    /// The lane has had its time in this batch. The message is received again at once.
    #[error("the lane has had its time")]
    NotBegun,
}

/// Messages, each with its result.
type Outcomes = Vec<(SqsMessage, Result<(), DeliverError>)>;

/// A started deliverer.
pub struct App {
    clock: Arc<dyn Clock>,
    endpoints: Endpoints,
    deliveries: Deliveries,
    outbox: Outbox,
    units: Units,
    queue: DeliveryQueue,
    retries: RetryQueue,
    webhooks: WebhookClient,
    observer: Observer,
    mode: Mode,
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
            units: Units::new(env, &db, &vault)?,
            queue: DeliveryQueue::new(env)?,
            retries: RetryQueue::new(env)?,
            webhooks: WebhookClient::new(env)?,
            observer: env.observer(),
            mode: env.config().parse::<Mode>(Mode::SETTING)?,
        })
    }

    /// Handles a batch of one of the queues. The answer names the messages to redeliver.
    ///
    /// The future is boxed, so that this crate is compiled once, and not again in each program that runs it.
    pub fn handle(&self, event: LambdaEvent<SqsEvent>) -> BoxFuture<'_, SqsBatchResponse> {
        let LambdaEvent { payload, context } = event;
        async move { self.observer.event(&context.request_id, self.take_all(payload)).await }.boxed()
    }

    async fn take_all(&self, event: SqsEvent) -> SqsBatchResponse {
        // The name of each FIFO queue ends in this way.
        let is_fifo =
            |message: &SqsMessage| message.event_source_arn.as_ref().is_some_and(|arn| arn.ends_with(".fifo"));
        let (orders, waiting): (Vec<_>, Vec<_>) = event.records.into_iter().partition(is_fifo);
        let mut outcomes = self.carry_out(orders).await;
        let moved = self.move_on(waiting).await;
        self.redeliver_waiting(&moved).await;
        outcomes.extend(moved);
        let mut response = SqsBatchResponse::default();
        for (message, outcome) in outcomes {
            let Err(error) = outcome else { continue };
            let message_id = message.message_id.unwrap_or_default();
            if !matches!(error, DeliverError::NotBegun) {
                tracing::error!(message_id, error = error_chain(&error), "a message failed");
                add(MESSAGES_FAILED, 1.0);
            }
            response.add_failure(message_id);
        }
        response
    }

    fn now(&self) -> Timestamp {
        Timestamp::new(self.clock.now())
    }
}
