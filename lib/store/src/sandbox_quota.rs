//! Table `workspaces`, what an integrator has sent to a sandbox in a UTC day.
//! pk `COACH#<coach_id>`, sk `SANDBOX#<date>`: the numbers `facts` and `events`.
//!
//! 1. `count_in_sandbox` UpdateItem: counts all or nothing. An update whose answer was lost may count twice.

use chrono::TimeDelta;
use domain::id::CoachId;
use domain::time::Timestamp;

use crate::db::{StoreError, n};
use crate::workspace::{Workspaces, key_of};

/// Retention of a day's numbers.
const RETENTION: TimeDelta = TimeDelta::days(2);

/// The kinds that are counted.
#[derive(Debug, Clone, Copy)]
pub enum SandboxCount {
    Facts,
    Events,
}

impl Workspaces {
    /// Counts facts or events of a workspace against the day's limit. Returns false, and counts none, if they would
    /// cross it.
    pub async fn count_in_sandbox(
        &self,
        coach: &CoachId,
        count: SandboxCount,
        number: u32,
        limit: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let name = match count {
            SandboxCount::Facts => "facts",
            SandboxCount::Events => "events",
        };
        let room = i64::from(limit) - i64::from(number);
        let key = key_of(coach, &format!("SANDBOX#{}", now.utc().date_naive()));
        let update = self.table.write(key).add(name, n(number)).set("expires_at", n((now + RETENTION).unix_s()));
        let update = update.when(format!("attribute_not_exists({name}) OR {name} <= :room"), [(":room", n(room))]);
        Ok(room >= 0 && update.update_now().await?.is_done())
    }
}
