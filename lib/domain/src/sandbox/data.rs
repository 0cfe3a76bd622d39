//! The removal of a workspace's test data.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::id::WipeId;

/// Time from the start of a removal until nothing is under way that began before: longer than any request or fact
/// takes.
pub const SETTLING: TimeDelta = TimeDelta::seconds(26);
/// The `Retry-After` of a write while test data is being removed, in seconds.
pub const WIPE_RETRY_S: u32 = 5;
/// Time after which the data of a workspace is removed whose keys are not used.
pub const MAX_UNUSED: TimeDelta = TimeDelta::days(90);

crate::named! {
    /// The status of a removal.
    WipeStatus {
        /// Writes are refused until the removal is done.
        Running = "running",
        /// The first contents are laid again.
        Done = "done",
    }
}

/// The answer to an order to remove the test data.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct WipeStarted {
    /// The removal that is running, which an earlier order may have started.
    pub job: WipeId,
}

/// The latest removal of a workspace's test data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WipeJob {
    /// Identifies the removal.
    pub job: WipeId,
    pub status: WipeStatus,
}
