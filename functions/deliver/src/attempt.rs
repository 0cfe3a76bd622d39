//! Attempts: read, decide, send, record, and send the next order.

use chrono::TimeDelta;
use domain::delivery::{
    Attempt, AttemptMade, DeliveryOrder, DeliveryState, DeliveryStatus, EndpointAfter, HourCounts, SentRequest, Turn,
    WebhookHeaders, sendable,
};
use domain::endpoint::SignedEndpoint;
use domain::endpoint_health::EndedAttempt;
use domain::signature::signature_header;
use runtime::random_bytes;
use store::delivery::{Delivery, MadeAttempt};
use webhook::{Answer, Webhook};

use crate::counts::BatchCounts;
use crate::metrics_line::write_attempt;
use crate::{App, DeliverError};

impl App {
    /// Carries out an order.
    pub(crate) async fn attempt(
        &self,
        order: &DeliveryOrder,
        is_redelivered: bool,
        counts: &BatchCounts,
    ) -> Result<(), DeliverError> {
        let now = self.now();
        let (delivery, endpoint) = self.deliveries.read_for(order, &self.endpoints, now).await?;
        let endpoint = sendable(endpoint);
        let turn = order.turn(delivery.as_ref().map(|delivery| &delivery.state), &endpoint, is_redelivered, now);
        match (turn, delivery, endpoint) {
            (Turn::Send, Some(delivery), Ok(endpoint)) => self.send(order, delivery, &endpoint, counts).await,
            (Turn::Later(later), ..) => Ok(self.retries.send(&later, now).await?),
            (Turn::End(reason), ..) => {
                let (coach_id, endpoint_id) = (order.coach_id.as_str(), order.endpoint_id.as_str());
                let delivery_id = order.delivery_id.as_str();
                tracing::info!(coach_id, endpoint_id, delivery_id, reason, "ended a delivery without an attempt");
                if self.deliveries.end(order, &reason, now).await? {
                    counts.add(&order.endpoint_id, HourCounts::NOT_SENT);
                }
                Ok(())
            }
            (Turn::Send | Turn::Skip, ..) => Ok(()),
        }
    }

    /// Makes the attempt and records it. The endpoint's health is written first, and the next order is sent last: after
    /// a crash in between, the redelivered order makes the attempt again, or sends the next order.
    async fn send(
        &self,
        order: &DeliveryOrder,
        delivery: Delivery,
        endpoint: &SignedEndpoint,
        counts: &BatchCounts,
    ) -> Result<(), DeliverError> {
        let (at, url) = (self.now(), &endpoint.endpoint.url);
        let (event_id, event_type) = (delivery.event_id.clone(), delivery.event_type.clone());
        let body = self.deliveries.body(&delivery)?;
        let signature = signature_header(&endpoint.secrets, &event_id, at.unix_s(), &body);
        let headers = WebhookHeaders {
            event_id: &event_id,
            event_type: &event_type,
            unix_s: at.unix_s(),
            signature: Some(&signature),
            mode: self.mode,
        };
        let answer = self.webhooks.send(Webhook { url, headers, body }).await;
        let Answer { result, duration_ms, excerpt, retry_after } = answer;
        let line = Attempt { at, result, duration_ms, response_excerpt: excerpt };
        let sent = SentRequest { host: url.host().to_owned(), unix_s: at.unix_s(), signature: Some(signature) };

        let now = self.now();
        let after = self.endpoint_after(order, endpoint, &delivery, &line).await?;
        let jitter = u16::from_be_bytes(random_bytes());
        let made = AttemptMade { result: &line.result, retry_after: retry_after.as_deref(), ended_at: now, jitter };
        let made_at = delivery.made_at;
        let recording = MadeAttempt { line: &line, sent: &sent };
        let conclude = |state: &DeliveryState| state.after(order, &made, &after);
        let Some(state) = self.deliveries.record(order, delivery, recording, conclude).await? else { return Ok(()) };
        write_attempt(order, &event_id, made_at, &line, &state, now);
        counts.add(&order.endpoint_id, HourCounts::of_attempt(&line.result, state.status));
        if let (DeliveryStatus::Pending, Some(at)) = (state.status, state.next_attempt_at) {
            let next = DeliveryOrder { chain: state.chain, ..order.for_attempt(state.next_attempt, at) };
            self.retries.send(&next, now).await?;
        }
        if let EndpointAfter::Off(reason) = &after {
            self.deliveries.end_pending(&order.endpoint_id, reason, now).await?;
        }
        Ok(())
    }

    /// Records an attempt in the endpoint's health, and returns what became of the endpoint. A plain failure that
    /// cannot be recorded is only logged. A 410 that cannot be recorded fails the message.
    async fn endpoint_after(
        &self,
        order: &DeliveryOrder,
        endpoint: &SignedEndpoint,
        delivery: &Delivery,
        line: &Attempt,
    ) -> Result<EndpointAfter, DeliverError> {
        let coach = &order.coach_id;
        let attempt = EndedAttempt {
            result: &line.result,
            took: TimeDelta::milliseconds(line.duration_ms.into()),
            event: &delivery.event_id,
            is_test: delivery.is_test,
            breaker: endpoint.health.breaker,
            ended_at: self.now(),
        };
        match self.endpoints.record_attempt(&self.units, coach, endpoint, &attempt).await {
            Err(error) if !line.result.is_gone() => {
                let (coach_id, endpoint_id) = (coach.as_str(), order.endpoint_id.as_str());
                tracing::warn!(coach_id, endpoint_id, %error, "could not record the health of an endpoint");
                Ok(EndpointAfter::On)
            }
            noted => Ok(noted?),
        }
    }
}
