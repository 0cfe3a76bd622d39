//! Orders of deliveries that have been due for too long. Each pending delivery has an order in a queue: a delivery that
//! is long due has lost it, by a fault of ours. The schedule sends the order again, and the dashboard shows the number.

use std::collections::{BTreeMap, HashMap};

use domain::delivery::{DeliveryOrder, OrderFlow};
use domain::id::EndpointId;
use domain::time::Timestamp;
use futures::future::join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use runtime::{BoxError, Metric, Unit, add};
use store::StoreError;
use store::delivery::OverdueDelivery;
use store::endpoint_ref::EndpointRef;

use crate::App;

/// Pending deliveries that were long due, and whose orders were sent again.
const ORDERS_MISSING: Metric = Metric::logged("orders_missing", Unit::Count);
/// Most megabytes of the index that a run reads: some 300,000 deliveries that wait.
const MAX_PAGES: usize = 100;
/// Number of orders after which a run ends. The next run continues.
const ENOUGH_ORDERS: usize = 5_000;
/// Deliveries that are read and ordered together.
const GROUP: usize = 100;
/// Requests to the store at once.
const CONCURRENT_REQUESTS: usize = 16;

/// Orders that were sent again.
#[derive(Default)]
struct Reordered {
    orders: usize,
    /// Those of endpoints whose orders do not lag.
    missing: usize,
}

impl App {
    /// Sends the orders of deliveries that are long due again.
    pub(crate) async fn reorder_overdue(&self) -> Result<(), BoxError> {
        let now = self.now();
        let (mut start, mut all) = (None, Reordered::default());
        for _ in 0..MAX_PAGES {
            let page = self.deliveries.overdue_page(start, now).await?;
            let Reordered { orders, missing } = self.reorder(page.overdue, now).await?;
            all = Reordered { orders: all.orders + orders, missing: all.missing + missing };
            start = page.next;
            if start.is_none() || all.orders >= ENOUGH_ORDERS {
                break;
            }
        }
        if start.is_some() {
            tracing::warn!(orders = all.orders, "did not look at all pending deliveries");
        }
        if all.missing > 0 {
            add(ORDERS_MISSING, all.missing as f64);
        }
        Ok(())
    }

    /// Sends the orders of these deliveries, apart from those of endpoints whose orders wait on purpose.
    async fn reorder(&self, mut overdue: Vec<OverdueDelivery>, now: Timestamp) -> Result<Reordered, BoxError> {
        let flows = self.flows_of(&overdue, now).await?;
        let flow_of = |endpoint: &EndpointId| flows.get(endpoint).copied().unwrap_or(OrderFlow::Moves);
        overdue.retain(|delivery| flow_of(&delivery.endpoint.id) != OrderFlow::Waits);
        let mut all = Reordered::default();
        for group in overdue.chunks(GROUP) {
            let orders = self.deliveries.next_orders(group, now).await?;
            self.retries.send_all(&orders, now).await.into_iter().collect::<Result<(), _>>()?;
            let noting = join_all(orders.iter().map(|order| self.deliveries.mark_reordered(order, now))).await;
            noting.into_iter().collect::<Result<(), _>>()?;
            for DeliveryOrder { coach_id, endpoint_id, delivery_id, attempt, .. } in &orders {
                let lags = flow_of(endpoint_id) == OrderFlow::Lags;
                all.missing += usize::from(!lags);
                let (coach_id, endpoint_id) = (coach_id.as_str(), endpoint_id.as_str());
                let delivery_id = delivery_id.as_str();
                tracing::warn!(coach_id, endpoint_id, delivery_id, attempt, lags, "re-enqueued an overdue delivery");
            }
            all.orders += orders.len();
        }
        Ok(all)
    }

    /// The flows of orders of these deliveries' endpoints.
    async fn flows_of(
        &self,
        overdue: &[OverdueDelivery],
        now: Timestamp,
    ) -> Result<HashMap<EndpointId, OrderFlow>, StoreError> {
        let endpoints: BTreeMap<&EndpointId, &EndpointRef> =
            overdue.iter().map(|delivery| (&delivery.endpoint.id, &delivery.endpoint)).collect();
        let reads: Vec<_> = endpoints
            .into_values()
            .map(|EndpointRef { coach, id }| async move {
                let found = self.endpoints.find(coach, id).await?.map(|found| found.with_health());
                Ok::<_, StoreError>((id.clone(), OrderFlow::of(found.as_ref(), now)))
            })
            .collect();
        stream::iter(reads).buffer_unordered(CONCURRENT_REQUESTS).try_collect().await
    }
}
