//! The recent deliveries of endpoints by their present status. They are counted in the endpoint's partition: an index
//! of statuses would have to be written with each attempt.

use domain::delivery::{DeliveryCounts, DeliveryFilter, DeliveryStatus};
use domain::id::EndpointId;
use domain::time::Timestamp;
use serde::Deserialize;

use super::Deliveries;
use super::record::{ENTITY, partition, sort_key};
use crate::db::{StoreError, from_item, query_page, s};

/// Pages that are read for one endpoint: the deliveries in 10 MB of the table, some 10,000.
const MAX_PAGES: usize = 10;

/// The members of a delivery that are counted.
#[derive(Deserialize)]
struct CountedDelivery {
    status: DeliveryStatus,
}

impl Deliveries {
    /// Counts the deliveries of an endpoint that were created since `since`. Of more than fit in `MAX_PAGES` the newest
    /// are counted. `consistent`: every earlier write counts, at twice the price.
    pub async fn counts_since(
        &self,
        endpoint: &EndpointId,
        since: Timestamp,
        consistent: bool,
    ) -> Result<DeliveryCounts, StoreError> {
        let mut counts = DeliveryCounts::default();
        let filter = DeliveryFilter { since: Some(since), ..DeliveryFilter::default() };
        let Some(ids) = filter.ids(None) else { return Ok(counts) };
        let [from, to] = [ids.start(), ids.end()].map(|id| s(sort_key(id)));
        let values = [(":pk", s(partition(endpoint))), (":from", from), (":to", to)];
        let query = self
            .table
            .query("pk = :pk AND sk BETWEEN :from AND :to", values)
            .expression_attribute_names("#status", "status")
            .projection_expression("#status")
            .consistent_read(consistent)
            .scan_index_forward(false);
        let mut start = None;
        for _ in 0..MAX_PAGES {
            let page = query_page(query.clone().set_exclusive_start_key(start)).await?;
            for item in page.items {
                let CountedDelivery { status } = from_item(ENTITY, item)?;
                counts.add(status);
            }
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        Ok(counts)
    }
}
