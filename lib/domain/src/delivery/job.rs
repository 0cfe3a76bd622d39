//! Jobs: work on many deliveries of an endpoint, page by page. A message asks for one page, and its function sends the
//! message for the next page, which waits for [`PAGE_GAP_S`]: so no endpoint fills the FIFO queue, in whose first
//! 120,000 messages SQS looks for the lanes of the others. A page may be repeated.

use serde::{Deserialize, Serialize};

use super::recovery::Recovery;
use crate::id::{CoachId, DeliveryId, EndpointId};
use crate::time::Timestamp;

/// Seconds between the pages of a job.
pub const PAGE_GAP_S: u32 = 5;

/// A message that asks for the next page of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryJob {
    pub coach_id: CoachId,
    pub endpoint_id: EndpointId,
    pub work: JobWork,
    /// The last delivery of the page before. Absent from the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DeliveryId>,
}

/// The work of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobWork {
    /// Enqueue the pending deliveries again. An operator asks for this after a restore, which loses their messages.
    Resume,
    /// Enqueue the deliveries that are due again: the breaker was closed at this time, before the time for which their
    /// orders wait.
    ResumeDue { closed_at: Timestamp },
    /// Begin a new retry chain for failed deliveries.
    Recover(Recovery),
}

impl DeliveryJob {
    /// Creates the first message of a recovery.
    pub fn recover(coach_id: CoachId, endpoint_id: EndpointId, recovery: Recovery) -> Self {
        Self { coach_id, endpoint_id, work: JobWork::Recover(recovery), after: None }
    }

    /// Creates the first message of a job for an endpoint whose breaker is closed early, at `closed_at`.
    pub fn resume_due(coach_id: CoachId, endpoint_id: EndpointId, closed_at: Timestamp) -> Self {
        Self { coach_id, endpoint_id, work: JobWork::ResumeDue { closed_at }, after: None }
    }

    /// Returns the message for the page after this delivery.
    #[must_use]
    pub fn after(&self, last: DeliveryId) -> Self {
        Self { after: Some(last), ..self.clone() }
    }

    /// Returns the seconds for which the message waits in its queue.
    pub fn delay_s(&self) -> u32 {
        if self.after.is_some() { PAGE_GAP_S } else { 0 }
    }
}
