//! Stores the application's facts, one per message of the feed queue.
//!
//! An unreadable fact is set aside at once, with the reason and with known fields only. A fact that refers to an
//! unknown record goes round again for a while. Neither holds up other facts. Each fact of a batch has a deadline of
//! its own (module `batch`).

mod app;
mod batch;
mod queues;
mod retry_limits;

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use domain::fact::Fact;
use domain::fields::Invalid;
use domain::id::CoachId;
use domain::time::Timestamp;
use facts::{Envelope, Next, Outcome, coach_of};
use futures::future::{BoxFuture, FutureExt};
use lambda_runtime::LambdaEvent;
use runtime::{BoxError, Metric, Unit, add, error_chain, note_each};

pub use app::App;

/// Time of a fact in the queue. A fact that goes round again is delayed on purpose and not measured.
const QUEUE_WAIT_MS: Metric = Metric::logged("queue_wait_ms", Unit::Milliseconds);
/// Messages that are redelivered after a failure. Neither Lambda's errors nor the age of the queue show them.
const MESSAGES_FAILED: Metric = Metric::new("messages_failed", Unit::Count);

impl App {
    /// Stores the facts of a batch, in the order in which they came.
    ///
    /// The future is boxed, so that this crate is compiled once, and not again in each program that runs it.
    pub fn handle(&self, event: LambdaEvent<SqsEvent>) -> BoxFuture<'_, Result<SqsBatchResponse, BoxError>> {
        let LambdaEvent { payload, context } = event;
        async move { self.observer.event(&context.request_id, self.take_all(payload)).await }.boxed()
    }

    async fn take_all(&self, event: SqsEvent) -> Result<SqsBatchResponse, BoxError> {
        let incoming: Vec<Incoming> = event.records.into_iter().map(Incoming::new).collect();
        let mut response = SqsBatchResponse::default();
        for (index, taken) in batch::take_each(&incoming, Incoming::client, |incoming| self.take(incoming)).await {
            let Err(error) = taken else { continue };
            let message_id = incoming[index].message.message_id.clone().unwrap_or_default();
            tracing::error!(
                message_id,
                error = error_chain(&*error),
                "could not store a fact; the queue redelivers it"
            );
            add(MESSAGES_FAILED, 1.0);
            response.add_failure(message_id);
        }
        Ok(response)
    }

    async fn take(&self, incoming: &Incoming) -> Result<(), BoxError> {
        let receives = receives(&incoming.message);
        if retry_limits::is_over(receives) {
            return self.give_up(&incoming.envelope).await;
        }
        // A panic, a fault of ours, fails this fact only.
        let stored = AssertUnwindSafe(self.store(incoming)).catch_unwind().await;
        match stored.unwrap_or_else(|_| Err("the function panicked while storing a fact".into())) {
            Err(error) if retry_limits::is_final(&*error, receives) => {
                tracing::error!(error = error_chain(&*error), receives, "a fact cannot be stored");
                self.give_up(&incoming.envelope).await
            }
            outcome => outcome,
        }
    }

    async fn give_up(&self, envelope: &Envelope) -> Result<(), BoxError> {
        self.queues.set_aside(envelope, "it could not be stored", Timestamp::new(self.clock.now())).await
    }

    async fn store(&self, Incoming { message, envelope, fact }: &Incoming) -> Result<(), BoxError> {
        let now = Timestamp::new(self.clock.now());
        if (envelope.rounds, envelope.passes) == (0, 0)
            && let Some(sent_at) = sent_at(message)
        {
            add(QUEUE_WAIT_MS, (now.ms() - sent_at.ms()).max(0) as f64);
        }
        let fact = match fact {
            Ok(fact) => fact,
            Err(invalid) => return self.queues.set_aside(envelope, &invalid.message, now).await,
        };
        note_each("event_ids", fact.id.as_str());
        let coach_id = coach_of(&fact.body).map(CoachId::as_str);
        if let Some(coach_id) = coach_id {
            note_each("coach_ids", coach_id);
        }
        let (fact_id, detail_type) = (fact.id.as_str(), envelope.detail_type.as_str());
        let since = envelope.first_seen.or(sent_at(message)).unwrap_or(now);
        let began = Instant::now();
        let outcome = self.facts.store(fact, envelope.progress(), now).await?;
        let duration_ms = began.elapsed().as_millis() as u64;
        let unknown = |field: &str| {
            let id = envelope.detail.get(field).and_then(|id| id.as_str()).unwrap_or_default();
            format!("{field} {id} has not been seen")
        };
        let (words, reason) = match &outcome {
            Outcome::Stored => ("a fact was stored", None),
            Outcome::Unchanged => ("a fact changed nothing", None),
            Outcome::Continues(Next::Rest(_)) => ("a fact was stored in part", None),
            Outcome::Continues(Next::Pass) => ("a fact was stored and is repeated later", None),
            Outcome::Unknown(field) => ("a fact waits", Some(unknown(field))),
            Outcome::Waits(reason) => ("a fact waits", Some((*reason).to_owned())),
            Outcome::Refused(reason) => ("a fact was refused", Some((*reason).to_owned())),
        };
        tracing::debug!(fact_id, coach_id, detail_type, reason, duration_ms, "{words}");
        match outcome {
            Outcome::Stored | Outcome::Unchanged => Ok(()),
            Outcome::Continues(Next::Rest(after)) => self.queues.feed.send_rest(envelope, after, now).await,
            Outcome::Continues(Next::Pass) => self.queues.feed.send_next_pass(envelope, now).await,
            Outcome::Refused(reason) => self.queues.set_aside(envelope, reason, now).await,
            Outcome::Unknown(_) | Outcome::Waits(_) if retry_limits::still_waits(since, now) => {
                // Of several copies of a message only one continues: otherwise copies would double with each round. A
                // redelivered message always continues: the function that had it may have died before sending.
                let is_ours = self.facts.begin_round(&fact.id, since, envelope.rounds, now).await?;
                if is_ours || receives(message) > 1 {
                    self.queues.feed.send_round(envelope, since).await
                } else {
                    Ok(())
                }
            }
            Outcome::Unknown(_) | Outcome::Waits(_) => {
                self.queues.set_aside(envelope, &reason.unwrap_or_default(), now).await
            }
        }
    }
}

/// A message, and the fact in it.
struct Incoming {
    message: SqsMessage,
    envelope: Envelope,
    fact: Result<Fact, Invalid>,
}

impl Incoming {
    fn new(message: SqsMessage) -> Self {
        let (envelope, fact) = Envelope::parse(message.body.as_deref().unwrap_or_default());
        Self { message, envelope, fact }
    }

    /// The client that the fact is about.
    fn client(&self) -> Option<&str> {
        self.envelope.detail.get("client_id")?.as_str()
    }
}

/// The number of times that the queue has delivered this message.
fn receives(message: &SqsMessage) -> u32 {
    let count = message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    count.unwrap_or(1)
}

fn sent_at(message: &SqsMessage) -> Option<Timestamp> {
    message.attributes.get("SentTimestamp").and_then(|ms| ms.parse().ok()).map(Timestamp::from_ms)
}
