//! An operator's request to order anew whatever waits for an endpoint, a page to a message.

use futures::stream::{self, StreamExt, TryStreamExt};
use outbound::queue::Resumption;

use crate::{App, DeliverError};

/// Messages that are sent at once.
const CONCURRENT_ORDERS: usize = 16;

impl App {
    /// Orders a page, and asks for the next. What dies in between is done again: orders that are sent twice count once.
    pub(crate) async fn resume(&self, asked: &Resumption) -> Result<(), DeliverError> {
        let now = self.now();
        let (orders, next) = self.deliveries.waiting(asked, now).await?;
        let sending: Vec<_> = orders.iter().map(|order| self.retries.send(order, now)).collect();
        stream::iter(sending).buffer_unordered(CONCURRENT_ORDERS).try_collect::<Vec<()>>().await?;
        if let Some(next) = &next {
            self.retries.send_resumption(next).await?;
        }
        let (coach_id, endpoint_id) = (asked.coach_id.as_str(), asked.resume.as_str());
        tracing::info!(coach_id, endpoint_id, orders = orders.len(), "what waits is ordered anew");
        Ok(())
    }
}
