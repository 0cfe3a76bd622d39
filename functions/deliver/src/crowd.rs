//! Messages of a batch by their endpoint. Those of an endpoint take one of its few slots, or are put off: whatever is queued for a receiver
//! that hangs, it holds up few functions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::event::sqs::SqsMessage;
use chrono::TimeDelta;
use domain::endpoint::SignedEndpoint;
use domain::id::{CoachId, EndpointId};
use domain::time::Timestamp;
use futures::future::join_all;
use outbound::queue::{DeliveryOrder, Message, NotAnOrder, Resumption, read_message};
use runtime::{Metric, Unit, add, random_bytes};
use store::StoreError;
use store::endpoint::Flight;

use crate::order::is_redelivered;
use crate::{App, DeliverError};

/// Batches that deliver to one endpoint at once. Of one that is slow, the first slot alone is used.
const SLOTS: usize = 3;
/// Waits for a slot, which a healthy endpoint gives back soon; a second in all. Nobody waits for one that is slow.
const WAITS: [Duration; 5] = [
    Duration::from_millis(30),
    Duration::from_millis(60),
    Duration::from_millis(120),
    Duration::from_millis(240),
    Duration::from_millis(550),
];
/// How long orders wait that found no slot: so long, and up to as long again.
const PUT_OFF: TimeDelta = TimeDelta::seconds(2);
const PUT_OFF_SLOW: TimeDelta = TimeDelta::seconds(15);

const QUEUE_WAIT_MS: Metric = Metric::new("queue_wait_ms", Unit::Milliseconds);

/// What came of each message.
type Outcomes = Vec<(SqsMessage, Result<(), DeliverError>)>;

/// A message and its order.
pub(crate) struct Ordered {
    message: SqsMessage,
    order: DeliveryOrder,
}

/// Messages for one endpoint, or one that is no order.
pub(crate) enum Crowd {
    Orders(Vec<Ordered>),
    Resumption(Box<SqsMessage>, Resumption),
    Malformed(Box<SqsMessage>, NotAnOrder),
}

/// Notes how long an order lay in its queue, unless it was delayed on purpose, as all are but the first of a chain.
fn note_wait(message: &SqsMessage, order: &DeliveryOrder, now: Timestamp) {
    let sent_at_ms = message.attributes.get("SentTimestamp").and_then(|ms| ms.parse::<i64>().ok());
    if let (1, 0, Some(sent_at_ms)) = (order.attempt, order.hop, sent_at_ms) {
        add(QUEUE_WAIT_MS, (now.ms() - sent_at_ms).max(0) as f64);
    }
}

/// A batch by its endpoints.
pub(crate) fn crowds(messages: Vec<SqsMessage>, now: Timestamp) -> Vec<Crowd> {
    let mut by_endpoint: BTreeMap<EndpointId, Vec<Ordered>> = BTreeMap::new();
    let mut crowds = Vec::new();
    for message in messages {
        match read_message(message.body.as_deref().unwrap_or_default()) {
            Ok(Message::Order(order)) => {
                note_wait(&message, &order, now);
                by_endpoint.entry(order.endpoint_id.clone()).or_default().push(Ordered { message, order });
            }
            Ok(Message::Resumption(asked)) => crowds.push(Crowd::Resumption(Box::new(message), asked)),
            Err(error) => crowds.push(Crowd::Malformed(Box::new(message), error)),
        }
    }
    crowds.extend(by_endpoint.into_values().map(Crowd::Orders));
    crowds
}

impl App {
    /// Does what the orders say.
    pub(crate) async fn take(&self, crowd: Crowd) -> Outcomes {
        match crowd {
            Crowd::Malformed(message, error) => vec![(*message, Err(error.into()))],
            Crowd::Resumption(message, asked) => vec![(*message, self.resume(&asked).await)],
            Crowd::Orders(orders) => {
                let now = self.now();
                let (due, early): (Vec<Ordered>, Vec<Ordered>) =
                    orders.into_iter().partition(|ordered| ordered.order.due_at <= now);
                let put_back = async |ordered: Ordered| {
                    let outcome = self.put_back(&ordered.order, is_redelivered(&ordered.message)).await;
                    (ordered.message, outcome)
                };
                let (mut outcomes, put_back) =
                    tokio::join!(self.deliver_all(due, now), join_all(early.into_iter().map(put_back)));
                outcomes.extend(put_back);
                outcomes
            }
        }
    }

    async fn deliver_all(&self, due: Vec<Ordered>, now: Timestamp) -> Outcomes {
        let Some(Ordered { order, .. }) = due.first() else { return Vec::new() };
        let (coach, id) = (order.coach_id.clone(), order.endpoint_id.clone());
        let read = self.endpoints.get(&coach, &id, now);
        let (endpoint, flight) = tokio::join!(read, self.endpoints.take_flight(&coach, &id, SLOTS, now));
        let (endpoint, flight) = match (endpoint, flight) {
            (Ok(endpoint), Ok(flight)) => (endpoint, flight),
            (Err(error), _) | (_, Err(error)) => return failed(due, error),
        };
        let slow = endpoint.as_ref().and_then(|endpoint| endpoint.slow_until).is_some_and(|until| until > now);
        let flight = match flight {
            Some(flight) => Some(flight),
            None if slow => None,
            None => match self.wait_for_flight(&coach, &id).await {
                Ok(flight) => flight,
                Err(error) => return failed(due, error),
            },
        };
        let Some(flight) = flight else { return self.put_off_all(due, self.now() + put_off(slow)).await };
        let outcomes = if slow && !flight.is_first() {
            self.put_off_all(due, now + put_off(slow)).await
        } else {
            self.carry_out_all(due, endpoint).await
        };
        if let Err(error) = self.endpoints.land(&coach, &id, &flight).await {
            tracing::warn!(coach_id = %coach, endpoint_id = %id, %error, "a slot is left to run out");
        }
        outcomes
    }

    async fn wait_for_flight(&self, coach: &CoachId, id: &EndpointId) -> Result<Option<Flight>, StoreError> {
        for wait in WAITS {
            tokio::time::sleep(wait).await;
            if let Some(flight) = self.endpoints.take_flight(coach, id, SLOTS, self.now()).await? {
                return Ok(Some(flight));
            }
        }
        Ok(None)
    }

    async fn carry_out_all(&self, due: Vec<Ordered>, endpoint: Option<SignedEndpoint>) -> Outcomes {
        let carry_out = |ordered: Ordered| {
            let endpoint = endpoint.clone();
            async move {
                let redelivered = is_redelivered(&ordered.message);
                let outcome = self.carry_out(&ordered.order, endpoint, redelivered).await;
                (ordered.message, outcome)
            }
        };
        join_all(due.into_iter().map(carry_out)).await
    }

    async fn put_off_all(&self, due: Vec<Ordered>, until: Timestamp) -> Outcomes {
        let put_off = async |ordered: Ordered| {
            let outcome = self.put_off(&ordered.order, until, is_redelivered(&ordered.message)).await;
            (ordered.message, outcome)
        };
        join_all(due.into_iter().map(put_off)).await
    }
}

/// Spread, so that those who were put off do not come back as one.
fn put_off(slow: bool) -> TimeDelta {
    let least = if slow { PUT_OFF_SLOW } else { PUT_OFF };
    let more_ms = least.num_milliseconds() * i64::from(u16::from_be_bytes(random_bytes())) / i64::from(u16::MAX);
    least + TimeDelta::milliseconds(more_ms)
}

/// All of them come again.
fn failed(orders: Vec<Ordered>, error: StoreError) -> Outcomes {
    let error = Arc::new(error);
    orders.into_iter().map(|ordered| (ordered.message, Err(DeliverError::Crowd(Arc::clone(&error))))).collect()
}
