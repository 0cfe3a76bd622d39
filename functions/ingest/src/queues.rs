//! Queues for facts that are not done: the feed queue once more, or the dead letters.
//!
//! A fact that the bus itself cannot bring to the queue becomes a dead letter unchanged, scores included: losing the
//! fact would be worse.

use domain::fact::{is_known, without_scores};
use domain::id::FactId;
use domain::time::Timestamp;
use facts::{Envelope, FeedQueue};
use outbound::queue::Queue;
use runtime::{BoxError, Environment, Metric, Unit, add};
use serde_json::json;

/// Facts that went to the dead letters.
const FACTS_SET_ASIDE: Metric = Metric::new("facts_set_aside", Unit::Count);

/// The feed queue and its dead letters.
pub(crate) struct Queues {
    pub(crate) feed: FeedQueue,
    dead_letters: Queue,
}

impl Queues {
    pub(crate) fn new(env: &Environment) -> Result<Self, BoxError> {
        Ok(Self { feed: FeedQueue::new(env)?, dead_letters: Queue::new(env, "FEED_DEAD_LETTERS_URL")? })
    }

    /// Puts a fact among the dead letters, with the reason.
    pub(crate) async fn set_aside(&self, envelope: &Envelope, reason: &str, now: Timestamp) -> Result<(), BoxError> {
        // Text that is not a valid id, or not a known name, may hold anything, so it is not logged.
        let fact_id = envelope.detail.get("id").and_then(|id| FactId::parse(id.as_str()?).ok());
        let fact_id = fact_id.as_ref().map_or("", FactId::as_str);
        let detail_type = if is_known(&envelope.detail_type) { envelope.detail_type.as_str() } else { "" };
        let body = json!({
            "detail-type": envelope.detail_type,
            "detail": without_scores(&envelope.detail),
            "reason": reason,
            "set_aside_at": now,
        });
        self.dead_letters.send(body.to_string(), 0).await?;
        tracing::warn!(fact_id, detail_type, reason, "a fact was set aside");
        add(FACTS_SET_ASIDE, 1.0);
        Ok(())
    }
}
