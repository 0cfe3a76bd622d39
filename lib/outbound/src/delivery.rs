//! The queues of delivery orders. SQS delays a message by at most 15 minutes. An order with a later due time is sent
//! with the longest delay and put back when it arrives.

use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use domain::retry::queue_delay_s;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt};
use runtime::{BoxError, Environment, without_message};
use serde::Deserialize;

use crate::boxed;
use crate::queue::{Queue, QueueError};

pub use domain::delivery::{DeliveryOrder, Resumption};

/// Messages that one SendMessageBatch request takes.
const MAX_BATCH: usize = 10;
/// Requests at once.
const CONCURRENT_BATCHES: usize = 8;

/// The content of a message.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Message {
    Order(DeliveryOrder),
    Resumption(Resumption),
}

/// A message body that is neither an order nor a request to re-enqueue.
#[derive(Debug, thiserror::Error)]
#[error("the message is not an order to deliver")]
pub struct NotAnOrder(#[source] serde_json::Error);

/// A queue of orders. The orders of one endpoint are one message group.
#[derive(Clone)]
pub struct DeliveryQueue(Queue);

impl DeliveryQueue {
    /// The queue whose URL is in the environment variable `url_variable`.
    pub fn new(env: &Environment, url_variable: &str) -> Result<Self, BoxError> {
        Queue::new(env, url_variable).map(Self)
    }

    /// Sends an order, to arrive at its due time or after the longest delay of the queue.
    pub async fn send(&self, order: &DeliveryOrder, now: Timestamp) -> Result<(), QueueError> {
        self.0.send_in_group(order.endpoint_id.as_str(), text(order), delay_s(order, now)).await
    }

    /// Sends orders, ten per request, and returns one result per order, in their order.
    pub async fn send_all(&self, orders: &[DeliveryOrder], now: Timestamp) -> Vec<Result<(), QueueError>> {
        match orders {
            // A single order needs no batch.
            [order] => vec![self.send(order, now).await],
            orders => {
                let batches: Vec<_> = orders.chunks(MAX_BATCH).map(|batch| self.send_batch(batch, now)).collect();
                stream::iter(batches).buffered(CONCURRENT_BATCHES).collect::<Vec<_>>().await.concat()
            }
        }
    }

    async fn send_batch(&self, orders: &[DeliveryOrder], now: Timestamp) -> Vec<Result<(), QueueError>> {
        let entry = |(index, order): (usize, &DeliveryOrder)| {
            let entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(text(order));
            let entry = entry.message_group_id(order.endpoint_id.as_str()).delay_seconds(delay_s(order, now));
            entry.build().expect("an id and a body are given")
        };
        let entries = orders.iter().enumerate().map(entry).collect();
        let sending = self.0.client().send_message_batch().queue_url(self.0.url()).set_entries(Some(entries));
        match boxed(sending.send()).await {
            Ok(answer) => (0..orders.len()).map(|index| entry_result(&answer, index)).collect(),
            Err(error) => vec![Err(QueueError::new(without_message(error))); orders.len()],
        }
    }

    /// Sends a request to re-enqueue an endpoint's pending deliveries, without delay.
    pub async fn send_resumption(&self, resumption: &Resumption) -> Result<(), QueueError> {
        let body = serde_json::to_string(resumption).expect("ids convert to JSON");
        self.0.send_in_group(resumption.resume.as_str(), body, 0).await
    }
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
    i32::try_from(queue_delay_s(order.arrives_at(now).utc() - now.utc())).expect("a delay is at most 900 s")
}

/// Parses the body of a message.
pub fn read_message(body: &str) -> Result<Message, NotAnOrder> {
    serde_json::from_str(body).map_err(NotAnOrder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};
    use domain::id::{CoachId, DeliveryId, EndpointId};

    #[test]
    fn an_order_reads_back_and_anything_else_is_refused() {
        let coach = CoachId::parse("coach_1").unwrap();
        let endpoint = EndpointId::parse("we_1").unwrap();
        let delivery = DeliveryId::parse("dlv_1").unwrap();
        let order = DeliveryOrder::first(&coach, &endpoint, &delivery, Timestamp::from_ms(1_790_000_000_123));
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(read_message(&text).unwrap(), Message::Order(order));
        for bad in [
            "",
            "{}",
            "[]",
            "null",
            &text.replace("coach_1", "coach 1"),
            &text.replace("\"attempt\":1", "\"attempt\":-1"),
        ] {
            assert!(read_message(bad).is_err(), "{bad}");
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
        let message = read_message(r#"{"coach_id": "coach_1", "resume": "we_1"}"#).unwrap();
        let (coach_id, resume) = (CoachId::parse("coach_1").unwrap(), EndpointId::parse("we_1").unwrap());
        assert_eq!(message, Message::Resumption(Resumption { coach_id, resume, after: None }));
        assert!(read_message(r#"{"resume": "we_1"}"#).is_err());
    }
}
