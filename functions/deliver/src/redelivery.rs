//! The wait of a message that failed. SQS gives out a failed message after the visibility time-out, and no message of
//! its lane before. A fault of the store ends sooner as a rule, so the message becomes visible after a second, and
//! after twice as long each time that it fails again.
//!
//! The message stays the same: SQS counts how often it was received, which tells a repeated order, and ends in a dead
//! letter. If SQS does not take the wait, the visibility time-out remains.

use aws_lambda_events::event::sqs::SqsMessage;
use domain::retry::redelivery_delay_s;
use outbound::queue::{QueueError, Redelivery};
use runtime::error_chain;

use crate::{App, DeliverError};

impl App {
    /// Makes the failed messages of a lane visible again.
    pub(crate) async fn redeliver_lane(&self, outcomes: &[(SqsMessage, Result<(), DeliverError>)]) {
        let failed = failed(outcomes);
        if !failed.is_empty() {
            note(self.queue.redeliver(&failed).await);
        }
    }

    /// Makes the failed messages of the queue where orders wait visible again.
    pub(crate) async fn redeliver_waiting(&self, outcomes: &[(SqsMessage, Result<(), DeliverError>)]) {
        let failed = failed(outcomes);
        if !failed.is_empty() {
            note(self.retries.redeliver(&failed).await);
        }
    }
}

fn failed(outcomes: &[(SqsMessage, Result<(), DeliverError>)]) -> Vec<Redelivery> {
    let redelivery = |(message, outcome): &(SqsMessage, Result<(), DeliverError>)| {
        let delay_s = match outcome {
            Ok(()) => return None,
            Err(DeliverError::NotBegun) => 0,
            Err(_) => redelivery_delay_s(receives(message)),
        };
        Some(Redelivery { receipt: message.receipt_handle.clone()?, delay_s })
    };
    outcomes.iter().filter_map(redelivery).collect()
}

/// The number of times that a message was received.
pub(crate) fn receives(message: &SqsMessage) -> u32 {
    message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok()).unwrap_or(1)
}

fn note(redelivered: Result<(), QueueError>) {
    if let Err(error) = redelivered {
        tracing::warn!(error = error_chain(&error), "failed messages wait for the visibility time-out");
    }
}
