//! Sending entries and deleting them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use domain::delivery::DeliveryOrder;
use domain::email::Email;
use domain::endpoint::Endpoint;
use domain::event::Event;
use domain::id::{CoachId, DeliveryId};
use domain::notice::EndpointNotice;
use domain::time::Timestamp;
use futures::future::join_all;
use futures::stream::{self, StreamExt};
use outbound::bus::BusError;
use outbound::gather::{Gathering, Place};
use outbound::queue::QueueError;
use runtime::{BoxError, Metric, Unit, add, error_chain, note_each};
use store::StoreError;
use store::delivery::{Created, NewDelivery};
use store::outbox::{Content, Entry};

use crate::App;

/// Entries that are worked on at once.
const CONCURRENT_ENTRIES: usize = 16;
/// How long orders wait for those of other entries, whose deliveries take that much longer to store. A lone entry's wait for none.
const COMPANY: Duration = Duration::from_millis(10);
/// How long a coach's mail is tried.
const MAIL_PATIENCE: TimeDelta = TimeDelta::days(1);
/// From the transaction that wrote an entry, or let it go, to the messages that carry it on.
const OUTBOX_LATENCY_MS: Metric = Metric::new("outbox_latency_ms", Unit::Milliseconds);

/// Orders of the batch's entries: they go to the queue together.
type Orders = Gathering<Vec<DeliveryOrder>, Result<(), QueueError>>;

/// The endpoints of the workspaces that a batch has events of: read once for all of them.
type EndpointsByCoach = HashMap<CoachId, Result<Vec<Endpoint>, Arc<StoreError>>>;

impl App {
    /// Sends the entries and deletes them; for each what came of it, in their order. Failures are logged here.
    pub(crate) async fn carry(&self, entries: &[Entry]) -> Vec<Result<(), BoxError>> {
        let (facts, others): (Vec<_>, Vec<_>) =
            entries.iter().enumerate().partition(|(_, entry)| fact_of(&entry.content).is_some());
        let orders = Orders::new(COMPANY);
        // A bus that is slow holds up nobody's webhooks.
        let facts = async {
            let contents: Vec<_> = facts.iter().filter_map(|(_, entry)| fact_of(&entry.content)).collect();
            let (put, nobody) = (self.bus.put(&contents).await, EndpointsByCoach::new());
            let work: Vec<_> = facts
                .iter()
                .zip(put)
                .map(|((i, entry), put)| (*i, self.carry_one(entry, Some(put), &nobody, (orders.place(), &orders))))
                .collect();
            carried(work).await
        };
        let others = async {
            let endpoints = self.endpoints_of(entries).await;
            let work: Vec<_> = others
                .iter()
                .map(|(i, entry)| (*i, self.carry_one(entry, None, &endpoints, (orders.place(), &orders))))
                .collect();
            carried(work).await
        };
        let (facts, others) = tokio::join!(facts, others);
        let mut results: Vec<_> = facts.into_iter().chain(others).collect();
        results.sort_unstable_by_key(|(i, _)| *i);
        results.into_iter().map(|(_, result)| result).collect()
    }

    async fn carry_one(
        &self,
        entry: &Entry,
        put: Option<Result<(), BusError>>,
        endpoints: &EndpointsByCoach,
        (place, orders): (Place<'_>, &Orders),
    ) -> Result<(), BoxError> {
        let content = &entry.content;
        let (id, coach) = (content.id(), content.coach_id());
        for id in told_ids(content) {
            note_each("event_ids", &id);
        }
        note_each("coach_ids", coach.as_str());
        let sent = async {
            match content {
                Content::Event(event) => self.deliver(event, entry.send_after, endpoints, (place, orders)).await?,
                Content::Events { events } => {
                    drop(place);
                    let each = events
                        .iter()
                        .map(|event| self.deliver(event, entry.send_after, endpoints, (orders.place(), orders)));
                    // All are tried, whatever becomes of one.
                    join_all(each).await.into_iter().collect::<Result<(), _>>()?;
                }
                Content::Fact(_) => {
                    drop(place);
                    put.ok_or("the bus was not asked")??;
                }
                Content::Order(order) => self.order(vec![*order.clone()], place, orders).await?,
                Content::Notice(notice) => {
                    drop(place);
                    // The stream brings what it has brought again where something before it failed: a coach is told once.
                    if self.outbox.get(&id).await?.is_some()
                        && let Err(error) = self.mail(notice).await
                    {
                        if self.now() < entry.send_after + MAIL_PATIENCE {
                            return Err(error);
                        }
                        // It would be tried for ever, and keep the alarm on that other entries are to ring.
                        let error = error_chain(error.as_ref());
                        tracing::error!(entry_id = &*id, coach_id = coach.as_str(), error, "a coach is not told");
                    }
                }
            }
            add(OUTBOX_LATENCY_MS, (self.now().ms() - entry.send_after.ms()).max(0) as f64);
            self.outbox.delete(content).await.map_err(BoxError::from)
        };
        let sent = sent.await;
        if let Err(error) = &sent {
            let error = error_chain(error.as_ref());
            tracing::error!(entry_id = &*id, coach_id = coach.as_str(), error, "an entry was not sent");
        }
        sent
    }

    /// Tells a coach of an endpoint. A workspace keeps its own address: one that is no e-mail address is told nothing.
    async fn mail(&self, notice: &EndpointNotice) -> Result<(), BoxError> {
        let workspace = self.workspaces.get(&notice.coach_id).await?;
        match workspace.map(|found| Email::parse(&found.workspace.email)) {
            Some(Ok(email)) => Ok(self.mailer.send(&email, &notice.render()).await?),
            Some(Err(_)) | None => {
                let (coach_id, endpoint_id) = (notice.coach_id.as_str(), notice.endpoint_id.as_str());
                tracing::warn!(coach_id, endpoint_id, "a coach has no address to be told at");
                Ok(())
            }
        }
    }

    /// Makes a delivery for each endpoint that wants the event, and notes it for each that misses it. An automation's steps may name
    /// endpoints of other coaches, which are not among these.
    async fn deliver(
        &self,
        event: &Event,
        made_at: Timestamp,
        endpoints: &EndpointsByCoach,
        (place, orders): (Place<'_>, &Orders),
    ) -> Result<(), BoxError> {
        let endpoints = match endpoints.get(&event.coach_id) {
            Some(Ok(endpoints)) => endpoints,
            Some(Err(error)) => return Err(Arc::clone(error).into()),
            None => return Err("the event's endpoints were not read".into()),
        };
        let times = (made_at, self.now());
        let mut made_orders: Vec<DeliveryOrder> = Vec::new();
        let mut outcome = Ok(());
        for made in join_all(endpoints.iter().map(|endpoint| self.delivery_to(endpoint, event, times))).await {
            match made {
                Ok(order) => made_orders.extend(order),
                Err(error) => outcome = Err(error.into()),
            }
        }
        // What is stored is ordered, also where another endpoint's is not: the event comes again for that one.
        if !made_orders.is_empty() {
            self.order(made_orders, place, orders).await?;
        }
        outcome
    }

    /// Sends an entry's orders, with whatever other entries have to send by then; an entry hears of its own.
    async fn order(&self, made: Vec<DeliveryOrder>, place: Place<'_>, orders: &Orders) -> Result<(), BoxError> {
        let send = async |all: Vec<Vec<DeliveryOrder>>| {
            let counts: Vec<usize> = all.iter().map(Vec::len).collect();
            let mut sent = self.queue.send_all(&all.concat(), self.now()).await.into_iter();
            let of_one = |count| {
                let sent: Vec<_> = sent.by_ref().take(count).collect();
                sent.into_iter().collect()
            };
            counts.into_iter().map(of_one).collect()
        };
        orders
            .write(place, made, send)
            .await
            .ok_or("it is not known whether the orders were sent")?
            .map_err(BoxError::from)
    }

    /// Stores the delivery to an endpoint, if it is to have the event; its first order, unless that is known to have been sent.
    async fn delivery_to(
        &self,
        endpoint: &Endpoint,
        event: &Event,
        (made_at, now): (Timestamp, Timestamp),
    ) -> Result<Option<DeliveryOrder>, StoreError> {
        let (wants, misses) = (endpoint.wants(event), endpoint.misses(event));
        if !wants && !misses {
            return Ok(None);
        }
        let id = DeliveryId::derive(event.occurred_at.ms(), &event.id, &endpoint.id);
        let delivery = NewDelivery {
            endpoint_id: &endpoint.id,
            id: &id,
            event_id: &event.id,
            event_type: event.event_type.as_str(),
            client_id: &event.client_id,
            made_at,
            body: &event.render(endpoint.payload_mode),
        };
        if misses {
            self.deliveries.create_unsent(delivery, &endpoint.not_sent(), now).await?;
            return Ok(None);
        }
        match self.deliveries.create(delivery, now).await? {
            Created::New | Created::Waiting => Ok(Some(DeliveryOrder::first(&event.coach_id, &endpoint.id, &id, now))),
            Created::Known => Ok(None),
        }
    }

    async fn endpoints_of(&self, entries: &[Entry]) -> EndpointsByCoach {
        let coaches: BTreeSet<&CoachId> = entries
            .iter()
            .filter_map(|entry| match &entry.content {
                content @ (Content::Event(_) | Content::Events { .. }) => Some(content.coach_id()),
                Content::Fact(_) | Content::Order(_) | Content::Notice(_) => None,
            })
            .collect();
        let reads = coaches.into_iter().map(|coach| async move {
            let endpoints = self.endpoints.list(coach).await.map_err(Arc::new);
            (coach.clone(), endpoints)
        });
        join_all(reads).await.into_iter().collect()
    }
}

/// What comes of each, of some at once.
async fn carried<W: Future>(work: Vec<(usize, W)>) -> Vec<(usize, W::Output)> {
    let work = work.into_iter().map(|(i, work)| async move { (i, work.await) });
    stream::iter(work).buffered(CONCURRENT_ENTRIES).collect().await
}

/// The ids by which an entry's content is known elsewhere.
fn told_ids(content: &Content) -> Vec<Cow<'_, str>> {
    match content {
        Content::Events { events } => events.iter().map(|event| event.id.as_str().into()).collect(),
        Content::Event(_) | Content::Fact(_) | Content::Order(_) | Content::Notice(_) => vec![content.id()],
    }
}

fn fact_of(content: &Content) -> Option<&domain::outgoing::OutgoingFact> {
    match content {
        Content::Fact(fact) => Some(fact),
        Content::Event(_) | Content::Events { .. } | Content::Order(_) | Content::Notice(_) => None,
    }
}
