//! Table `workspaces`, a coach's requests to the settings API.
//! pk `COACH#<coach_id>`, sk `SETTINGS`: counters of requests per calendar minute (module `window`).
//!
//! 1. `count_settings_request` UpdateItem: counts a request, unless the minute is used up. The counters have an item of
//!    their own because the workspace's item is part of transactions.

use domain::id::CoachId;
use domain::rate_limit::SETTINGS_REQUEST;
use domain::time::Timestamp;

use crate::db::StoreError;
use crate::window::{self, Counted};
use crate::workspace::{Workspaces, key_of};

impl Workspaces {
    /// Counts a request to the settings API against the coach's minute. The workspace need not exist.
    pub async fn count_settings_request(&self, coach: &CoachId, now: Timestamp) -> Result<Counted, StoreError> {
        window::count(&self.table, key_of(coach, "SETTINGS"), SETTINGS_REQUEST, now).await
    }
}
