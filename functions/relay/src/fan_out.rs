//! From events to deliveries, one for each endpoint that wants them, and from deliveries to orders in the queue.
//!
//! Deliveries that come together are ordered by one or two requests: those of an endpoint beside each other, since a
//! batch of the deliverer's reads an endpoint, and takes its slot, once.

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
use store::StoreError;
use store::delivery::{DeliveryCreation, NewDelivery};
use store::outbox::{Content, Entry};

use crate::App;
use crate::carry::{Outcomes, Placed};

/// Deliveries that are stored and ordered together: two requests to the queue.
const GROUP: usize = 20;
/// Groups at once. Each delivery of theirs is a request to the store.
const CONCURRENT_GROUPS: usize = 2;

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
    /// Makes a delivery for each endpoint that wants an entry's event, and notes it for each that misses it; orders
    /// those, and what entries order themselves. An entry is done when all of its parts are. All are tried, whatever
    /// becomes of one.
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
        let (mut placed_orders, mut failures) = (Vec::new(), Failures::new());
        let stored = join_all(group.iter().map(|part| self.stored(&part.work))).await;
        for (Part { place, .. }, stored) in group.iter().zip(stored) {
            match stored {
                Ok(order) => placed_orders.extend(order.map(|order| (*place, order))),
                Err(error) => failures.push((*place, error.into())),
            }
        }
        let (places, orders): (Vec<usize>, Vec<DeliveryOrder>) = placed_orders.into_iter().unzip();
        let sent = self.queue.send_all(&orders, self.now()).await;
        failures.extend(places.into_iter().zip(sent).filter_map(|(place, sent)| Some((place, sent.err()?.into()))));
        failures
    }

    /// Stores a delivery, unless it is; its first order, if that may never have been sent.
    async fn stored(&self, work: &Work<'_>) -> Result<Option<DeliveryOrder>, StoreError> {
        let now = self.now();
        match work {
            Work::Order(order) => Ok(Some((*order).clone())),
            Work::Delivery { event, endpoint, made_at } => {
                let delivery = delivery_to(endpoint, event, *made_at);
                let order = DeliveryOrder::first(&event.coach_id, &endpoint.id, &delivery.id, now);
                // A delivery that is stored as not to be sent has no order.
                let is_sent = delivery.not_sent.is_none();
                Ok(match self.deliveries.create(delivery, now).await? {
                    DeliveryCreation::New | DeliveryCreation::Waiting => is_sent.then_some(order),
                    DeliveryCreation::Known => None,
                })
            }
        }
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

/// The deliveries of an entry's events. An automation's steps may name endpoints of other coaches, which are not among
/// these.
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
