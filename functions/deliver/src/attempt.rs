//! Attempts: claim, send, record, and carry out the consequences.

use std::panic::AssertUnwindSafe;
use std::pin::pin;

use chrono::TimeDelta;
use domain::delivery::{
    Attempt, AttemptMade, AttemptResult, DeliveryOrder, DeliveryOutcome, EndpointAfter, SentRequest, WebhookHeaders,
    after_attempt,
};
use domain::endpoint::SignedEndpoint;
use domain::pace::{LATE_AFTER, Lateness};
use domain::signature::signature_header;
use futures::future::{FutureExt, join, join_all};
use runtime::random_bytes;
use store::delivery::{AttemptClaim, AttemptRecording, ClaimedAttempt};
use store::endpoint::Permit;
use tokio::sync::oneshot;
use webhook::{Answer, Answering, Webhook};

use crate::batch::Outcomes;
use crate::endpoint_state::{EndpointState, sendable};
use crate::metrics_line::write_attempt;
use crate::order::OrderMessage;
use crate::{App, DeliverError};

/// Signals that the receiver has sent its status. Dropped if no status is awaited.
type Answered = oneshot::Sender<()>;

/// An attempt that has ended.
struct EndedAttempt {
    /// The line of the delivery log.
    line: Attempt,
    request: SentRequest,
    /// The receiver's `Retry-After`.
    retry_after: Option<String>,
}

impl App {
    /// Makes the attempts of a group. The group's permit is released once all receivers have sent their status: the
    /// permit does not wait for bodies or for the log.
    pub(crate) async fn attempt_all(
        &self,
        orders: Vec<OrderMessage>,
        state: &EndpointState,
        permit: Option<Permit>,
    ) -> Outcomes {
        let start = |ordered: OrderMessage| {
            let (answered, answer) = oneshot::channel();
            let attempt = async move {
                // A panic, a fault of ours, fails this attempt only.
                let attempt = AssertUnwindSafe(self.attempt(&ordered, state, answered)).catch_unwind();
                let outcome = attempt.await.unwrap_or(Err(DeliverError::Panicked));
                (ordered.message, outcome)
            };
            (attempt, answer)
        };
        let (attempts, answers): (Vec<_>, Vec<_>) = orders.into_iter().map(start).unzip();
        let release = async {
            join_all(answers).await;
            if let Some(permit) = permit {
                self.release(permit).await;
            }
        };
        let (outcomes, ()) = join(join_all(attempts), release).await;
        outcomes
    }

    /// Makes an order's attempt, unless it was made.
    async fn attempt(
        &self,
        ordered: &OrderMessage,
        state: &EndpointState,
        answered: Answered,
    ) -> Result<(), DeliverError> {
        match self.deliveries.claim(&ordered.order, self.now()).await? {
            AttemptClaim::Taken(taken) => match &state.endpoint {
                Ok(endpoint) => {
                    let ended = self.send(&taken, endpoint, state, answered).await;
                    self.conclude(&taken, endpoint, &ended).await
                }
                Err(reason) => self.end_unsent(&taken, reason).await,
            },
            AttemptClaim::Held => Err(DeliverError::Held),
            AttemptClaim::Spent(spent) => self.catch_up(ordered, spent).await,
        }
    }

    /// Signs and sends the webhook.
    async fn send(
        &self,
        taken: &ClaimedAttempt,
        signed: &SignedEndpoint,
        state: &EndpointState,
        answered: Answered,
    ) -> EndedAttempt {
        let (at, url) = (self.now(), &signed.endpoint.url);
        let signature = signature_header(&signed.secrets, &taken.event_id, at.unix_s(), &taken.body);
        let headers = WebhookHeaders {
            event_id: &taken.event_id,
            event_type: &taken.event_type,
            unix_s: at.unix_s(),
            signature: Some(&signature),
        };
        let webhook = Webhook { url, headers, body: taken.body.clone() };
        let answering = self.await_status(taken, state, self.webhooks.send(webhook)).await;
        // A closed channel means that no permit waits.
        let _ = answered.send(());
        // Lets the permit be released before this attempt is recorded.
        tokio::task::yield_now().await;
        let Answer { result, duration_ms, excerpt, retry_after } = answering.read().await;
        let line = Attempt { at, result, duration_ms, response_excerpt: excerpt };
        let request = SentRequest { host: url.host().to_owned(), unix_s: at.unix_s(), signature: Some(signature) };
        EndedAttempt { line, request, retry_after }
    }

    /// Awaits the receiver's status, and records the pace of a late endpoint.
    async fn await_status(
        &self,
        taken: &ClaimedAttempt,
        state: &EndpointState,
        status: impl Future<Output = Answering>,
    ) -> Answering {
        let mut status = pin!(status);
        if let Ok(answering) = tokio::time::timeout(LATE_AFTER, &mut status).await {
            return answering;
        }
        let (answering, ()) = join(status, self.record_pace(taken, state, Lateness::Waiting)).await;
        let lateness = match answering.result() {
            AttemptResult::StatusCode(_) => {
                Lateness::Answered(TimeDelta::from_std(answering.time_to_status()).unwrap_or(TimeDelta::MAX))
            }
            AttemptResult::Error(_) => Lateness::TimedOut,
        };
        self.record_pace(taken, state, lateness).await;
        answering
    }

    async fn record_pace(&self, taken: &ClaimedAttempt, state: &EndpointState, lateness: Lateness) {
        let Some(pace) = state.pace_to_record(lateness, self.now()) else { return };
        let DeliveryOrder { coach_id, endpoint_id, .. } = &taken.order;
        if let Err(error) = self.endpoints.note_pace(coach_id, endpoint_id, pace).await {
            let (coach_id, endpoint_id) = (coach_id.as_str(), endpoint_id.as_str());
            tracing::warn!(coach_id, endpoint_id, %error, "could not record the pace of a late endpoint");
        }
    }

    /// Decides what follows an attempt, records the attempt, and carries out the decision. An end of the endpoint is
    /// written before the attempt: after a crash between the two, the repeated attempt finds the end.
    async fn conclude(
        &self,
        taken: &ClaimedAttempt,
        endpoint: &SignedEndpoint,
        EndedAttempt { line: attempt, request, retry_after }: &EndedAttempt,
    ) -> Result<(), DeliverError> {
        let (order, now) = (&taken.order, self.now());
        let retry_after = retry_after.as_deref();
        let after = self.endpoint_after(taken, endpoint, &attempt.result).await?;
        let jitter = u16::from_be_bytes(random_bytes());
        let made = AttemptMade { result: &attempt.result, retry_after, number: order.attempt, ended_at: now, jitter };
        let next = after_attempt(&made, &after);
        write_attempt(taken, attempt, &next, now);
        let recorded = self.deliveries.record(taken, attempt, Some(request), &next, now).await?;
        // The order is sent after the record: an order without a recorded attempt would start a second chain.
        match (recorded, next) {
            (AttemptRecording::Lost, _) => tracing::warn!(
                coach_id = %order.coach_id,
                endpoint_id = %order.endpoint_id,
                delivery_id = %order.delivery_id,
                attempt = order.attempt,
                "an attempt outlived its lease and was not recorded"
            ),
            (_, DeliveryOutcome::Delivered) => self.endpoints.note_success(&order.coach_id, endpoint, now).await?,
            (AttemptRecording::Done, DeliveryOutcome::RetryAt(at)) => {
                self.send_next(&order.for_attempt(order.attempt + 1, at)).await?
            }
            (
                _,
                DeliveryOutcome::RetryAt(_)
                | DeliveryOutcome::Exhausted
                | DeliveryOutcome::Gone
                | DeliveryOutcome::EndpointOff(_),
            ) => {}
        }
        match after {
            EndpointAfter::Off(reason) => Ok(self.deliveries.end_pending(&order.endpoint_id, &reason, now).await?),
            EndpointAfter::On | EndpointAfter::Moved => Ok(()),
        }
    }

    /// Records a failed attempt in the endpoint's health, and returns what became of the endpoint. A plain failure that
    /// cannot be recorded is only logged. A 410 that cannot be recorded fails the message.
    async fn endpoint_after(
        &self,
        taken: &ClaimedAttempt,
        endpoint: &SignedEndpoint,
        result: &AttemptResult,
    ) -> Result<EndpointAfter, DeliverError> {
        let (coach, now) = (&taken.order.coach_id, self.now());
        if result.is_success() {
            return Ok(EndpointAfter::On);
        }
        if result.is_gone() {
            return Ok(self.endpoints.note_gone(coach, endpoint, &self.outbox, now).await?);
        }
        let recorded = self.endpoints.note_failure(coach, endpoint, &taken.event_id, &self.outbox, now).await;
        Ok(recorded.unwrap_or_else(|error| {
            let (coach_id, endpoint_id) = (coach.as_str(), taken.order.endpoint_id.as_str());
            tracing::warn!(coach_id, endpoint_id, %error, "could not record a failure of an endpoint");
            EndpointAfter::On
        }))
    }

    /// Sends the order of the next attempt, and ends the delivery if its endpoint takes no deliveries any more.
    /// Disabling or deleting an endpoint ends its pending deliveries, but not those with an attempt under way.
    pub(crate) async fn send_next(&self, next: &DeliveryOrder) -> Result<(), DeliverError> {
        let now = self.now();
        self.retries.send(next, now).await?;
        let ended = async {
            match sendable(self.endpoints.get(&next.coach_id, &next.endpoint_id, now).await?) {
                Ok(_) => Ok(()),
                Err(reason) => self.deliveries.end_before(next, &reason, now).await,
            }
        };
        if let Err(error) = ended.await {
            tracing::warn!(delivery_id = %next.delivery_id, %error, "could not end a delivery now; it ends when its next attempt is due");
        }
        Ok(())
    }

    /// Ends a delivery whose endpoint takes no deliveries.
    async fn end_unsent(&self, taken: &ClaimedAttempt, reason: &str) -> Result<(), DeliverError> {
        let (order, now) = (&taken.order, self.now());
        tracing::info!(
            coach_id = %order.coach_id,
            endpoint_id = %order.endpoint_id,
            delivery_id = %order.delivery_id,
            event_id = %taken.event_id,
            reason,
            "ended a delivery without an attempt"
        );
        self.deliveries.record(taken, &Attempt::unsent(now, reason), None, &DeliveryOutcome::Exhausted, now).await?;
        Ok(())
    }
}
