//! Messages of a batch by their endpoint. Those of an endpoint take one of its few slots, or are put off: whatever is queued for a receiver
//! that hangs, it holds up few functions.
//!
//! What a batch asks the store for, it asks for together: its endpoints, its slots, its attempts, its lines in the log. One that has to wait
//! for its slot, or whose receiver is slow, goes on by itself, and nobody waits for it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lambda_events::event::sqs::SqsMessage;
use chrono::TimeDelta;
use domain::endpoint::{Pace, SignedEndpoint};
use domain::id::{CoachId, EndpointId};
use domain::time::Timestamp;
use futures::future::{FutureExt, join_all};
use outbound::delivery::{DeliveryOrder, Message, NotAnOrder, Resumption, read_message};
use runtime::{Metric, Unit, add, error_chain, random_bytes};
use store::delivery::Claim;
use store::endpoint::Slot;
use store::{Answer, Statement, StoreError, Tried};

use crate::gather::{Gathering, Place};
use crate::order::is_redelivered;
use crate::{App, DeliverError};

/// Batches that deliver to one endpoint at once. Of one that hangs, the first slot alone is used.
const SLOTS: usize = 3;
/// Waits for a slot, which a quick endpoint gives back soon; a second in all. Nobody waits for one that is not.
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
const PUT_OFF_SLOW: TimeDelta = TimeDelta::seconds(5);
const PUT_OFF_HANGING: TimeDelta = TimeDelta::seconds(15);

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
    groups: BTreeMap<EndpointId, Vec<Ordered>>,
    early: Vec<Ordered>,
    resumptions: Vec<(SqsMessage, Resumption)>,
    malformed: Vec<(SqsMessage, NotAnOrder)>,
}

/// What the attempts of a batch write together: their lines in the log, and the slots that they give back.
pub(crate) type Together = Gathering<Statement, Tried>;

/// Due orders for one endpoint that have a slot, and what became of each attempt.
struct Admitted<'a> {
    occupied: Occupied,
    endpoint: Option<SignedEndpoint>,
    claimed: Vec<(Ordered, Answer<'a, Claim>, Place<'a>)>,
}

/// A slot, and the attempts that are made in it. The last one to end gives it back, beside its line in the log.
pub(crate) struct Occupied {
    slot: Mutex<Option<Slot>>,
    under_way: AtomicUsize,
}

/// Where an attempt writes.
pub(crate) struct Writing<'a> {
    pub(crate) together: &'a Together,
    pub(crate) place: Place<'a>,
    pub(crate) occupied: &'a Occupied,
}

/// Due orders for one endpoint, the endpoint, and a slot of it.
type Arrived = (Vec<Ordered>, Result<Option<SignedEndpoint>, StoreError>, Result<Option<Slot>, StoreError>);

/// Due orders for one endpoint.
struct Group {
    endpoint: Option<SignedEndpoint>,
    due: Vec<Ordered>,
}

impl Group {
    fn pace(&self, now: Timestamp) -> Pace {
        self.endpoint.as_ref().map_or(Pace::Quick, |endpoint| endpoint.pace(now))
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
                        sorted.groups.entry(order.endpoint_id.clone()).or_default().push(Ordered { message, order });
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

impl Occupied {
    fn new(slot: Slot, attempts: usize) -> Self {
        Self { slot: Mutex::new(Some(slot)), under_way: AtomicUsize::new(attempts) }
    }

    /// One attempt less; whether that was the last.
    pub(crate) fn leave(&self) -> bool {
        self.under_way.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// The slot, if nobody has given it back.
    pub(crate) fn end(&self) -> Option<Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl App {
    /// Does what the messages of a batch say.
    pub(crate) async fn carry_out_all(&self, messages: Vec<SqsMessage>) -> Outcomes {
        let now = self.now();
        let Sorted { groups, early, resumptions, malformed } = Sorted::read(messages, now);
        let put_back = async |ordered: Ordered| {
            let outcome = self.put_back(&ordered.order, is_redelivered(&ordered.message)).await;
            (ordered.message, outcome)
        };
        let resume = async |(message, asked): (SqsMessage, Resumption)| {
            let outcome = self.resume(&asked).await;
            (message, outcome)
        };
        let (mut outcomes, put_back, resumed) = tokio::join!(
            self.deliver_all(groups.into_values().collect(), now),
            join_all(early.into_iter().map(put_back)),
            join_all(resumptions.into_iter().map(resume)),
        );
        outcomes.extend(put_back);
        outcomes.extend(resumed);
        outcomes.extend(malformed.into_iter().map(|(message, error)| (message, Err(error.into()))));
        outcomes
    }

    async fn deliver_all(&self, groups: Vec<Vec<Ordered>>, now: Timestamp) -> Outcomes {
        let named = |due: &Vec<Ordered>| due.first().map(|first| whose(&first.order));
        let keys: Vec<(CoachId, EndpointId)> = groups.iter().filter_map(named).collect();
        let (endpoints, slots) =
            tokio::join!(self.endpoints.get_all(&keys, now), self.endpoints.acquire_slots(&keys, SLOTS, now));
        let together = Together::new(COMPANY);
        let (mut ready, mut alone) = (Vec::new(), Vec::new());
        for ((due, endpoint), slot) in groups.into_iter().zip(endpoints).zip(slots) {
            match (endpoint, slot) {
                (Answer::Here(endpoint), Answer::Here(slot)) => ready.push((due, endpoint, slot)),
                (endpoint, slot) => alone.push((due, endpoint, slot)),
            }
        }
        // Who is still waited for is waited for alone.
        let alone = alone.into_iter().map(async |(due, endpoint, slot)| {
            let (endpoint, slot) = tokio::join!(endpoint.get(), slot.get());
            self.start_all(vec![(due, endpoint, slot)], &together).await
        });
        let (mut outcomes, alone) = tokio::join!(self.start_all(ready, &together), join_all(alone));
        outcomes.extend(alone.into_iter().flatten());
        outcomes
    }

    async fn start_all(&self, groups: Vec<Arrived>, together: &Together) -> Outcomes {
        let (mut here, mut slots, mut outcomes) = (Vec::new(), Vec::new(), Outcomes::new());
        for (due, endpoint, slot) in groups {
            match endpoint {
                Ok(endpoint) => {
                    here.push(Group { endpoint, due });
                    slots.push(Answer::Here(slot));
                }
                // Its slot runs out by itself.
                Err(error) => outcomes.extend(failed(due, error)),
            }
        }
        outcomes.extend(self.start(here, slots, &WAITS, together).await);
        outcomes
    }

    /// Delivers to those who have a slot; the others wait for theirs. One that is slow is not waited for, and of one that hangs no slot but the
    /// first counts.
    async fn start(
        &self,
        groups: Vec<Group>,
        slots: Vec<Answer<'_, Option<Slot>>>,
        waits: &[Duration],
        together: &Together,
    ) -> Outcomes {
        let now = self.now();
        let (mut admitted, mut waiting, mut held, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut outcomes = Outcomes::new();
        for (group, slot) in groups.into_iter().zip(slots) {
            let slot = match slot {
                Answer::Here(slot) => slot,
                Answer::Awaited(slot) => {
                    alone.push((group, slot));
                    continue;
                }
            };
            match (slot, group.pace(now)) {
                (Ok(Some(slot)), pace) if slot.is_first() || pace != Pace::Hanging => admitted.push((group, slot)),
                (Ok(slot), Pace::Hanging | Pace::Slow) => held.push((group, slot)),
                (Ok(_), Pace::Quick) => waiting.push(group),
                (Err(error), _) => outcomes.extend(failed(group.due, error)),
            }
        }
        let alone = alone.into_iter().map(async |(group, slot)| {
            let slot = vec![Answer::Here(slot.await)];
            Box::pin(self.start(vec![group], slot, waits, together)).await
        });
        let (alone, attempted, waited, put_off) = tokio::join!(
            join_all(alone),
            self.attempt_all(admitted, together),
            self.wait_all(waiting, waits, together),
            join_all(held.into_iter().map(|(group, slot)| self.hold(group, slot, together))),
        );
        outcomes.extend(alone.into_iter().flatten());
        outcomes.extend(attempted);
        outcomes.extend(waited);
        outcomes.extend(put_off.into_iter().flatten());
        outcomes
    }

    async fn wait_all(&self, groups: Vec<Group>, waits: &[Duration], together: &Together) -> Outcomes {
        if groups.is_empty() {
            return Outcomes::new();
        }
        let Some((wait, later)) = waits.split_first() else {
            let now = self.now();
            let put_off = groups.into_iter().map(|group| self.put_off_all(group.due, now + put_off(Pace::Quick)));
            return join_all(put_off).await.into_iter().flatten().collect();
        };
        tokio::time::sleep(*wait).await;
        let keys: Vec<_> = groups.iter().filter_map(|group| group.due.first()).map(|due| whose(&due.order)).collect();
        let slots = self.endpoints.acquire_slots(&keys, SLOTS, self.now()).await;
        Box::pin(self.start(groups, slots, later, together)).await
    }

    /// Puts off what is for an endpoint that is slow or hangs, and gives back a slot that does not count.
    async fn hold(&self, group: Group, slot: Option<Slot>, together: &Together) -> Outcomes {
        let slot = slot.map(|slot| (slot, together.place()));
        let now = self.now();
        let until = now + put_off(group.pace(now));
        let outcomes = self.put_off_all(group.due, until).await;
        if let Some((slot, place)) = slot {
            self.release(slot, place, together).await;
        }
        outcomes
    }

    /// Takes the attempts of these groups on and makes them.
    async fn attempt_all(&self, groups: Vec<(Group, Slot)>, together: &Together) -> Outcomes {
        let due = groups.iter().flat_map(|(group, _)| &group.due);
        let orders: Vec<DeliveryOrder> = due.map(|ordered| ordered.order.clone()).collect();
        let mut claims = self.deliveries.claim(orders, self.now()).await.into_iter();
        let admitted: Vec<Admitted<'_>> = groups
            .into_iter()
            .map(|(Group { endpoint, due }, slot)| {
                let occupied = Occupied::new(slot, due.len());
                let claimed = due.into_iter().zip(claims.by_ref());
                let claimed = claimed.map(|(ordered, claim)| (ordered, claim, together.place())).collect();
                Admitted { occupied, endpoint, claimed }
            })
            .collect();
        let attempted = join_all(admitted.into_iter().map(|admitted| self.attempt_group(admitted, together))).await;
        attempted.into_iter().flatten().collect()
    }

    async fn attempt_group(&self, admitted: Admitted<'_>, together: &Together) -> Outcomes {
        let Admitted { occupied, endpoint, claimed } = admitted;
        let attempts = claimed.into_iter().map(|(ordered, claim, place)| {
            let (endpoint, writing) = (endpoint.clone(), Writing { together, place, occupied: &occupied });
            async move {
                let claim = claim.get().await;
                if !matches!(claim, Ok(Claim::Taken(_))) {
                    // It writes no line.
                    writing.occupied.leave();
                }
                let outcome = match claim {
                    Ok(claim) => {
                        let redelivered = is_redelivered(&ordered.message);
                        let work = self.carry_out(claim, &ordered.order, endpoint, redelivered, writing);
                        // One that makes us panic, by a fault of ours, keeps nobody else's from being made.
                        AssertUnwindSafe(work).catch_unwind().await.unwrap_or(Err(DeliverError::Panicked))
                    }
                    Err(error) => Err(error.into()),
                };
                (ordered.message, outcome)
            }
        });
        let outcomes = join_all(attempts).await;
        if let Some(slot) = occupied.end() {
            self.release(slot, together.place(), together).await;
        }
        outcomes
    }

    pub(crate) async fn release(&self, slot: Slot, place: Place<'_>, together: &Together) {
        let tried = self.write(self.endpoints.releasing(&slot), place, together).await;
        if let Err(error) = self.endpoints.released(&slot, tried).await {
            tracing::warn!(error = error_chain(&error), "a slot is left to run out");
        }
    }

    /// Makes an update, with whatever else of the batch is to be made then.
    pub(crate) async fn write(&self, statement: Statement, place: Place<'_>, together: &Together) -> Tried {
        let write = async |statements: Vec<Statement>| self.db.try_all(statements).await;
        together.write(place, statement, write).await.unwrap_or_default()
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
fn put_off(pace: Pace) -> TimeDelta {
    let least = match pace {
        Pace::Quick => PUT_OFF,
        Pace::Slow => PUT_OFF_SLOW,
        Pace::Hanging => PUT_OFF_HANGING,
    };
    let more_ms = least.num_milliseconds() * i64::from(u16::from_be_bytes(random_bytes())) / i64::from(u16::MAX);
    least + TimeDelta::milliseconds(more_ms)
}

/// All of them come again.
fn failed(orders: Vec<Ordered>, error: StoreError) -> Outcomes {
    let error = Arc::new(error);
    orders.into_iter().map(|ordered| (ordered.message, Err(DeliverError::Group(Arc::clone(&error))))).collect()
}
