//! The request to enqueue pending deliveries again.

use serde::{Deserialize, Serialize};

use crate::id::{CoachId, DeliveryId, EndpointId};

/// An operator's request to enqueue the pending deliveries of an endpoint again, because messages may be missing after
/// a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    pub coach_id: CoachId,
    pub resume: EndpointId,
    /// The delivery to continue after. Absent from an operator's request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DeliveryId>,
}
