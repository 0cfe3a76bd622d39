//! Orders that go back to the queue, and orders whose attempt was recorded before.

use aws_lambda_events::event::sqs::SqsMessage;
use domain::delivery::DeliveryOrder;
use store::delivery::{PutBackOutcome, SpentOrder};

use crate::{App, DeliverError};

/// A message and its order.
pub(crate) struct OrderMessage {
    pub(crate) message: SqsMessage,
    pub(crate) order: DeliveryOrder,
}

impl OrderMessage {
    /// Returns true if the message was delivered before. The function that had it may have died.
    pub(crate) fn is_redelivered(&self) -> bool {
        let count = self.message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse::<u32>().ok());
        count.is_some_and(|count| count > 1)
    }
}

impl App {
    /// Puts the order back into the queue until it is due. Of several copies of a message only one continues: otherwise
    /// copies would double at each hop. A redelivered message always continues, since the function that had it may have
    /// died before sending.
    pub(crate) async fn put_back(&self, ordered: &OrderMessage) -> Result<(), DeliverError> {
        let (order, now) = (&ordered.order, self.now());
        match self.deliveries.put_back(order, now).await? {
            PutBackOutcome::RecordedBefore if !ordered.is_redelivered() => Ok(()),
            PutBackOutcome::Recorded | PutBackOutcome::RecordedBefore => {
                Ok(self.retries.send(&order.put_back(), now).await?)
            }
            PutBackOutcome::Spent(spent) => self.catch_up(ordered, spent).await,
        }
    }

    /// Carries out the consequences of a recorded attempt. The function that recorded the attempt does this itself,
    /// unless it dies; then its message is redelivered.
    pub(crate) async fn catch_up(&self, ordered: &OrderMessage, spent: SpentOrder) -> Result<(), DeliverError> {
        if !ordered.is_redelivered() {
            return Ok(());
        }
        match spent {
            SpentOrder::Next(next) => self.send_next(&next).await,
            SpentOrder::Delivered(at) => {
                let DeliveryOrder { coach_id, endpoint_id, .. } = &ordered.order;
                match self.endpoints.get(coach_id, endpoint_id, self.now()).await? {
                    Some(endpoint) => Ok(self.endpoints.note_success(coach_id, &endpoint, at).await?),
                    None => Ok(()),
                }
            }
            SpentOrder::Nothing => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::id::{CoachId, DeliveryId, EndpointId};
    use domain::time::Timestamp;
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
        let message = serde_json::from_value(json!({"messageId": "1", "attributes": attributes})).unwrap();
        let order = DeliveryOrder::first(
            &CoachId::parse("coach_1").unwrap(),
            &EndpointId::parse("we_1").unwrap(),
            &DeliveryId::parse("dlv_1").unwrap(),
            Timestamp::from_ms(0),
        );
        assert_eq!(OrderMessage { message, order }.is_redelivered(), redelivered);
    }
}
