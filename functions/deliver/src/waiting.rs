//! Messages that have waited. An order moves to the FIFO queue, which drops copies: whether the order is due is decided
//! there, once.

use outbound::delivery::{DeliveryOrder, Resumption, WaitingMessage, read_waiting};

use aws_lambda_events::event::sqs::SqsMessage;

use crate::{App, DeliverError, Outcomes};

impl App {
    pub(crate) async fn move_on(&self, messages: Vec<SqsMessage>) -> Outcomes {
        let (mut outcomes, mut moving, mut orders) = (Outcomes::new(), Vec::new(), Vec::new());
        for message in messages {
            match read_waiting(message.body.as_deref().unwrap_or_default()) {
                Ok(WaitingMessage::Order(order)) => {
                    moving.push(message);
                    orders.push(order);
                }
                Ok(WaitingMessage::Resumption(resumption)) => {
                    let resumed = self.resume(&resumption).await;
                    outcomes.push((message, resumed));
                }
                Err(error) => outcomes.push((message, Err(error.into()))),
            }
        }
        let moved = self.queue.send_all(&orders).await.into_iter().map(|sent| sent.map_err(DeliverError::from));
        outcomes.extend(moving.into_iter().zip(moved));
        outcomes
    }

    /// Re-enqueues one page of an endpoint's pending deliveries and requests the next. A crash in between repeats the
    /// page: an order that is sent twice counts once.
    async fn resume(&self, resumption: &Resumption) -> Result<(), DeliverError> {
        let now = self.now();
        let (orders, next): (Vec<DeliveryOrder>, _) = self.deliveries.waiting(resumption, now).await?;
        self.retries.send_all(&orders, now).await.into_iter().collect::<Result<(), _>>()?;
        if let Some(next) = &next {
            self.retries.send_resumption(next).await?;
        }
        let (coach_id, endpoint_id) = (resumption.coach_id.as_str(), resumption.resume.as_str());
        tracing::info!(coach_id, endpoint_id, orders = orders.len(), "re-enqueued pending deliveries");
        Ok(())
    }
}
