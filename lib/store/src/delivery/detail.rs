//! One delivery with the request of its latest attempt.

use domain::delivery::{DeliveryDetail, DeliveryRequest};
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::mode::Mode;
use domain::time::Timestamp;

use super::Deliveries;
use super::record::{DeliveryItem, ENTITY, body_context, key};
use crate::db::{StoreError, from_item};

/// A delivery that was read, with its body.
pub struct ReadDelivery {
    /// The endpoint's coach.
    pub coach: CoachId,
    pub detail: DeliveryDetail,
}

impl Deliveries {
    /// Reads a delivery of an endpoint, which may be deleted. `mode` is the mode of the deployment.
    pub async fn read(
        &self,
        endpoint: &EndpointId,
        id: &DeliveryId,
        mode: Mode,
        now: Timestamp,
    ) -> Result<Option<ReadDelivery>, StoreError> {
        let Some(item) = self.table.item(key(endpoint, id)).await? else { return Ok(None) };
        let delivery = self.view(endpoint.clone(), from_item(ENTITY, item.clone())?)?;
        let record: DeliveryItem = from_item(ENTITY, item)?;
        if record.expires_at <= now.unix_s() {
            return Ok(None);
        }
        let request = match record.sent_request() {
            None => None,
            Some(sent) => {
                let body = self.body_of(endpoint, &record)?;
                Some(DeliveryRequest::new(sent, &record.event_id, &record.event_type, mode, body))
            }
        };
        let detail = DeliveryDetail { delivery, request, body_erased: record.sealed.is_empty() };
        Ok(Some(ReadDelivery { coach: record.coach_id, detail }))
    }

    /// The body, unless it is erased.
    fn body_of(&self, endpoint: &EndpointId, record: &DeliveryItem) -> Result<Option<String>, StoreError> {
        if record.sealed.is_empty() {
            return Ok(None);
        }
        let body = self.vault.unseal(ENTITY, &body_context(endpoint, &record.id), &record.sealed)?;
        String::from_utf8(body).map(Some).map_err(|error| StoreError::corrupt(ENTITY, error))
    }
}
