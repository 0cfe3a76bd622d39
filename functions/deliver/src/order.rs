//! Whether an order is carried out, put back because it is not due yet, or dropped because it counts no more.

use aws_lambda_events::event::sqs::SqsMessage;
use outbound::queue::{DeliveryOrder, read_order};
use store::delivery::{Claim, PuttingBack};

use crate::{App, DeliverError};

impl App {
    /// Does what a message's order says.
    pub(crate) async fn take(&self, message: &SqsMessage) -> Result<(), DeliverError> {
        let order = read_order(message.body.as_deref().unwrap_or_default())?;
        let now = self.now();
        if order.due_at > now {
            self.put_back(&order, is_redelivered(message)).await
        } else {
            self.carry_out(&order, is_redelivered(message)).await
        }
    }

    /// Sends the order on to wait for the rest of its time. Copies of a message would double at each hop of a long wait: one of them
    /// goes on. One that was brought again does too, since whoever took it before may have died before sending.
    async fn put_back(&self, order: &DeliveryOrder, redelivered: bool) -> Result<(), DeliverError> {
        let now = self.now();
        match self.deliveries.put_back(order, now).await? {
            PuttingBack::Noted if !redelivered => Ok(()),
            PuttingBack::Ours | PuttingBack::Noted => Ok(self.retries.send(&order.put_back(), now).await?),
            PuttingBack::Past => Ok(()),
        }
    }

    async fn carry_out(&self, order: &DeliveryOrder, redelivered: bool) -> Result<(), DeliverError> {
        let endpoint = self.endpoints.get(&order.coach_id, &order.endpoint_id);
        let (endpoint, claim) = tokio::join!(endpoint, self.deliveries.claim(order, self.now()));
        match claim? {
            Claim::Taken(taken) => self.attempt(&taken, endpoint?).await,
            // Recorded, and perhaps no more than that: whoever recorded it may have died before sending the next order.
            Claim::Stale(Some(next)) if redelivered => Ok(self.retries.send(&next, self.now()).await?),
            Claim::Stale(_) | Claim::Ended | Claim::Unknown => Ok(()),
            Claim::Held => Err(DeliverError::Held),
        }
    }
}

/// Whether the queue has brought this message before.
fn is_redelivered(message: &SqsMessage) -> bool {
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
