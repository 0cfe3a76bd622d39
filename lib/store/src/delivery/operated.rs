//! A delivery as operators see one: without the body, the receiver's answers and the signature.

use domain::delivery::DeliveryStatus;
use domain::id::{ClientId, CoachId, DeliveryId, EndpointId, EventId};
use domain::outcome::AttemptResult;
use domain::time::Timestamp;
use serde::Serialize;

use super::record::{DeliveryItem, ENTITY, key};
use crate::db::{StoreError, Table};

/// A delivery.
#[derive(Debug, Clone, Serialize)]
pub struct OperatedDelivery {
    pub id: DeliveryId,
    pub endpoint_id: EndpointId,
    pub coach_id: CoachId,
    /// The client whom the event is about.
    pub client_id: Option<ClientId>,
    /// The id of the event, in the header `webhook-id`.
    pub webhook_id: EventId,
    #[serde(rename = "type")]
    pub event_type: String,
    pub status: DeliveryStatus,
    /// The number of the retry chain, from 1.
    pub chain: u32,
    /// Oldest first.
    pub attempts: Vec<OperatedAttempt>,
    pub next_attempt_at: Option<Timestamp>,
}

/// An attempt of a delivery.
#[derive(Debug, Clone, Serialize)]
pub struct OperatedAttempt {
    pub at: Timestamp,
    pub status_code: Option<u16>,
    pub error: Option<String>,
    pub duration_ms: u32,
}

impl OperatedDelivery {
    pub(crate) async fn read(
        table: &Table,
        endpoint: &EndpointId,
        id: &DeliveryId,
    ) -> Result<Option<Self>, StoreError> {
        let record: Option<DeliveryItem> = table.get(ENTITY, key(endpoint, id)).await?;
        Ok(record.map(|record| Self::new(endpoint.clone(), record)))
    }

    fn new(endpoint_id: EndpointId, record: DeliveryItem) -> Self {
        let attempts = record.attempts.iter().map(|line| {
            let (status_code, error) = match line.result() {
                AttemptResult::StatusCode(code) => (Some(*code), None),
                AttemptResult::Error(error) => (None, Some(error.clone())),
            };
            OperatedAttempt { at: line.at(), status_code, error, duration_ms: line.duration_ms() }
        });
        Self {
            attempts: attempts.collect(),
            id: record.id,
            endpoint_id,
            coach_id: record.coach_id,
            client_id: record.subject.client_id,
            webhook_id: record.event_id,
            event_type: record.event_type,
            status: record.status,
            chain: record.chain,
            next_attempt_at: record.next_attempt_at,
        }
    }

    /// The id of the outbox entry with the order of the present chain, if a person or a recovery began it.
    pub fn order_entry(&self) -> String {
        crate::outbox::order_id(&self.id, self.chain)
    }
}
