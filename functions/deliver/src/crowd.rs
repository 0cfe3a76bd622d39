//! Messages of a batch by their endpoint. Those of an endpoint take one of its few slots, or are put off: whatever is queued for a receiver
//! that hangs, it holds up few functions.
//!
//! What a batch asks the store for, it asks for together: its endpoints, its slots, its attempts, its lines in the log. One that has to wait
//! for its slot, or whose receiver is slow, goes on by itself, and nobody waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::event::sqs::SqsMessage;
use chrono::TimeDelta;
use domain::endpoint::SignedEndpoint;
use domain::id::{CoachId, EndpointId};
use domain::time::Timestamp;
use futures::future::join_all;
use outbound::gather::{Gathering, Place};
use outbound::queue::{DeliveryOrder, Message, NotAnOrder, Resumption, read_message};
use runtime::{Metric, Unit, add, error_chain, random_bytes};
use store::delivery::{Claim, Entry, Recorded};
use store::endpoint::Flight;
use store::{Answer, StoreError};

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
/// How long what a receiver answered, and a slot, wait to be written with others. Most receivers answer within a few milliseconds.
const COMPANY: Duration = Duration::from_millis(3);
/// How long orders wait that found no slot: so long, and up to as long again.
const PUT_OFF: TimeDelta = TimeDelta::seconds(2);
const PUT_OFF_SLOW: TimeDelta = TimeDelta::seconds(15);

const QUEUE_WAIT_MS: Metric = Metric::new("queue_wait_ms", Unit::Milliseconds);

/// What came of each message.
pub(crate) type Outcomes = Vec<(SqsMessage, Result<(), DeliverError>)>;

/// A message and its order.
struct Ordered {
    message: SqsMessage,
    order: DeliveryOrder,
}

/// What a batch asks for, read.
#[derive(Default)]
struct Sorted {
    crowds: BTreeMap<EndpointId, Vec<Ordered>>,
    early: Vec<Ordered>,
    resumptions: Vec<(SqsMessage, Resumption)>,
    malformed: Vec<(SqsMessage, NotAnOrder)>,
}

/// What the attempts of a batch write together.
pub(crate) struct Together<'a> {
    pub(crate) entries: Gathering<Entry, Answer<'a, Recorded>>,
    landings: Gathering<Flight, Answer<'a, ()>>,
}

/// Due orders for one endpoint that have a slot, and what became of each attempt.
struct Cleared<'a> {
    flight: Flight,
    landing: Place<'a>,
    endpoint: Option<SignedEndpoint>,
    claimed: Vec<(Ordered, Answer<'a, Claim>, Place<'a>)>,
}

/// Due orders for one endpoint, the endpoint, and a slot of it.
type Arrived = (Vec<Ordered>, Result<Option<SignedEndpoint>, StoreError>, Result<Option<Flight>, StoreError>);

/// Due orders for one endpoint.
struct Crowd {
    endpoint: Option<SignedEndpoint>,
    due: Vec<Ordered>,
}

impl Crowd {
    fn is_slow(&self, now: Timestamp) -> bool {
        self.endpoint.as_ref().and_then(|endpoint| endpoint.slow_until).is_some_and(|until| until > now)
    }
}

/// Notes how long an order lay in its queue, unless it was delayed on purpose, as all are but the first of a chain.
fn note_wait(message: &SqsMessage, order: &DeliveryOrder, now: Timestamp) {
    let sent_at_ms = message.attributes.get("SentTimestamp").and_then(|ms| ms.parse::<i64>().ok());
    if let (1, 0, Some(sent_at_ms)) = (order.attempt, order.hop, sent_at_ms) {
        add(QUEUE_WAIT_MS, (now.ms() - sent_at_ms).max(0) as f64);
    }
}

impl Sorted {
    fn read(messages: Vec<SqsMessage>, now: Timestamp) -> Self {
        let mut sorted = Self::default();
        for message in messages {
            match read_message(message.body.as_deref().unwrap_or_default()) {
                Ok(Message::Order(order)) => {
                    note_wait(&message, &order, now);
                    if order.due_at <= now {
                        sorted.crowds.entry(order.endpoint_id.clone()).or_default().push(Ordered { message, order });
                    } else {
                        sorted.early.push(Ordered { message, order });
                    }
                }
                Ok(Message::Resumption(asked)) => sorted.resumptions.push((message, asked)),
                Err(error) => sorted.malformed.push((message, error)),
            }
        }
        sorted
    }
}

impl App {
    /// Does what the messages of a batch say.
    pub(crate) async fn carry_out_all(&self, messages: Vec<SqsMessage>) -> Outcomes {
        let now = self.now();
        let Sorted { crowds, early, resumptions, malformed } = Sorted::read(messages, now);
        let put_back = async |ordered: Ordered| {
            let outcome = self.put_back(&ordered.order, is_redelivered(&ordered.message)).await;
            (ordered.message, outcome)
        };
        let resume = async |(message, asked): (SqsMessage, Resumption)| {
            let outcome = self.resume(&asked).await;
            (message, outcome)
        };
        let (mut outcomes, put_back, resumed) = tokio::join!(
            self.deliver_all(crowds.into_values().collect(), now),
            join_all(early.into_iter().map(put_back)),
            join_all(resumptions.into_iter().map(resume)),
        );
        outcomes.extend(put_back);
        outcomes.extend(resumed);
        outcomes.extend(malformed.into_iter().map(|(message, error)| (message, Err(error.into()))));
        outcomes
    }

    async fn deliver_all(&self, crowds: Vec<Vec<Ordered>>, now: Timestamp) -> Outcomes {
        let named = |due: &Vec<Ordered>| due.first().map(|first| whose(&first.order));
        let keys: Vec<(CoachId, EndpointId)> = crowds.iter().filter_map(named).collect();
        let (endpoints, flights) =
            tokio::join!(self.endpoints.get_all(&keys, now), self.endpoints.take_flights(&keys, SLOTS, now));
        let together = Together { entries: Gathering::new(COMPANY), landings: Gathering::new(COMPANY) };
        let (mut ready, mut alone) = (Vec::new(), Vec::new());
        for ((due, endpoint), flight) in crowds.into_iter().zip(endpoints).zip(flights) {
            match (endpoint, flight) {
                (Answer::Here(endpoint), Answer::Here(flight)) => ready.push((due, endpoint, flight)),
                (endpoint, flight) => alone.push((due, endpoint, flight)),
            }
        }
        // Who is still waited for is waited for alone.
        let alone = alone.into_iter().map(async |(due, endpoint, flight)| {
            let (endpoint, flight) = tokio::join!(endpoint.get(), flight.get());
            self.take_off_all(vec![(due, endpoint, flight)], &together).await
        });
        let (mut outcomes, alone) = tokio::join!(self.take_off_all(ready, &together), join_all(alone));
        outcomes.extend(alone.into_iter().flatten());
        outcomes
    }

    async fn take_off_all<'a>(&'a self, crowds: Vec<Arrived>, together: &Together<'a>) -> Outcomes {
        let (mut here, mut flights, mut outcomes) = (Vec::new(), Vec::new(), Outcomes::new());
        for (due, endpoint, flight) in crowds {
            match endpoint {
                Ok(endpoint) => {
                    here.push(Crowd { endpoint, due });
                    flights.push(Answer::Here(flight));
                }
                // Its slot runs out by itself.
                Err(error) => outcomes.extend(failed(due, error)),
            }
        }
        outcomes.extend(self.take_off(here, flights, &WAITS, together).await);
        outcomes
    }

    /// Delivers to those who have a slot; the others wait for theirs. An endpoint that is slow is not waited for, and no slot of it but the
    /// first counts.
    async fn take_off<'a>(
        &'a self,
        crowds: Vec<Crowd>,
        flights: Vec<Answer<'a, Option<Flight>>>,
        waits: &[Duration],
        together: &Together<'a>,
    ) -> Outcomes {
        let now = self.now();
        let (mut cleared, mut waiting, mut held, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut outcomes = Outcomes::new();
        for (crowd, flight) in crowds.into_iter().zip(flights) {
            let flight = match flight {
                Answer::Here(flight) => flight,
                Answer::Awaited(flight) => {
                    alone.push((crowd, flight));
                    continue;
                }
            };
            match (flight, crowd.is_slow(now)) {
                (Ok(Some(flight)), slow) if flight.is_first() || !slow => cleared.push((crowd, flight)),
                (Ok(flight), true) => held.push((crowd, flight)),
                (Ok(_), false) => waiting.push(crowd),
                (Err(error), _) => outcomes.extend(failed(crowd.due, error)),
            }
        }
        let alone = alone.into_iter().map(async |(crowd, flight)| {
            let flight = vec![Answer::Here(flight.await)];
            Box::pin(self.take_off(vec![crowd], flight, waits, together)).await
        });
        let (alone, flown, waited, put_off) = tokio::join!(
            join_all(alone),
            self.fly_all(cleared, together),
            self.wait_all(waiting, waits, together),
            join_all(held.into_iter().map(|(crowd, flight)| self.hold(crowd, flight, together))),
        );
        outcomes.extend(alone.into_iter().flatten());
        outcomes.extend(flown);
        outcomes.extend(waited);
        outcomes.extend(put_off.into_iter().flatten());
        outcomes
    }

    async fn wait_all<'a>(&'a self, crowds: Vec<Crowd>, waits: &[Duration], together: &Together<'a>) -> Outcomes {
        if crowds.is_empty() {
            return Outcomes::new();
        }
        let Some((wait, later)) = waits.split_first() else {
            let now = self.now();
            let put_off = crowds.into_iter().map(|crowd| self.put_off_all(crowd.due, now + put_off(false)));
            return join_all(put_off).await.into_iter().flatten().collect();
        };
        tokio::time::sleep(*wait).await;
        let keys: Vec<_> = crowds.iter().filter_map(|crowd| crowd.due.first()).map(|due| whose(&due.order)).collect();
        let flights = self.endpoints.take_flights(&keys, SLOTS, self.now()).await;
        Box::pin(self.take_off(crowds, flights, later, together)).await
    }

    /// Puts off what is for an endpoint that is slow, and gives back a slot that does not count.
    async fn hold<'a>(&'a self, crowd: Crowd, flight: Option<Flight>, together: &Together<'a>) -> Outcomes {
        let landing = together.landings.place();
        let outcomes = self.put_off_all(crowd.due, self.now() + put_off(true)).await;
        if let Some(flight) = flight {
            self.land(flight, landing, together).await;
        }
        outcomes
    }

    /// Takes the attempts of these crowds on and makes them.
    async fn fly_all<'a>(&'a self, crowds: Vec<(Crowd, Flight)>, together: &Together<'a>) -> Outcomes {
        let due = crowds.iter().flat_map(|(crowd, _)| &crowd.due);
        let orders: Vec<DeliveryOrder> = due.map(|ordered| ordered.order.clone()).collect();
        let mut claims = self.deliveries.claim(orders, self.now()).await.into_iter();
        let cleared: Vec<Cleared<'_>> = crowds
            .into_iter()
            .map(|(Crowd { endpoint, due }, flight)| {
                let claimed = due.into_iter().zip(claims.by_ref());
                Cleared {
                    flight,
                    landing: together.landings.place(),
                    endpoint,
                    claimed: claimed.map(|(ordered, claim)| (ordered, claim, together.entries.place())).collect(),
                }
            })
            .collect();
        let flown = join_all(cleared.into_iter().map(|cleared| self.fly(cleared, together))).await;
        flown.into_iter().flatten().collect()
    }

    async fn fly<'a>(&'a self, cleared: Cleared<'_>, together: &Together<'a>) -> Outcomes {
        let Cleared { flight, landing, endpoint, claimed } = cleared;
        let attempts = claimed.into_iter().map(|(ordered, claim, place)| {
            let endpoint = endpoint.clone();
            async move {
                let outcome = match claim.get().await {
                    Ok(claim) => {
                        let redelivered = is_redelivered(&ordered.message);
                        self.carry_out(claim, endpoint, redelivered, (place, together)).await
                    }
                    Err(error) => Err(error.into()),
                };
                (ordered.message, outcome)
            }
        });
        let outcomes = join_all(attempts).await;
        self.land(flight, landing, together).await;
        outcomes
    }

    async fn land<'a>(&'a self, flight: Flight, landing: Place<'_>, together: &Together<'a>) {
        let land = async |flights: Vec<Flight>| self.endpoints.land(flights).await;
        let landed = together.landings.write(landing, flight, land).await;
        if let Some(landed) = landed
            && let Err(error) = landed.get().await
        {
            tracing::warn!(error = error_chain(&error), "a slot is left to run out");
        }
    }

    async fn put_off_all(&self, due: Vec<Ordered>, until: Timestamp) -> Outcomes {
        let put_off = async |ordered: Ordered| {
            let outcome = self.put_off(&ordered.order, until, is_redelivered(&ordered.message)).await;
            (ordered.message, outcome)
        };
        join_all(due.into_iter().map(put_off)).await
    }
}

fn whose(order: &DeliveryOrder) -> (CoachId, EndpointId) {
    (order.coach_id.clone(), order.endpoint_id.clone())
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
