//! Workflows: the part of a record that the API may show. The content and the credentials of a workflow are not stored.

use serde::{Deserialize, Serialize};

use crate::id::WorkflowId;
use crate::time::Timestamp;

/// A workflow: its trigger and activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// Identifies the workflow.
    pub id: WorkflowId,
    /// The coach's name for the workflow.
    pub name: String,
    /// The trigger of the workflow.
    pub trigger: String,
    /// True if the workflow is active.
    pub is_active: bool,
    /// When the workflow was last activated. Null if it never was.
    #[schema(required)]
    pub activated_at: Option<Timestamp>,
    /// When the coach last changed it.
    pub updated_at: Timestamp,
}
