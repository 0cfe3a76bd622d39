//! Reference to an endpoint from deliveries and orders.

use domain::id::{CoachId, EndpointId};

/// A coach's endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointRef {
    pub coach: CoachId,
    pub id: EndpointId,
}
