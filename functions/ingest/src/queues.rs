//! Queues for facts that are not done: another round through the feed queue, for facts that wait and for further
//! passes, or the dead letters.
//!
//! A fact that the bus itself cannot bring to the queue becomes a dead letter unchanged, scores included: losing the
//! fact would be worse.

use domain::fact::{is_known, without_scores};
use domain::id::FactId;
use domain::time::Timestamp;
use outbound::queue::Queue;
use runtime::{BoxError, Environment, Metric, Unit, add};
use serde_json::json;

use crate::envelope::Envelope;

/// Waits between a fact's rounds, in seconds; the last one repeats.
const ROUND_DELAYS_S: [i32; 4] = [5, 10, 20, 60];

/// Delays before the further passes of an erasure or a merge. The first finds attempts and claims that were under way,
/// and merges that arrived late; the second what the relay's schedule has sent.
const PASS_DELAYS_S: [i32; 2] = [120, 900];

/// Facts that went to the dead letters.
const FACTS_SET_ASIDE: Metric = Metric::new("facts_set_aside", Unit::Count);

/// The feed queue and its dead letters.
pub(crate) struct Queues {
    feed: Queue,
    dead_letters: Queue,
}

impl Queues {
    pub(crate) fn new(env: &Environment) -> Result<Self, BoxError> {
        Ok(Self { feed: Queue::new(env, "FEED_QUEUE_URL")?, dead_letters: Queue::new(env, "FEED_DEAD_LETTERS_URL")? })
    }

    /// Sends a fact round again, later each time.
    pub(crate) async fn send_round(&self, envelope: &Envelope, first_seen: Timestamp) -> Result<(), BoxError> {
        let index = usize::try_from(envelope.rounds)?.min(ROUND_DELAYS_S.len() - 1);
        Ok(self.feed.send(envelope.next_round(first_seen), ROUND_DELAYS_S[index]).await?)
    }

    /// Sends the rest of a fact, without delay.
    pub(crate) async fn send_rest(&self, envelope: &Envelope, after: Option<String>) -> Result<(), BoxError> {
        Ok(self.feed.send(envelope.rest(after), 0).await?)
    }

    /// Sends a fact round for its next pass, after work that was under way has ended. The number of passes is limited.
    pub(crate) async fn send_next_pass(&self, envelope: &Envelope) -> Result<(), BoxError> {
        match PASS_DELAYS_S.get(usize::try_from(envelope.passes)?) {
            Some(delay_s) => Ok(self.feed.send(envelope.next_pass(), *delay_s).await?),
            None => Ok(()),
        }
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
