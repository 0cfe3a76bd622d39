//! A batch of the FIFO queue: messages of some lanes. Lanes are independent. SQS gives out no further message of a lane
//! while a batch has one, so the messages of lanes that have ended do not wait for a slow receiver of another lane.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::{Duration, Instant};

use aws_lambda_events::event::sqs::SqsMessage;
use futures::future::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use outbound::delivery::read_order;
use runtime::{Metric, Unit, add, error_chain};

use crate::counts::BatchCounts;
use crate::redelivery::receives;
use crate::{App, DeliverError, Outcomes};

const QUEUE_WAIT_MS: Metric = Metric::logged("queue_wait_ms", Unit::Milliseconds);
/// Time after which the messages of lanes that have ended are deleted. Before it, Lambda deletes the batch for less.
const DELETE_AFTER: Duration = Duration::from_millis(500);
/// Time after which a lane begins no further order of its batch. With an attempt that takes all its time, and the calls
/// around it, the function ends within its time limit. A function that dies holds its lanes for no longer than that.
const LANE_TIME: Duration = Duration::from_secs(15);

impl App {
    /// Carries out the orders of a batch.
    pub(crate) async fn carry_out(&self, messages: Vec<SqsMessage>) -> Outcomes {
        let mut lanes = BTreeMap::<String, Vec<SqsMessage>>::new();
        for message in messages {
            let lane = message.attributes.get("MessageGroupId").cloned().unwrap_or_default();
            lanes.entry(lane).or_default().push(message);
        }
        let counts = BatchCounts::default();
        let mut running: FuturesUnordered<_> =
            lanes.into_values().map(|lane| self.carry_out_lane(lane, &counts)).collect();
        let (mut outcomes, mut undeleted, mut is_late) = (Outcomes::new(), Vec::new(), false);
        let mut late = pin!(tokio::time::sleep(DELETE_AFTER));
        loop {
            tokio::select! {
                () = &mut late, if !is_late => is_late = true,
                ended = running.next() => {
                    let Some(ended) = ended else { break };
                    let done = ended.iter().filter(|(_, outcome)| outcome.is_ok());
                    undeleted.extend(done.filter_map(|(message, _)| message.receipt_handle.clone()));
                    outcomes.extend(ended);
                }
            }
            if is_late && !running.is_empty() && !undeleted.is_empty() {
                self.delete(std::mem::take(&mut undeleted)).await;
            }
        }
        drop(running);
        self.write_counts(counts).await;
        outcomes
    }

    /// Deletes messages. Lambda deletes those that are left at the end of the batch.
    async fn delete(&self, receipts: Vec<String>) {
        if let Err(error) = self.queue.delete_all(&receipts).await {
            tracing::warn!(error = error_chain(&error), "could not delete messages early");
        }
    }

    async fn carry_out_lane(&self, messages: Vec<SqsMessage>, counts: &BatchCounts) -> Outcomes {
        let (begun, mut outcomes) = (Instant::now(), Outcomes::new());
        for message in messages {
            let outcome = if begun.elapsed() < LANE_TIME {
                // A panic, a fault of ours, fails this message only.
                let carried_out = AssertUnwindSafe(self.carry_out_one(&message, counts)).catch_unwind().await;
                carried_out.unwrap_or(Err(DeliverError::Panicked))
            } else {
                Err(DeliverError::NotBegun)
            };
            outcomes.push((message, outcome));
        }
        self.redeliver_lane(&outcomes).await;
        outcomes
    }

    async fn carry_out_one(&self, message: &SqsMessage, counts: &BatchCounts) -> Result<(), DeliverError> {
        let order = read_order(message.body.as_deref().unwrap_or_default())?;
        let number = |name: &str| message.attributes.get(name).and_then(|text| text.parse::<i64>().ok());
        // Only the first order of a chain counts: the others have waited on purpose.
        if let (1, 0, Some(sent_at_ms)) = (order.attempt, order.hop, number("SentTimestamp")) {
            add(QUEUE_WAIT_MS, (self.now().ms() - sent_at_ms).max(0) as f64);
        }
        self.attempt(&order, receives(message) > 1, counts).await
    }
}
