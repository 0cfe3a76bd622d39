//! The queues of delivery orders. A FIFO queue carries the orders that are due: a group of messages is a lane of an
//! endpoint. A standard queue lets orders wait. SQS delays a message by at most 15 minutes: an order with a later due
//! time comes back early, and is sent to wait again.

use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry};
use domain::id::EventId;
use domain::retry::queue_delay_s;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt};
use runtime::{BoxError, Environment, without_message};
use serde::{Deserialize, Serialize};

use crate::boxed;
use crate::queue::{MAX_BATCH, Queue, QueueError, Redelivery};

pub use domain::delivery::{DeliveryJob, DeliveryOrder};

/// Requests at once.
const CONCURRENT_BATCHES: usize = 8;

/// A message of the queue where orders wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WaitingMessage {
    Order(DeliveryOrder),
    Job(DeliveryJob),
    Look(ContactLook),
}

/// A message that brings back an event of the outbox that waits for its contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContactLook {
    pub event_id: EventId,
}

/// A message body that is neither an order nor a job nor a look.
#[derive(Debug, thiserror::Error)]
#[error("the message is not an order to deliver")]
pub struct NotAnOrder(#[source] serde_json::Error);

/// The FIFO queue of the orders that are due.
#[derive(Clone)]
pub struct DeliveryQueue(Queue);

/// The queue where orders wait.
#[derive(Clone)]
pub struct RetryQueue(Queue);

impl DeliveryQueue {
    /// The queue that `DELIVERIES_QUEUE_URL` names.
    pub fn new(env: &Environment) -> Result<Self, BoxError> {
        Queue::new(env, "DELIVERIES_QUEUE_URL").map(Self)
    }

    /// Sends orders, and returns one result per order, in their order.
    pub async fn send_all(&self, orders: &[DeliveryOrder]) -> Vec<Result<(), QueueError>> {
        if let [order] = orders {
            // A single order needs no batch.
            let message = self.0.client().send_message().queue_url(self.0.url()).message_body(text(order));
            let message = message.message_group_id(order.lane()).message_deduplication_id(order.deduplication_id());
            let sent = boxed(message.send()).await.map(drop);
            return vec![sent.map_err(|error| QueueError::new(without_message(error)))];
        }
        let message = |order: &DeliveryOrder| {
            let entry = SendMessageBatchRequestEntry::builder().message_body(text(order));
            entry.message_group_id(order.lane()).message_deduplication_id(order.deduplication_id())
        };
        send_all(&self.0, orders, message).await
    }

    /// Makes received messages visible again after their waits.
    pub async fn redeliver(&self, messages: &[Redelivery]) -> Result<(), QueueError> {
        self.0.redeliver(messages).await
    }

    /// Deletes received messages, by their receipts, so that SQS gives out the next ones of their lanes.
    pub async fn delete_all(&self, receipts: &[String]) -> Result<(), QueueError> {
        for batch in receipts.chunks(MAX_BATCH) {
            let entries = batch.iter().enumerate().map(|(index, receipt)| {
                let entry = DeleteMessageBatchRequestEntry::builder().id(index.to_string()).receipt_handle(receipt);
                entry.build().expect("an id and a receipt are given")
            });
            let deleting = self.0.client().delete_message_batch().queue_url(self.0.url());
            boxed(deleting.set_entries(Some(entries.collect())).send())
                .await
                .map_err(|error| QueueError::new(without_message(error)))?;
        }
        Ok(())
    }
}

impl RetryQueue {
    /// The queue that `DELIVERY_RETRIES_QUEUE_URL` names.
    pub fn new(env: &Environment) -> Result<Self, BoxError> {
        Queue::new(env, "DELIVERY_RETRIES_QUEUE_URL").map(Self)
    }

    /// Sends orders to wait, each until its due time or for the longest delay of the queue. Returns one result per
    /// order, in their order.
    pub async fn send_all(&self, orders: &[DeliveryOrder], now: Timestamp) -> Vec<Result<(), QueueError>> {
        let message = |order: &DeliveryOrder| {
            SendMessageBatchRequestEntry::builder().message_body(text(order)).delay_seconds(delay_s(order, now))
        };
        send_all(&self.0, orders, message).await
    }

    /// Makes received messages visible again after their waits.
    pub async fn redeliver(&self, messages: &[Redelivery]) -> Result<(), QueueError> {
        self.0.redeliver(messages).await
    }

    /// Sends an order to wait.
    pub async fn send(&self, order: &DeliveryOrder, now: Timestamp) -> Result<(), QueueError> {
        self.0.send(text(order), delay_s(order, now)).await
    }

    /// Sends the message that brings back an event of the outbox after that time.
    pub async fn send_look(&self, event: &EventId, delay_s: i32) -> Result<(), QueueError> {
        let look = ContactLook { event_id: event.clone() };
        self.0.send(serde_json::to_string(&look).expect("a look converts to JSON"), delay_s).await
    }

    /// Sends a job: its first page without delay, the others to wait.
    pub async fn send_job(&self, job: &DeliveryJob) -> Result<(), QueueError> {
        let delay_s = i32::try_from(job.delay_s()).expect("a delay is at most 900 s");
        self.0.send(serde_json::to_string(job).expect("a job converts to JSON"), delay_s).await
    }
}

/// Sends a message for each order, ten per request, and returns the results in the order of the orders.
async fn send_all(
    queue: &Queue,
    orders: &[DeliveryOrder],
    message: impl Fn(&DeliveryOrder) -> SendMessageBatchRequestEntryBuilder,
) -> Vec<Result<(), QueueError>> {
    let send_batch = async |batch: &[DeliveryOrder]| {
        let entries = batch
            .iter()
            .enumerate()
            .map(|(index, order)| message(order).id(index.to_string()).build().expect("an id and a body are given"));
        let sending = queue.client().send_message_batch().queue_url(queue.url());
        match boxed(sending.set_entries(Some(entries.collect())).send()).await {
            Ok(answer) => (0..batch.len()).map(|index| entry_result(&answer, index)).collect(),
            Err(error) => vec![Err(QueueError::new(without_message(error))); batch.len()],
        }
    };
    let batches: Vec<_> = orders.chunks(MAX_BATCH).map(send_batch).collect();
    stream::iter(batches).buffered(CONCURRENT_BATCHES).collect::<Vec<_>>().await.concat()
}

/// The result of one entry of a batch. SQS answers 200 even if it refused some entries.
fn entry_result(answer: &SendMessageBatchOutput, index: usize) -> Result<(), QueueError> {
    let id = index.to_string();
    if answer.successful.iter().any(|entry| entry.id == id) {
        return Ok(());
    }
    let failed = answer.failed.iter().find(|entry| entry.id == id);
    let reason = failed.map(|failed| failed.code.clone());
    Err(QueueError::new(reason.unwrap_or_else(|| "no result for the entry".to_owned())))
}

fn text(order: &DeliveryOrder) -> String {
    serde_json::to_string(order).expect("an order converts to JSON")
}

fn delay_s(order: &DeliveryOrder, now: Timestamp) -> i32 {
    i32::try_from(queue_delay_s(order.due_at.utc() - now.utc())).expect("a delay is at most 900 s")
}

/// Parses the body of a message in the FIFO queue.
pub fn read_order(body: &str) -> Result<DeliveryOrder, NotAnOrder> {
    serde_json::from_str(body).map_err(NotAnOrder)
}

/// Parses the body of a message in the queue where orders wait.
pub fn read_waiting(body: &str) -> Result<WaitingMessage, NotAnOrder> {
    serde_json::from_str(body).map_err(NotAnOrder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};
    use domain::delivery::JobWork;
    use domain::id::{CoachId, DeliveryId, EndpointId};

    #[test]
    fn an_order_reads_back_and_anything_else_is_refused() {
        let coach = CoachId::parse("coach_1").unwrap();
        let endpoint = EndpointId::parse("we_1").unwrap();
        let delivery = DeliveryId::parse("dlv_1").unwrap();
        let order = DeliveryOrder::first(&coach, &endpoint, &delivery, Timestamp::from_ms(1_790_000_000_123));
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(read_order(&text).unwrap(), order);
        assert_eq!(read_waiting(&text).unwrap(), WaitingMessage::Order(order));
        for bad in [
            "",
            "{}",
            "[]",
            "null",
            &text.replace("coach_1", "coach 1"),
            &text.replace("\"attempt\":1", "\"attempt\":-1"),
        ] {
            assert!(read_order(bad).is_err() && read_waiting(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_entry_of_a_batch_is_sent_only_if_sqs_lists_it_as_successful() {
        let sent = SendMessageBatchResultEntry::builder().id("1").message_id("m").md5_of_message_body("d").build();
        let refused =
            BatchResultErrorEntry::builder().id("0").code("InternalError").message("Marguerite").sender_fault(false);
        let answer = SendMessageBatchOutput::builder()
            .successful(sent.unwrap())
            .failed(refused.build().unwrap())
            .build()
            .unwrap();
        assert!(entry_result(&answer, 1).is_ok());
        for (index, reason) in [(0, "InternalError"), (2, "no result for the entry")] {
            let error = runtime::error_chain(&entry_result(&answer, index).unwrap_err());
            assert_eq!(error, format!("the queue did not take a message: {reason}"));
        }
    }

    #[test]
    fn an_operator_names_a_coach_and_an_endpoint_to_resume() {
        let message = read_waiting(r#"{"coach_id": "coach_1", "endpoint_id": "we_1", "work": "resume"}"#).unwrap();
        let (coach_id, endpoint_id) = (CoachId::parse("coach_1").unwrap(), EndpointId::parse("we_1").unwrap());
        let job = DeliveryJob { coach_id, endpoint_id, work: JobWork::Resume, after: None };
        assert_eq!(message, WaitingMessage::Job(job));
        assert!(read_waiting(r#"{"coach_id": "coach_1", "endpoint_id": "we_1"}"#).is_err());
    }
}
