//! Messages that have waited. An order moves to the FIFO queue, which drops copies: whether the order is due is decided
//! there, once. The orders of a batch do not wait for its jobs. A look brings an event of the outbox back to the relay.

use aws_lambda_events::event::sqs::SqsMessage;
use futures::future::join_all;
use outbound::delivery::{WaitingMessage, read_waiting};

use crate::{App, DeliverError, Outcomes};

impl App {
    pub(crate) async fn move_on(&self, messages: Vec<SqsMessage>) -> Outcomes {
        let (mut outcomes, mut moving, mut orders) = (Outcomes::new(), Vec::new(), Vec::new());
        let (mut jobs, mut looks) = (Vec::new(), Vec::new());
        for message in messages {
            match read_waiting(message.body.as_deref().unwrap_or_default()) {
                Ok(WaitingMessage::Order(order)) => {
                    moving.push(message);
                    orders.push(order);
                }
                Ok(WaitingMessage::Job(job)) => jobs.push((message, job)),
                Ok(WaitingMessage::Look(look)) => looks.push((message, look)),
                Err(error) => outcomes.push((message, Err(error.into()))),
            }
        }
        let moved = self.queue.send_all(&orders).await.into_iter().map(|sent| sent.map_err(DeliverError::from));
        outcomes.extend(moving.into_iter().zip(moved));
        let touches = looks.into_iter().map(async |(message, look)| {
            let touched = self.outbox.touch(look.event_id.as_str()).await;
            (message, touched.map_err(DeliverError::from))
        });
        outcomes.extend(join_all(touches).await);
        let pages = jobs.into_iter().map(async |(message, job)| (message, self.work_on(&job).await));
        outcomes.extend(join_all(pages).await);
        outcomes
    }
}
