//! An operator's request to order anew whatever waits for an endpoint, a page to a message.

use outbound::delivery::Resumption;

use crate::{App, DeliverError};

impl App {
    /// Orders a page, and asks for the next. What dies in between is done again: orders that are sent twice count once.
    pub(crate) async fn resume(&self, asked: &Resumption) -> Result<(), DeliverError> {
        let now = self.now();
        let (orders, next) = self.deliveries.waiting(asked, now).await?;
        self.retries.send_all(&orders, now).await.into_iter().collect::<Result<(), _>>()?;
        if let Some(next) = &next {
            self.retries.send_resumption(next).await?;
        }
        let (coach_id, endpoint_id) = (asked.coach_id.as_str(), asked.resume.as_str());
        tracing::info!(coach_id, endpoint_id, orders = orders.len(), "what waits is ordered anew");
        Ok(())
    }
}
