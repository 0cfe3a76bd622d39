//! Whether an order is carried out, put back because it has to wait, or dropped because it counts no more.

use aws_lambda_events::event::sqs::SqsMessage;
use domain::endpoint::SignedEndpoint;
use domain::time::Timestamp;
use outbound::delivery::DeliveryOrder;
use store::delivery::{Claim, PuttingBack};

use crate::batch::Writing;
use crate::{App, DeliverError};

impl App {
    /// Sends an order that is due on to wait for a slot.
    pub(crate) async fn put_off(
        &self,
        order: &DeliveryOrder,
        until: Timestamp,
        redelivered: bool,
    ) -> Result<(), DeliverError> {
        let later = DeliveryOrder { due_at: until, ..order.clone() };
        self.put_back(&later, redelivered).await
    }

    /// Sends the order on to wait for the rest of its time. Copies of a message would double at each hop of a long wait: one of them
    /// goes on. One that was brought again does too, since whoever took it before may have died before sending.
    pub(crate) async fn put_back(&self, order: &DeliveryOrder, redelivered: bool) -> Result<(), DeliverError> {
        let now = self.now();
        match self.deliveries.put_back(order, now).await? {
            PuttingBack::Noted if !redelivered => Ok(()),
            PuttingBack::Ours | PuttingBack::Noted => Ok(self.retries.send(&order.put_back(), now).await?),
            // Whoever recorded it may have died before sending the next order: without that the delivery would wait for ever.
            PuttingBack::Stale(next) if redelivered => self.send_next(&next).await,
            PuttingBack::Delivered(at) if redelivered => {
                let endpoint = self.endpoints.get(&order.coach_id, &order.endpoint_id, now).await?;
                self.note_delivered(order, endpoint.as_ref(), at).await
            }
            PuttingBack::Stale(_) | PuttingBack::Delivered(_) | PuttingBack::Past => Ok(()),
        }
    }

    /// Sends the order of an attempt that follows a recorded one.
    async fn send_next(&self, next: &DeliveryOrder) -> Result<(), DeliverError> {
        self.retries.send(next, self.now()).await?;
        self.end_with_endpoint(next).await;
        Ok(())
    }

    /// Whoever recorded that a delivery was taken may have died before noting that its endpoint works. Of one that is known to work it costs
    /// nothing.
    async fn note_delivered(
        &self,
        order: &DeliveryOrder,
        endpoint: Option<&SignedEndpoint>,
        at: Timestamp,
    ) -> Result<(), DeliverError> {
        let Some(endpoint) = endpoint else { return Ok(()) };
        Ok(self.endpoints.note_success(&order.coach_id, endpoint, at).await?)
    }

    /// Makes the attempt, if it is still to be made.
    pub(crate) async fn carry_out(
        &self,
        claim: Claim,
        order: &DeliveryOrder,
        endpoint: Option<SignedEndpoint>,
        redelivered: bool,
        writing: Writing<'_>,
    ) -> Result<(), DeliverError> {
        match claim {
            Claim::Taken(taken) => self.attempt(&taken, endpoint, writing).await,
            // Recorded, and perhaps no more than that: whoever recorded it may have died before sending the next order.
            Claim::Stale(Some(next)) if redelivered => {
                drop(writing);
                self.send_next(&next).await
            }
            Claim::Delivered(at) if redelivered => {
                drop(writing);
                self.note_delivered(order, endpoint.as_ref(), at).await
            }
            Claim::Stale(_) | Claim::Delivered(_) | Claim::Ended | Claim::Unknown => Ok(()),
            Claim::Held => Err(DeliverError::Held),
        }
    }
}

/// Whether the queue has brought this message before.
pub(crate) fn is_redelivered(message: &SqsMessage) -> bool {
    let count = message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse::<u32>().ok());
    count.is_some_and(|count| count > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[rstest::rstest]
    #[case(json!({"ApproximateReceiveCount": "1"}), false)]
    #[case(json!({"ApproximateReceiveCount": "2"}), true)]
    #[case(json!({"ApproximateReceiveCount": "x"}), false)]
    #[case(json!({}), false)]
    fn a_message_is_redelivered_from_its_second_receipt_on(
        #[case] attributes: serde_json::Value,
        #[case] redelivered: bool,
    ) {
        let message: SqsMessage = serde_json::from_value(json!({"messageId": "1", "attributes": attributes})).unwrap();
        assert_eq!(is_redelivered(&message), redelivered);
    }
}
