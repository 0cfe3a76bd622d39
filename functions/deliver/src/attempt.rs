//! One attempt: sign, send, record, and order the next.

use std::pin::pin;
use std::time::Duration;

use chrono::TimeDelta;
use domain::delivery::{Attempt, AttemptResult, DELETED, DeliveryOrder, Next, after_attempt, after_failure};
use domain::endpoint::{EndpointStatus, Pace, SignedEndpoint};
use domain::signature::signature_header;
use domain::time::Timestamp;
use runtime::{Line, Metric, Unit, random_bytes, write_line};
use store::StoreError;
use store::delivery::{Recorded, Taken};
use store::endpoint::Noted;
use webhook::{Answer, Webhook};

use crate::batch::Writing;
use crate::{App, DeliverError};

/// Attempts, by what came of them.
const DELIVERIES: Metric = Metric::new("deliveries", Unit::Count).by(&[&["outcome"]]);
/// How long the receiver took.
const ATTEMPT_MS: Metric = Metric::new("attempt_ms", Unit::Milliseconds);
/// From the event's making to the receiver's 2xx.
const DELIVERY_LATENCY_MS: Metric = Metric::new("delivery_latency_ms", Unit::Milliseconds);

/// An endpoint that has not answered by then hangs, unless it is known to take its time.
const SLOW_AFTER: Duration = Duration::from_secs(2);
/// How long it counts as such.
const HANGING_FOR: TimeDelta = TimeDelta::seconds(60);
/// How long one that has answered after that counts as one that takes its time.
const SLOW_FOR: TimeDelta = TimeDelta::minutes(10);

impl App {
    /// Makes the attempt, or ends the delivery where its endpoint takes none any more.
    pub(crate) async fn attempt(
        &self,
        taken: &Taken,
        endpoint: Option<SignedEndpoint>,
        writing: Writing<'_>,
    ) -> Result<(), DeliverError> {
        match sendable(endpoint) {
            Ok(endpoint) => {
                let (line, retry_after) = self.send(taken, &endpoint).await;
                let jitter = u16::from_be_bytes(random_bytes());
                let now = self.now();
                let made = taken.order.attempt;
                let next = after_attempt(&line.result, retry_after.as_deref(), made, now, jitter);
                // What ends the endpoint is written before the attempt: after a crash between the two, the attempt is made again and finds it.
                let noted = self.note_failure(taken, &endpoint, next, now).await;
                // The coach has given it another URL meanwhile: it was the former receiver that said 410.
                let has_moved = matches!(noted, Ok(Noted::Moved));
                let next = if has_moved && next == Next::Gone { after_failure(made, now, jitter) } else { next };
                tell(taken, &line, next, now);
                let Noted::Off(off) = noted? else {
                    self.record(taken, &[line], next, writing).await?;
                    match next {
                        // After the record: where it is not noted the order comes again, and notes it without sending anything.
                        Next::Delivered => {
                            self.endpoints.note_success(&taken.order.coach_id, &endpoint, now).await?;
                        }
                        Next::RetryAt(at) => {
                            let order = &taken.order;
                            self.end_with_endpoint(&order.for_attempt(order.attempt + 1, at)).await;
                        }
                        Next::Exhausted | Next::Gone => {}
                    }
                    return Ok(());
                };
                let reason = off.not_sent();
                match next {
                    Next::RetryAt(_) | Next::Exhausted => {
                        // The attempt that it was judged by says why: all others of the endpoint may have ended.
                        let lines = [line, Attempt::unsent(now, &reason)];
                        self.record(taken, &lines, Next::Exhausted, writing).await?;
                    }
                    ended @ (Next::Delivered | Next::Gone) => self.record(taken, &[line], ended, writing).await?,
                }
                Ok(self.deliveries.end_waiting(&off.id, &reason, now).await?)
            }
            Err(reason) => {
                let order = &taken.order;
                tracing::info!(
                    coach_id = %order.coach_id,
                    endpoint_id = %order.endpoint_id,
                    delivery_id = %order.delivery_id,
                    event_id = %taken.event_id,
                    reason,
                    "not sent"
                );
                self.record(taken, &[Attempt::unsent(self.now(), &reason)], Next::Exhausted, writing).await
            }
        }
    }

    /// Who switched the endpoint off, or deleted it, has ended what waited for it, but for attempts that were under way. After the record: an
    /// endpoint that goes off later finds the delivery waiting for this next one.
    pub(crate) async fn end_with_endpoint(&self, next: &DeliveryOrder) {
        let now = self.now();
        let ended = async {
            match sendable(self.endpoints.get(&next.coach_id, &next.endpoint_id, now).await?) {
                Ok(_) => Ok(()),
                Err(reason) => self.deliveries.end_before(next, &reason, now).await,
            }
        };
        if let Err(error) = ended.await {
            tracing::warn!(delivery_id = %next.delivery_id, %error, "a delivery may end only when its next attempt is due");
        }
    }

    /// Notes what a failed attempt says of the endpoint. A failure that cannot be noted is one less to judge by; a receiver that is gone has to
    /// be known to be.
    async fn note_failure(
        &self,
        taken: &Taken,
        endpoint: &SignedEndpoint,
        next: Next,
        now: Timestamp,
    ) -> Result<Noted, DeliverError> {
        let coach = &taken.order.coach_id;
        match next {
            Next::Delivered => Ok(Noted::On),
            Next::Gone => Ok(self.endpoints.note_gone(coach, endpoint, &self.outbox, now).await?),
            Next::RetryAt(_) | Next::Exhausted => {
                let noted = self.endpoints.note_failure(coach, endpoint, &taken.event_id, &self.outbox, now).await;
                Ok(noted.unwrap_or_else(|error| {
                    let (coach_id, endpoint_id) = (coach.as_str(), taken.order.endpoint_id.as_str());
                    tracing::warn!(coach_id, endpoint_id, %error, "a failure of an endpoint is not noted");
                    Noted::On
                }))
            }
        }
    }

    async fn send(&self, taken: &Taken, signed: &SignedEndpoint) -> (Attempt, Option<String>) {
        let at = self.now();
        let webhook = Webhook {
            url: &signed.endpoint.url,
            event_id: &taken.event_id,
            event_type: &taken.event_type,
            unix_s: at.unix_s(),
            signature: signature_header(&signed.secrets, &taken.event_id, at.unix_s(), &taken.body),
            body: taken.body.clone(),
        };
        let answer = self.noting_pace(taken, signed, self.webhooks.post(webhook)).await;
        let line =
            Attempt { at, result: answer.result, duration_ms: answer.duration_ms, response_excerpt: answer.excerpt };
        (line, answer.retry_after)
    }

    /// Waits for an answer, and says of an endpoint that lets others wait what it does: hang, as long as nobody knows better, or answer late.
    async fn noting_pace(
        &self,
        taken: &Taken,
        signed: &SignedEndpoint,
        answer: impl Future<Output = Answer>,
    ) -> Answer {
        let mut answer = pin!(answer);
        if let Ok(answer) = tokio::time::timeout(SLOW_AFTER, &mut answer).await {
            return answer;
        }
        let is_known = signed.pace(self.now()) == Pace::Slow;
        // Beside the wait: the request goes on meanwhile.
        let mark = async {
            if !is_known {
                self.mark_hanging(taken, signed).await;
            }
        };
        let (answer, ()) = futures::future::join(answer, mark).await;
        match &answer.result {
            AttemptResult::StatusCode(_) => self.mark_slow(taken, signed).await,
            AttemptResult::Error(_) if is_known => self.mark_hanging(taken, signed).await,
            AttemptResult::Error(_) => {}
        }
        answer
    }

    async fn mark_hanging(&self, taken: &Taken, signed: &SignedEndpoint) {
        let now = self.now();
        if signed.hanging_until.is_none_or(|until| until < now + HANGING_FOR / 2) {
            let (coach, id) = (&taken.order.coach_id, &taken.order.endpoint_id);
            let marked = self.endpoints.mark_hanging(coach, id, now + HANGING_FOR).await;
            note_unmarked(taken, marked);
        }
    }

    async fn mark_slow(&self, taken: &Taken, signed: &SignedEndpoint) {
        let now = self.now();
        if signed.pace(now) != Pace::Slow || signed.slow_until.is_none_or(|until| until < now + SLOW_FOR / 2) {
            let (coach, id) = (&taken.order.coach_id, &taken.order.endpoint_id);
            let marked = self.endpoints.mark_slow(coach, id, now + SLOW_FOR).await;
            note_unmarked(taken, marked);
        }
    }

    /// Records the attempt and orders the next. Where it is the last in its slot, the slot goes back beside that.
    async fn record(
        &self,
        taken: &Taken,
        lines: &[Attempt],
        next: Next,
        Writing { together, place, occupied }: Writing<'_>,
    ) -> Result<(), DeliverError> {
        let entry = self.deliveries.entry(taken, lines, next, self.now());
        let last = if occupied.leave() { occupied.end() } else { None };
        // Its place is taken before the line's is given up: the two wait for each other.
        let left = last.map(|slot| (slot, together.place()));
        let record = async {
            let tried = self.write(self.deliveries.recording(&entry), place, together).await;
            self.order_next(&taken.order, self.deliveries.recorded(&entry, tried).await?, next).await
        };
        let release = async {
            if let Some((slot, place)) = left {
                self.release(slot, place, together).await;
            }
        };
        let (recorded, ()) = futures::future::join(record, release).await;
        recorded
    }

    /// After the record: an order that was sent and an attempt that was forgotten would be two chains.
    async fn order_next(&self, order: &DeliveryOrder, recorded: Recorded, next: Next) -> Result<(), DeliverError> {
        match (recorded, next) {
            (Recorded::Lost, _) => {
                tracing::warn!(
                    coach_id = %order.coach_id,
                    endpoint_id = %order.endpoint_id,
                    delivery_id = %order.delivery_id,
                    attempt = order.attempt,
                    "the attempt took longer than its lease and is not recorded"
                );
                Ok(())
            }
            (Recorded::Done, Next::RetryAt(due_at)) => {
                let order = order.for_attempt(order.attempt + 1, due_at);
                Ok(self.retries.send(&order, self.now()).await?)
            }
            (Recorded::Erased, _) | (Recorded::Done, Next::Delivered | Next::Exhausted | Next::Gone) => Ok(()),
        }
    }
}

fn note_unmarked(taken: &Taken, marked: Result<(), StoreError>) {
    if let Err(error) = marked {
        let (coach_id, endpoint_id) = (taken.order.coach_id.as_str(), taken.order.endpoint_id.as_str());
        tracing::warn!(coach_id, endpoint_id, %error, "an endpoint that is slow is not known to be");
    }
}

/// Writes the attempt's line: what came of it, and how long it all took. A receiver is known by its id; its address may hold a secret.
fn tell(taken: &Taken, attempt: &Attempt, next: Next, now: Timestamp) {
    let order = &taken.order;
    let mut line = Line::default();
    line.set("outcome", outcome(next));
    line.set("coach_id", order.coach_id.as_str());
    line.set("endpoint_id", order.endpoint_id.as_str());
    line.set("delivery_id", order.delivery_id.as_str());
    line.set("event_id", taken.event_id.as_str());
    line.set("attempt", order.attempt.to_string());
    line.set(
        "result",
        match &attempt.result {
            AttemptResult::StatusCode(code) => code.to_string(),
            AttemptResult::Error(reason) => reason.clone(),
        },
    );
    line.add(DELIVERIES, 1.0);
    line.add(ATTEMPT_MS, f64::from(attempt.duration_ms));
    // What a coach asks for again is as late as the coach.
    if let (Next::Delivered, 1, Some(made_at)) = (next, order.chain, taken.made_at) {
        line.add(DELIVERY_LATENCY_MS, (now.ms() - made_at.ms()).max(0) as f64);
    }
    write_line(&line);
}

fn outcome(next: Next) -> &'static str {
    match next {
        Next::Delivered => "delivered",
        Next::RetryAt(_) => "retrying",
        Next::Exhausted => "failed",
        Next::Gone => "gone",
    }
}

/// The endpoint, if it takes deliveries; else why it does not, for the log.
fn sendable(endpoint: Option<SignedEndpoint>) -> Result<SignedEndpoint, String> {
    let endpoint = endpoint.ok_or(DELETED)?;
    match endpoint.endpoint.status {
        EndpointStatus::Enabled => Ok(endpoint),
        EndpointStatus::Disabled | EndpointStatus::Gone => Err(endpoint.endpoint.not_sent()),
    }
}
