//! Jobs on the deliveries of an endpoint. A message is one page: its work is done, then the message for the next page
//! is sent, to wait a little. A crash in between repeats the page.

use domain::delivery::{DeliveryJob, JobWork, Recovery};
use domain::endpoint::EndpointStatus;
use domain::id::DeliveryId;
use domain::time::Timestamp;
use store::delivery::JobPage;
use store::endpoint_ref::EndpointRef;

use crate::{App, DeliverError};

impl App {
    /// Does a page of a job, and sends the job's next message.
    pub(crate) async fn work_on(&self, job: &DeliveryJob) -> Result<(), DeliverError> {
        let endpoint = EndpointRef { coach: job.coach_id.clone(), id: job.endpoint_id.clone() };
        let last = match &job.work {
            JobWork::Resume => self.resume(&endpoint, None, job.after.as_ref()).await?,
            JobWork::ResumeDue { closed_at } => self.resume(&endpoint, Some(*closed_at), job.after.as_ref()).await?,
            JobWork::Recover(recovery) => self.recover(&endpoint, recovery, job.after.as_ref()).await?,
        };
        match last {
            Some(last) => Ok(self.retries.send_job(&job.after(last)).await?),
            None => Ok(()),
        }
    }

    /// Enqueues a page of pending deliveries again; after the breaker was closed early, of those that are due. Returns
    /// the last one of the page, if there may be more.
    async fn resume(
        &self,
        endpoint: &EndpointRef,
        closed_at: Option<Timestamp>,
        after: Option<&DeliveryId>,
    ) -> Result<Option<DeliveryId>, DeliverError> {
        let now = self.now();
        let JobPage { done: orders, last } = self.deliveries.resume_page(endpoint, closed_at, after, now).await?;
        self.retries.send_all(&orders, now).await.into_iter().collect::<Result<(), _>>()?;
        let (coach_id, endpoint_id) = (endpoint.coach.as_str(), endpoint.id.as_str());
        tracing::info!(coach_id, endpoint_id, orders = orders.len(), "re-enqueued pending deliveries");
        Ok(last)
    }

    /// Begins a chain for each delivery of a page of failed ones. Returns the last one of the page, if there may be
    /// more. A recovery ends early if its endpoint takes no deliveries any more.
    async fn recover(
        &self,
        endpoint: &EndpointRef,
        recovery: &Recovery,
        after: Option<&DeliveryId>,
    ) -> Result<Option<DeliveryId>, DeliverError> {
        let EndpointRef { coach, id } = endpoint;
        let now = self.now();
        self.endpoints.prolong_recovery(coach, id, recovery, now).await?;
        let found = self.endpoints.find(coach, id).await?;
        let mut page = JobPage { done: 0, last: None };
        if found.is_some_and(|found| found.endpoint.status == EndpointStatus::Enabled) {
            page = self.deliveries.recover_page(endpoint, recovery, after, &self.units, now).await?;
        }
        if page.last.is_none() {
            self.endpoints.end_recovery(coach, id, recovery).await?;
        }
        let (coach_id, endpoint_id, recovery_id) = (coach.as_str(), id.as_str(), recovery.id.as_str());
        tracing::info!(coach_id, endpoint_id, recovery_id, deliveries = page.done, "recovered failed deliveries");
        Ok(page.last)
    }
}
