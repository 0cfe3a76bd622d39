//! `feed`: the outbox and the queues, from which one sees where work waits.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::QueueAttributeName::{
    self, ApproximateNumberOfMessages, ApproximateNumberOfMessagesDelayed, ApproximateNumberOfMessagesNotVisible,
};
use domain::time::Timestamp;
use futures::future;
use serde::Serialize;
use store::operating::outbox::UnsentEntries;

use crate::connection::{Operator, Queue};
use crate::failure::Failure;
use crate::output::Answer;

#[derive(Serialize)]
struct Feed {
    /// Entries of the outbox, those included that are held until a later time.
    unsent: u64,
    /// The time at which the oldest entry was to be sent.
    oldest_unsent_at: Option<Timestamp>,
    /// Seconds since then. 0: nothing is late.
    lag_s: i64,
    queues: BTreeMap<String, Depth>,
}

/// The messages of a queue by their state. SQS counts approximately: a change shows within about a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Depth {
    pub(crate) visible: usize,
    /// Received, and neither deleted nor visible again.
    pub(crate) in_flight: usize,
    pub(crate) delayed: usize,
}

impl Depth {
    pub(crate) fn total(self) -> usize {
        self.visible + self.in_flight + self.delayed
    }
}

/// Shows the outbox and all queues of the stack.
pub(crate) async fn feed(operator: &Operator) -> Result<Answer, Failure> {
    let (outbox, now) = (UnsentEntries::new(&operator.env, &operator.db)?, operator.now());
    let depths = operator.queues().map(|queue| async move {
        let depth = depth(operator, &queue).await?;
        Ok((queue.name, depth))
    });
    let unsent = async { Ok::<_, Failure>(outbox.unsent(now).await?) };
    let (unsent, depths) = future::try_join(unsent, future::try_join_all(depths)).await?;
    Answer::of(&Feed {
        unsent: unsent.entries,
        oldest_unsent_at: unsent.oldest_due_at,
        lag_s: unsent.oldest_due_at.map_or(0, |since| (now.utc() - since.utc()).num_seconds()),
        queues: depths.into_iter().collect(),
    })
}

/// Reads the numbers of a queue's messages.
pub(crate) async fn depth(operator: &Operator, queue: &Queue) -> Result<Depth, Failure> {
    let wanted =
        [ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible, ApproximateNumberOfMessagesDelayed];
    let call = operator.sqs.get_queue_attributes().queue_url(&queue.url).set_attribute_names(Some(wanted.to_vec()));
    let answer = call.send().await.map_err(|error| Failure::of_call("sqs:GetQueueAttributes", error))?;
    let attributes = answer.attributes.unwrap_or_default();
    let number =
        |name: &QueueAttributeName| attributes.get(name).and_then(|number| number.parse().ok()).unwrap_or_default();
    Ok(Depth {
        visible: number(&ApproximateNumberOfMessages),
        in_flight: number(&ApproximateNumberOfMessagesNotVisible),
        delayed: number(&ApproximateNumberOfMessagesDelayed),
    })
}
