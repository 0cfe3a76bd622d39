//! From events to deliveries, one for each endpoint that wants them, and from deliveries to orders in the queue.
//!
//! Deliveries that come together are stored by one request, and ordered by one or two: those of an endpoint beside each other, since a batch of
//! the deliverer's reads an endpoint, and takes its slot, once. One that has to be stored alone is ordered alone, and nobody waits for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::slice;
use std::sync::Arc;

use domain::delivery::DeliveryOrder;
use domain::endpoint::Endpoint;
use domain::event::Event;
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::future::join_all;
use futures::stream::{self, StreamExt};
use runtime::BoxError;
use store::delivery::{Created, NewDelivery};
use store::outbox::{Content, Entry};
use store::{Answer, StoreError};

use crate::App;
use crate::carry::{Outcomes, Placed};

/// Deliveries that are stored and ordered together: a request to the store, two to the queue.
const GROUP: usize = 20;
/// Groups at once.
const CONCURRENT_GROUPS: usize = 8;

/// The endpoints of the workspaces that a batch has events of: read once for all of them.
type EndpointsByCoach = HashMap<CoachId, Result<Vec<Endpoint>, Arc<StoreError>>>;

/// What an entry asks for, with the entry's place.
struct Part<'a> {
    place: usize,
    work: Work<'a>,
}

enum Work<'a> {
    /// An event for an endpoint that wants it, or misses it.
    Delivery { event: &'a Event, endpoint: &'a Endpoint, made_at: Timestamp },
    /// A delivery that a coach asked for. It is stored.
    Order(&'a DeliveryOrder),
}

impl Work<'_> {
    fn endpoint_id(&self) -> &EndpointId {
        match self {
            Self::Delivery { endpoint, .. } => &endpoint.id,
            Self::Order(order) => &order.endpoint_id,
        }
    }
}

/// Entries, by their places, of which something was not done.
type Failures = Vec<(usize, BoxError)>;

impl App {
    /// Makes a delivery for each endpoint that wants an entry's event, and notes it for each that misses it; orders those, and what entries
    /// order themselves. An entry is done when all of its parts are. All are tried, whatever becomes of one.
    pub(crate) async fn order_all(&self, entries: &[Placed<'_>]) -> Outcomes {
        let endpoints = self.endpoints_of(entries).await;
        let (mut parts, mut outcomes) = (Vec::new(), BTreeMap::new());
        for (place, entry) in entries {
            let place = *place;
            let asked = match &entry.content {
                Content::Event(event) => of_events(slice::from_ref(&**event), entry, &endpoints),
                Content::Events { events } => of_events(events, entry, &endpoints),
                Content::Order(order) => Ok(vec![Work::Order(order)]),
                Content::Change(_) | Content::Notice(_) => continue,
            };
            let asked = asked.map(|works| parts.extend(works.into_iter().map(|work| Part { place, work })));
            outcomes.insert(place, asked);
        }
        // Those of an endpoint stay in their order. A receiver that hangs is then in batches of its own, too.
        parts.sort_by(|one: &Part<'_>, other| one.work.endpoint_id().cmp(other.work.endpoint_id()));
        let groups: Vec<_> = parts.chunks(GROUP).map(|group| self.order_group(group)).collect();
        let failures: Vec<Failures> = stream::iter(groups).buffered(CONCURRENT_GROUPS).collect().await;
        outcomes.extend(failures.into_iter().flatten().map(|(place, error)| (place, Err(error))));
        outcomes.into_iter().collect()
    }

    async fn order_group(&self, group: &[Part<'_>]) -> Failures {
        let now = self.now();
        let (mut orders, mut places, mut deliveries, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for Part { place, work } in group {
            match work {
                Work::Delivery { event, endpoint, made_at } => {
                    let delivery = delivery_to(endpoint, event, *made_at);
                    let order = DeliveryOrder::first(&event.coach_id, &endpoint.id, &delivery.id, now);
                    // A delivery that is stored as not to be sent has no order.
                    places.push((*place, delivery.not_sent.is_none().then_some(order)));
                    deliveries.push(delivery);
                }
                Work::Order(order) => orders.push((*place, (*order).clone())),
            }
        }
        let mut failures = Failures::new();
        for ((place, order), created) in places.into_iter().zip(self.deliveries.create(deliveries, now).await) {
            match created {
                Answer::Here(Ok(created)) => {
                    orders.extend(order.filter(|_| is_due(created)).map(|order| (place, order)))
                }
                Answer::Here(Err(error)) => failures.push((place, error.into())),
                Answer::Awaited(created) => alone.push((place, order, created)),
            }
        }
        let alone = alone.into_iter().map(async |(place, order, created)| match created.await {
            Ok(created) => self.send(order.filter(|_| is_due(created)).map(|order| (place, order))).await,
            Err(error) => vec![(place, error.into())],
        });
        let (sent, alone) = tokio::join!(self.send(orders), join_all(alone));
        failures.extend(sent);
        failures.extend(alone.into_iter().flatten());
        failures
    }

    async fn send(&self, orders: impl IntoIterator<Item = (usize, DeliveryOrder)>) -> Failures {
        let (places, orders): (Vec<usize>, Vec<DeliveryOrder>) = orders.into_iter().unzip();
        let sent = self.queue.send_all(&orders, self.now()).await;
        places.into_iter().zip(sent).filter_map(|(place, sent)| Some((place, sent.err()?.into()))).collect()
    }

    async fn endpoints_of(&self, entries: &[Placed<'_>]) -> EndpointsByCoach {
        let coaches: BTreeSet<&CoachId> = entries
            .iter()
            .filter_map(|(_, entry)| match &entry.content {
                content @ (Content::Event(_) | Content::Events { .. }) => Some(content.coach_id()),
                Content::Change(_) | Content::Order(_) | Content::Notice(_) => None,
            })
            .collect();
        let reads = coaches.into_iter().map(|coach| async move {
            let endpoints = self.endpoints.list(coach).await.map_err(Arc::new);
            (coach.clone(), endpoints)
        });
        join_all(reads).await.into_iter().collect()
    }
}

/// The deliveries of an entry's events. An automation's steps may name endpoints of other coaches, which are not among these.
fn of_events<'a>(
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
    let of_one = |event: &'a Event| {
        let concerned = endpoints.iter().filter(|endpoint| endpoint.wants(event) || endpoint.misses(event));
        concerned.map(move |endpoint| Work::Delivery { event, endpoint, made_at })
    };
    Ok(events.iter().flat_map(of_one).collect())
}

fn delivery_to<'a>(endpoint: &'a Endpoint, event: &'a Event, made_at: Timestamp) -> NewDelivery<'a> {
    NewDelivery {
        endpoint_id: &endpoint.id,
        id: DeliveryId::derive(event.occurred_at.ms(), &event.id, &endpoint.id),
        event_id: &event.id,
        event_type: event.event_type.as_str(),
        subject: &event.subject,
        made_at,
        body: event.render(endpoint.payload_mode),
        not_sent: endpoint.misses(event).then(|| endpoint.not_sent()),
    }
}

/// Whether a delivery's first order may never have been sent.
fn is_due(created: Created) -> bool {
    match created {
        Created::New | Created::Waiting => true,
        Created::Known => false,
    }
}
