//! A dead-letter queue: receiving messages, holding them, and releasing, deleting or sending them again.
//!
//! A received message is held: SQS hides it from all readers until it is released, or for [`HOLD_S`]. In the FIFO queue
//! of orders, a held message hides the others of its message group as well, and one call receives at most ten of a
//! group. So at most ten dead orders of a lane can be listed. Further ones come up once those are deleted.

use aws_sdk_sqs::types::MessageSystemAttributeName::{self, ApproximateReceiveCount, MessageGroupId, SentTimestamp};
use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, Message as SqsMessage};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt};
use runtime::random_bytes;

use super::letter::{Message, Shown};
use crate::connection::{Operator, Queue};
use crate::failure::Failure;
use crate::feed::{Depth, depth};
use crate::options::DeadQueue;
use crate::output::say;

/// The time for which a received message is hidden. A listing of 10,000 messages takes less.
const HOLD_S: i32 = 120;
/// The time for which a call waits for messages. A call that does not wait asks some of SQS's servers only, and finds
/// nothing although messages are there.
const WAIT_S: i32 = 1;
/// Messages of one call.
const MAX_BATCH: usize = 10;
/// Calls at once.
pub(super) const CONCURRENT_CALLS: usize = 4;
/// The attribute by which EventBridge says why.
const ERROR_MESSAGE: &str = "ERROR_MESSAGE";

/// A queue of dead letters, and the queue that they came from.
pub(super) struct DeadLetterQueue<'a> {
    operator: &'a Operator,
    pub(super) kind: DeadQueue,
    dead_letters: Queue,
    source: Queue,
}

/// A dead letter that is held.
pub(super) struct Held {
    pub(super) shown: Shown,
    pub(super) receipt: String,
    body: String,
    group: Option<String>,
}
domain::discreet! { Held }

impl<'a> DeadLetterQueue<'a> {
    pub(super) fn open(operator: &'a Operator, kind: DeadQueue) -> Result<Self, Failure> {
        let (dead_letters, source) = match kind {
            DeadQueue::Facts => ("ApplicationFeedDeadLetters", "ApplicationFeedQueue"),
            DeadQueue::Orders => ("DeliveriesDeadLetters", "DeliveriesQueue"),
        };
        Ok(Self { operator, kind, dead_letters: operator.queue(dead_letters)?, source: operator.queue(source)? })
    }

    /// Receives up to ten messages, which are held from now on.
    pub(super) async fn receive(&self) -> Result<Vec<Held>, Failure> {
        let wanted = [SentTimestamp, ApproximateReceiveCount, MessageGroupId];
        let call = self.operator.sqs.receive_message().queue_url(&self.dead_letters.url);
        let call = call.max_number_of_messages(MAX_BATCH as i32).visibility_timeout(HOLD_S).wait_time_seconds(WAIT_S);
        let call = call.set_message_system_attribute_names(Some(wanted.to_vec()));
        let answer = call.message_attribute_names(ERROR_MESSAGE).send().await;
        let messages = answer.map_err(|error| Failure::of_call("sqs:ReceiveMessage", error))?.messages;
        Ok(messages.unwrap_or_default().into_iter().filter_map(|message| held(self.kind, message)).collect())
    }

    /// The numbers of messages. Those that a reader holds are in flight.
    pub(super) async fn depth(&self) -> Result<Depth, Failure> {
        depth(self.operator, &self.dead_letters).await
    }

    /// Makes held messages visible again at once. One that cannot be released becomes visible by itself.
    pub(super) async fn release(&self, receipts: impl IntoIterator<Item = String>) {
        let receipts: Vec<String> = receipts.into_iter().collect();
        let batches: Vec<_> = receipts.chunks(MAX_BATCH).map(|batch| self.release_batch(batch)).collect();
        let mut released = stream::iter(batches).buffer_unordered(CONCURRENT_CALLS);
        let mut failure = None;
        while let Some(outcome) = released.next().await {
            failure = failure.or(outcome.err());
        }
        if let Some(failure) = failure {
            say(&format!("some dead letters are out of sight for {HOLD_S} s: {failure}"));
        }
    }

    async fn release_batch(&self, receipts: &[String]) -> Result<(), Failure> {
        let entries = receipts.iter().enumerate().map(|(index, receipt)| {
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(index.to_string());
            entry.receipt_handle(receipt).visibility_timeout(0).build().expect("an id and a receipt are given")
        });
        let call = self.operator.sqs.change_message_visibility_batch().queue_url(&self.dead_letters.url);
        // An entry that SQS refuses is not held any more.
        let outcome = call.set_entries(Some(entries.collect())).send().await.map(drop);
        outcome.map_err(|error| Failure::of_call("sqs:ChangeMessageVisibility", error))
    }

    /// Sends a message to the queue that it came from, as it is: its consumer reads it as it read the first one.
    ///
    /// An order goes to its message group. It has a new deduplication id each time, since SQS drops a message whose id
    /// it has seen within five minutes, even if the first one is gone. A second order of one attempt does nothing
    /// ([`domain::delivery::order`]).
    pub(super) async fn send_again(&self, held: &Held) -> Result<(), Failure> {
        let call = self.operator.sqs.send_message().queue_url(&self.source.url).message_body(&held.body);
        let call = match self.kind {
            DeadQueue::Facts => call,
            DeadQueue::Orders => {
                let group = held.group.as_deref().unwrap_or(&held.shown.letter.id);
                let draw: String = random_bytes::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
                call.message_group_id(group).message_deduplication_id(format!("redriven/{draw}"))
            }
        };
        call.send().await.map(drop).map_err(|error| Failure::of_call("sqs:SendMessage", error))
    }

    /// Deletes a message.
    pub(super) async fn delete(&self, held: &Held) -> Result<(), Failure> {
        let call = self.operator.sqs.delete_message().queue_url(&self.dead_letters.url).receipt_handle(&held.receipt);
        call.send().await.map(drop).map_err(|error| Failure::of_call("sqs:DeleteMessage", error))
    }
}

fn held(kind: DeadQueue, message: SqsMessage) -> Option<Held> {
    let attribute = |name: &MessageSystemAttributeName| message.attributes.as_ref()?.get(name).cloned();
    let attributes = message.message_attributes.as_ref();
    let (id, receipt, body) = (message.message_id?, message.receipt_handle?, message.body.unwrap_or_default());
    let read = Message {
        id: &id,
        body: &body,
        sent_at: attribute(&SentTimestamp).and_then(|ms| ms.parse().ok()).map(Timestamp::from_ms),
        receives: attribute(&ApproximateReceiveCount).and_then(|count| count.parse().ok()).unwrap_or_default(),
        error_message: attributes.and_then(|named| named.get(ERROR_MESSAGE)?.string_value()),
    };
    Some(Held { shown: Shown::read(kind, &read), receipt, group: attribute(&MessageGroupId), body })
}
