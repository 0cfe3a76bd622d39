//! The numbers of an endpoint's last day: what has ended, from the hourly counts, and what waits, from the index
//! `pending`.

use domain::delivery::{ActivityPeriod, DeliveryCounts, HourCounts, MAX_COUNTED_PENDING};
use domain::id::EndpointId;
use domain::time::Timestamp;
use futures::future::try_join;

use super::Deliveries;
use super::record::partition;
use crate::db::{StoreError, query_count, s};

impl Deliveries {
    /// Counts the deliveries of an endpoint that ended in the hour of `now` or in the 23 before, and those that wait.
    pub async fn last_day(&self, endpoint: &EndpointId, now: Timestamp) -> Result<DeliveryCounts, StoreError> {
        let hours = self.activity(endpoint, ActivityPeriod::last_day(now));
        let (hours, pending) = try_join(hours, self.count_pending(endpoint)).await?;
        let HourCounts { delivered, failed, .. } = hours.into_iter().sum();
        Ok(DeliveryCounts { delivered, failed, pending })
    }

    async fn count_pending(&self, endpoint: &EndpointId) -> Result<u64, StoreError> {
        let query = self.table.query("pending_of = :pk", [(":pk", s(partition(endpoint)))]).index_name("pending");
        query_count(query, MAX_COUNTED_PENDING).await
    }
}
