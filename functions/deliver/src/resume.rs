//! An operator's request to re-enqueue the pending deliveries of an endpoint, one page per message.

use outbound::delivery::Resumption;

use crate::{App, DeliverError};

impl App {
    /// Re-enqueues one page and requests the next. A crash in between repeats the page: an order that is sent twice
    /// counts once.
    pub(crate) async fn resume(&self, resumption: &Resumption) -> Result<(), DeliverError> {
        let now = self.now();
        let (orders, next) = self.deliveries.waiting(resumption, now).await?;
        self.retries.send_all(&orders, now).await.into_iter().collect::<Result<(), _>>()?;
        if let Some(next) = &next {
            self.retries.send_resumption(next).await?;
        }
        let (coach_id, endpoint_id) = (resumption.coach_id.as_str(), resumption.resume.as_str());
        tracing::info!(coach_id, endpoint_id, orders = orders.len(), "re-enqueued pending deliveries");
        Ok(())
    }
}
