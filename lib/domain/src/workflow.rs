//! Workflows: the part of a record that the API may show. The content and the credentials of a workflow are not stored.

use serde::{Deserialize, Serialize};

use crate::id::WorkflowId;
use crate::time::Timestamp;

/// A workflow: what sets it off, and whether it is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Workflow {
    pub id: WorkflowId,
    pub name: String,
    /// What sets it off.
    pub trigger: String,
    pub is_active: bool,
    /// When it was last switched on; null while it never was.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub activated_at: Option<Timestamp>,
    /// When the coach last changed it.
    pub updated_at: Timestamp,
}
