//! The queue that brings the facts: a fact that is not done goes through it once more.

use domain::time::Timestamp;
use outbound::queue::Queue;
use runtime::{BoxError, Environment};

use crate::envelope::Envelope;

/// Waits between a fact's rounds, in seconds; the last one repeats.
const ROUND_DELAYS_S: [i32; 4] = [5, 10, 20, 60];

/// Delays before the further passes of an erasure or a merge. The first finds attempts and claims that were under way,
/// and merges that arrived late; the second what the relay's schedule has sent.
const PASS_DELAYS_S: [i32; 2] = [120, 900];

/// The feed queue.
#[derive(Clone)]
pub struct FeedQueue(Queue);

impl FeedQueue {
    /// The queue that `FEED_QUEUE_URL` names.
    pub fn new(env: &Environment) -> Result<Self, BoxError> {
        Ok(Self(Queue::new(env, "FEED_QUEUE_URL")?))
    }

    /// Sends a fact round again, later each time.
    pub async fn send_round(&self, envelope: &Envelope, first_seen: Timestamp) -> Result<(), BoxError> {
        let index = usize::try_from(envelope.rounds)?.min(ROUND_DELAYS_S.len() - 1);
        Ok(self.0.send(envelope.next_round(first_seen), ROUND_DELAYS_S[index]).await?)
    }

    /// Sends the rest of a fact, without delay.
    pub async fn send_rest(&self, envelope: &Envelope, after: Option<String>, now: Timestamp) -> Result<(), BoxError> {
        Ok(self.0.send(envelope.rest(after, now), 0).await?)
    }

    /// Sends a fact round for its next pass, after work that was under way has ended. The number of passes is limited.
    pub async fn send_next_pass(&self, envelope: &Envelope, now: Timestamp) -> Result<(), BoxError> {
        match PASS_DELAYS_S.get(usize::try_from(envelope.passes)?) {
            Some(delay_s) => Ok(self.0.send(envelope.next_pass(now), *delay_s).await?),
            None => Ok(()),
        }
    }
}
