//! The messages of a batch. Orders for one endpoint are a group, which needs one endpoint permit or place. Groups are
//! independent: no order waits for another endpoint's receiver.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lambda_events::event::sqs::SqsMessage;
use domain::delivery::{DeliveryOrder, OrderStep, Readiness};
use domain::endpoint::SignedEndpoint;
use domain::time::Timestamp;
use futures::future::join_all;
use outbound::delivery::{Message, NotAnOrder, Resumption, read_message};
use runtime::{Metric, Unit, add};
use store::StoreError;
use store::endpoint_ref::EndpointRef;

use crate::admission::Admission;
use crate::endpoint_state::EndpointState;
use crate::order::OrderMessage;
use crate::{App, DeliverError};

const QUEUE_WAIT_MS: Metric = Metric::logged("queue_wait_ms", Unit::Milliseconds);

/// Each message with its result.
pub(crate) type Outcomes = Vec<(SqsMessage, Result<(), DeliverError>)>;

/// A batch, parsed.
#[derive(Default)]
struct Batch {
    groups: BTreeMap<EndpointRef, Vec<OrderMessage>>,
    /// Orders that are not due yet and have no place.
    early: Vec<OrderMessage>,
    resumptions: Vec<(SqsMessage, Resumption)>,
    malformed: Vec<(SqsMessage, NotAnOrder)>,
}

impl Batch {
    fn parse(messages: Vec<SqsMessage>, now: Timestamp) -> Self {
        let mut batch = Self::default();
        for message in messages {
            match read_message(message.body.as_deref().unwrap_or_default()) {
                Ok(Message::Order(order)) => {
                    record_queue_wait(&message, &order, now);
                    let is_early = order.due_at > now && !order.placed;
                    let endpoint = EndpointRef { coach: order.coach_id.clone(), id: order.endpoint_id.clone() };
                    let ordered = OrderMessage { message, order };
                    if is_early { &mut batch.early } else { batch.groups.entry(endpoint).or_default() }.push(ordered);
                }
                Ok(Message::Resumption(resumption)) => batch.resumptions.push((message, resumption)),
                Err(error) => batch.malformed.push((message, error)),
            }
        }
        batch
    }
}

/// Records the time of an order in its queue. Only the first order of a chain counts: all others are delayed on
/// purpose.
fn record_queue_wait(message: &SqsMessage, order: &DeliveryOrder, now: Timestamp) {
    let sent_at_ms = message.attributes.get("SentTimestamp").and_then(|ms| ms.parse::<i64>().ok());
    if let (1, 0, Some(sent_at_ms)) = (order.attempt, order.hop, sent_at_ms) {
        add(QUEUE_WAIT_MS, (now.ms() - sent_at_ms).max(0) as f64);
    }
}

impl App {
    /// Handles the messages of a batch.
    pub(crate) async fn handle_batch(&self, messages: Vec<SqsMessage>) -> Outcomes {
        let Batch { groups, early, resumptions, malformed } = Batch::parse(messages, self.now());
        let resume = async |(message, resumption): (SqsMessage, Resumption)| {
            let outcome = self.resume(&resumption).await;
            (message, outcome)
        };
        let (mut outcomes, put_back, resumed) = tokio::join!(
            self.deliver_all(groups),
            self.put_back_all(early),
            join_all(resumptions.into_iter().map(resume)),
        );
        outcomes.extend(put_back);
        outcomes.extend(resumed);
        outcomes.extend(malformed.into_iter().map(|(message, error)| (message, Err(error.into()))));
        outcomes
    }

    /// Reads the endpoints with one request, and delivers to each.
    async fn deliver_all(&self, groups: BTreeMap<EndpointRef, Vec<OrderMessage>>) -> Outcomes {
        if groups.is_empty() {
            return Outcomes::new();
        }
        let (refs, groups): (Vec<EndpointRef>, Vec<Vec<OrderMessage>>) = groups.into_iter().unzip();
        let endpoints = match self.endpoints.get_all(&refs, self.now()).await {
            Ok(endpoints) => endpoints,
            Err(error) => return failed(groups.into_iter().flatten(), error),
        };
        let delivered = refs.iter().zip(groups).zip(endpoints).map(async |((endpoint_ref, orders), read)| match read {
            Ok(read) => self.deliver(endpoint_ref, orders, read).await,
            Err(error) => failed(orders, error),
        });
        join_all(delivered).await.into_iter().flatten().collect()
    }

    /// Delivers the orders of one endpoint whose turn it is, and puts the others back.
    async fn deliver(
        &self,
        endpoint_ref: &EndpointRef,
        orders: Vec<OrderMessage>,
        read: Option<SignedEndpoint>,
    ) -> Outcomes {
        let (state, now) = (EndpointState::new(read), self.now());
        let readiness = state.readiness(now);
        let (mut due, mut to_admit, mut early_orders) = (Vec::new(), Vec::new(), Vec::new());
        for ordered in orders {
            match ordered.order.next_step(readiness, now) {
                OrderStep::Attempt => due.push(ordered),
                OrderStep::Admit => to_admit.push(ordered),
                OrderStep::PutBack => early_orders.push(ordered),
            }
        }
        let (mut outcomes, admitted, put_back) = tokio::join!(
            self.attempt_all(due, &state, None),
            self.admit_all(endpoint_ref, to_admit, &state, readiness),
            self.put_back_all(early_orders),
        );
        outcomes.extend(admitted);
        outcomes.extend(put_back);
        outcomes
    }

    async fn admit_all(
        &self,
        endpoint_ref: &EndpointRef,
        orders: Vec<OrderMessage>,
        state: &EndpointState,
        readiness: Readiness,
    ) -> Outcomes {
        if orders.is_empty() {
            return Outcomes::new();
        }
        match self.admit(endpoint_ref, state, readiness).await {
            Ok(Admission::Now(permit)) => self.attempt_all(orders, state, permit).await,
            Ok(Admission::Later { due_at, placed }) => {
                let later = orders.into_iter().map(|OrderMessage { message, order }| OrderMessage {
                    message,
                    order: DeliveryOrder { due_at, placed, ..order },
                });
                self.put_back_all(later.collect()).await
            }
            Err(error) => failed(orders, error),
        }
    }

    async fn put_back_all(&self, orders: Vec<OrderMessage>) -> Outcomes {
        let put_back = async |ordered: OrderMessage| {
            let outcome = self.put_back(&ordered).await;
            (ordered.message, outcome)
        };
        join_all(orders.into_iter().map(put_back)).await
    }
}

/// Fails orders, so that their messages are redelivered.
fn failed(orders: impl IntoIterator<Item = OrderMessage>, error: StoreError) -> Outcomes {
    let error = Arc::new(error);
    let failed = |ordered: OrderMessage| (ordered.message, Err(DeliverError::Group(Arc::clone(&error))));
    orders.into_iter().map(failed).collect()
}
