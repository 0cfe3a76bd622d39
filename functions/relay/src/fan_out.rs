//! Turns events into deliveries, one for each endpoint that wants them, and enqueues the orders of deliveries.
//!
//! A relay may die between storing a delivery and sending its order. The repeat finds the delivery and sends the order,
//! whatever the endpoint is by then: it looks for deliveries to endpoints that have changed or were deleted since the
//! entry was written, too. `deliver` ends what an endpoint no longer takes.
//!
//! The orders of a group go out in one or two requests. Orders for an endpoint that does not answer wait until it is
//! tried again: SQS looks for other groups in the first 120,000 messages of a FIFO queue only.

use std::collections::{BTreeMap, HashMap};
use std::slice;
use std::sync::Arc;

use domain::delivery::{DeliveryOrder, HourCounts};
use domain::endpoint::{Endpoint, EndpointWithHealth};
use domain::event::Event;
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::future::{join, join_all};
use futures::stream::{self, StreamExt};
use runtime::BoxError;
use store::StoreError;
use store::delivery::{DeliveryCreation, NewDelivery};
use store::outbox::{Content, Entry};

use crate::publish::{Failures, Indexed, Outcomes};
use crate::{App, CLOCK_SKEW};

/// Deliveries that are stored and enqueued together: two requests to the queue.
const GROUP: usize = 20;
/// Groups at once. Each delivery of a group is a request to the store.
const CONCURRENT_GROUPS: usize = 2;

/// The endpoints of a workspace.
struct CoachEndpoints {
    present: Vec<EndpointWithHealth>,
    /// Endpoints that were deleted after one of the batch's entries was written.
    deleted: Vec<EndpointId>,
}

/// The endpoints of the workspaces with events in a batch, read once per workspace.
type EndpointsByCoach = HashMap<CoachId, Result<CoachEndpoints, Arc<StoreError>>>;

/// A part of an entry's work, with the entry's index.
struct Part<'a> {
    index: usize,
    work: Work<'a>,
}

enum Work<'a> {
    /// An event for an endpoint that wants or misses it.
    Delivery { event: &'a Event, to: &'a EndpointWithHealth, made_at: Timestamp },
    /// An event for an endpoint that wants nothing of the kind any more, but may have when the entry was relayed first.
    Former { event: &'a Event, endpoint: &'a EndpointId, made_at: Timestamp },
    /// A stored delivery that a coach ordered.
    Order(&'a DeliveryOrder),
}

impl App {
    /// Creates a delivery for each endpoint that wants an entry's event, and one without attempts for each that misses
    /// the event. Stores the event in the feed. Enqueues the orders of deliveries and of order entries. An entry is
    /// done when all its parts are. A failed part does not stop the others.
    pub(crate) async fn enqueue_all(&self, entries: &[Indexed<'_>]) -> Outcomes {
        let endpoints = self.endpoints_of(entries).await;
        let (mut parts, mut outcomes) = (Vec::<Part<'_>>::new(), BTreeMap::new());
        for (index, entry) in entries {
            let index = *index;
            let works = match &entry.content {
                Content::Event(event) => deliveries_of(slice::from_ref(&**event), entry, &endpoints),
                Content::Events { events } => deliveries_of(events, entry, &endpoints),
                Content::Order(order) => Ok(vec![Work::Order(order)]),
                Content::Job(job) => {
                    outcomes.insert(index, self.retries.send_job(job).await.map_err(BoxError::from));
                    continue;
                }
                Content::Change(_) | Content::Notice(_) => continue,
            };
            let done = works.map(|works| parts.extend(works.into_iter().map(|work| Part { index, work })));
            outcomes.insert(index, done);
        }
        let groups: Vec<_> = parts.chunks(GROUP).map(|group| self.enqueue_group(group)).collect();
        let enqueue = async {
            let failures: Vec<Failures> = stream::iter(groups).buffered(CONCURRENT_GROUPS).collect().await;
            failures
        };
        let (enqueued, fed) = join(enqueue, self.feed_all(entries)).await;
        let failures = enqueued.into_iter().flatten().chain(fed);
        outcomes.extend(failures.map(|(index, error)| (index, Err(error))));
        outcomes.into_iter().collect()
    }

    async fn enqueue_group(&self, group: &[Part<'_>]) -> Failures {
        let stored = join_all(group.iter().map(|part| self.store_delivery(&part.work))).await;
        let (mut orders, mut failures) = (Vec::new(), Failures::new());
        for (Part { index, .. }, stored) in group.iter().zip(stored) {
            match stored {
                Ok(order) => orders.extend(order.map(|order| (*index, order))),
                Err(error) => failures.push((*index, error.into())),
            }
        }
        let now = self.now();
        let (waiting, due): (Vec<_>, Vec<_>) = orders.into_iter().partition(|(_, order)| order.due_at > now);
        let [waiting, due] = [waiting, due].map(|orders| orders.into_iter().unzip::<_, _, Vec<usize>, Vec<_>>());
        let sent = join(self.retries.send_all(&waiting.1, now), self.queue.send_all(&due.1)).await;
        for (indexes, sent) in [(waiting.0, sent.0), (due.0, sent.1)] {
            failures
                .extend(indexes.into_iter().zip(sent).filter_map(|(index, sent)| Some((index, sent.err()?.into()))));
        }
        failures
    }

    /// Stores a delivery unless it exists. Returns its first order if that may not have been sent yet.
    async fn store_delivery(&self, work: &Work<'_>) -> Result<Option<DeliveryOrder>, StoreError> {
        let now = self.now();
        match work {
            Work::Order(order) => Ok(Some((*order).clone())),
            Work::Former { event, endpoint, made_at } => {
                let id = DeliveryId::derive(made_at.ms(), &event.id, endpoint);
                let waits = self.deliveries.created(endpoint, &id).await? == DeliveryCreation::Waiting;
                Ok(waits.then(|| DeliveryOrder::first(&event.coach_id, endpoint, &id, now)))
            }
            Work::Delivery { event, to: EndpointWithHealth { endpoint, health, .. }, made_at } => {
                let delivery = delivery_to(endpoint, event, *made_at);
                let open_until = health.breaker.open_until(now);
                let order = DeliveryOrder {
                    probes: open_until.is_some(),
                    slow: open_until.is_none() && health.pace.is_slow(now),
                    ..DeliveryOrder::first(&event.coach_id, &endpoint.id, &delivery.id, open_until.unwrap_or(now))
                };
                // A missed event is in the delivery log, but has no order.
                let has_order = delivery.not_sent.is_none();
                let created = self.deliveries.create(delivery, now).await?;
                if created == DeliveryCreation::New && !has_order {
                    self.deliveries.count(&endpoint.id, now, HourCounts::NOT_SENT).await;
                }
                Ok(match created {
                    DeliveryCreation::New => has_order.then_some(order),
                    // The endpoint may have wanted the event when the delivery was stored, and miss it now.
                    DeliveryCreation::Waiting => Some(order),
                    DeliveryCreation::Known => None,
                })
            }
        }
    }

    async fn endpoints_of(&self, entries: &[Indexed<'_>]) -> EndpointsByCoach {
        // The earliest entry of each coach.
        let mut coaches = BTreeMap::<&CoachId, Timestamp>::new();
        for (_, entry) in entries {
            match &entry.content {
                content @ (Content::Event(_) | Content::Events { .. }) => {
                    let made_at = coaches.entry(content.coach_id()).or_insert(entry.send_after);
                    *made_at = entry.send_after.min(*made_at);
                }
                Content::Change(_) | Content::Order(_) | Content::Job(_) | Content::Notice(_) => {}
            }
        }
        let reads = coaches.into_iter().map(|(coach, made_at)| async move {
            (coach.clone(), self.endpoints_since(coach, made_at).await.map_err(Arc::new))
        });
        join_all(reads).await.into_iter().collect()
    }

    /// Reads the endpoints of a coach, and those that were deleted after `made_at`.
    async fn endpoints_since(&self, coach: &CoachId, made_at: Timestamp) -> Result<CoachEndpoints, StoreError> {
        let (present, deleted_at) = self.endpoints.list_with_deletion(coach).await?;
        let since = made_at + -CLOCK_SKEW;
        let deleted = match deleted_at {
            Some(at) if at >= since => self.deliveries.deleted_since(coach, since).await?,
            _ => Vec::new(),
        };
        Ok(CoachEndpoints { present, deleted })
    }
}

/// The deliveries of an entry's events. An automation's steps may name endpoints of other coaches. These get nothing.
fn deliveries_of<'a>(
    events: &'a [Event],
    entry: &'a Entry,
    endpoints: &'a EndpointsByCoach,
) -> Result<Vec<Work<'a>>, BoxError> {
    let endpoints = match endpoints.get(entry.content.coach_id()) {
        Some(Ok(endpoints)) => endpoints,
        Some(Err(error)) => return Err(Arc::clone(error).into()),
        None => return Err("the event's endpoints were not read".into()),
    };
    let made_at = entry.send_after;
    let deliveries_of_one = |event: &'a Event| {
        let present = endpoints.present.iter().filter_map(move |to| {
            if to.endpoint.wants(event) || to.endpoint.misses(event) {
                return Some(Work::Delivery { event, to, made_at });
            }
            let has_changed = to.changed_at.is_some_and(|at| at >= made_at + -CLOCK_SKEW);
            has_changed.then_some(Work::Former { event, endpoint: &to.endpoint.id, made_at })
        });
        let deleted = endpoints.deleted.iter().map(move |endpoint| Work::Former { event, endpoint, made_at });
        present.chain(deleted)
    };
    Ok(events.iter().flat_map(deliveries_of_one).collect())
}

fn delivery_to<'a>(endpoint: &'a Endpoint, event: &'a Event, made_at: Timestamp) -> NewDelivery<'a> {
    NewDelivery {
        coach_id: &event.coach_id,
        endpoint_id: &endpoint.id,
        // The time of the entry is the same each time that the entry is relayed.
        id: DeliveryId::derive(made_at.ms(), &event.id, &endpoint.id),
        event_id: &event.id,
        event_type: event.event_type.as_str(),
        subject: event.subject(),
        made_at,
        may_repeat: event.may_repeat(),
        body: event.render(endpoint.payload_mode),
        not_sent: endpoint.misses(event).then(|| endpoint.not_sent()),
    }
}
