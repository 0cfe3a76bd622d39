//! Jobs: work on many deliveries of an endpoint, page by page. A message asks for one page, and its function sends the
//! message for the next page. A page may be repeated.

use serde::{Deserialize, Serialize};

use super::recovery::Recovery;
use crate::id::{CoachId, DeliveryId, EndpointId};

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
    /// Begin a new retry chain for failed deliveries.
    Recover(Recovery),
}

impl DeliveryJob {
    /// Creates the first message of a recovery.
    pub fn recover(coach_id: CoachId, endpoint_id: EndpointId, recovery: Recovery) -> Self {
        Self { coach_id, endpoint_id, work: JobWork::Recover(recovery), after: None }
    }

    /// Returns the message for the page after this delivery.
    #[must_use]
    pub fn after(&self, last: DeliveryId) -> Self {
        Self { after: Some(last), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::delivery::RecoverySelection;
    use crate::event::ComputedType;
    use crate::id::RecoveryId;
    use crate::time::Timestamp;

    #[test]
    fn a_job_reads_back_from_its_message() {
        let selection = RecoverySelection {
            since: Timestamp::from_ms(1),
            until: None,
            types: Some(vec![ComputedType::PhaseEligible.into()]),
        };
        let id = RecoveryId::from_uuid(uuid::Uuid::from_u128(7));
        let recovery = Recovery { id, selection, begun_at: Timestamp::from_ms(5) };
        let [coach, endpoint] = ["coach_1", "we_1"];
        let first =
            DeliveryJob::recover(CoachId::parse(coach).unwrap(), EndpointId::parse(endpoint).unwrap(), recovery);
        for job in [first.after(DeliveryId::first_at(9)), first] {
            let message = serde_json::to_value(&job).unwrap();
            assert_eq!(serde_json::from_value::<DeliveryJob>(message).unwrap(), job);
        }
        let message = json!({ "coach_id": coach, "endpoint_id": endpoint, "work": "resume" });
        let resume: DeliveryJob = serde_json::from_value(message.clone()).unwrap();
        assert_eq!((&resume.work, &resume.after), (&JobWork::Resume, &None));
        assert_eq!(serde_json::to_value(&resume).unwrap(), message);
    }
}
