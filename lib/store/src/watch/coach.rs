//! A coach's watch. A change of the rules makes the coach due. The next sweep passes over all clients page by page, and
//! evaluates each under the new version of the rules. A sweep that read an older version skips a client that was
//! evaluated under a newer one.

use chrono::TimeDelta;
use domain::id::CoachId;
use domain::time::Timestamp;
use domain::tz::{Tz, ZoneName};
use serde::{Deserialize, Serialize};

use super::due::DueMark;
use crate::db::{self, Item, ItemWrite, StoreError, Table, from_item, n, s};
use crate::shard::shard_of;

pub(super) const PREFIX: &str = "COACH#";
const SORT_KEY: &str = "WATCH";
/// Upper limit of the lag of the index of active clients. A pass that begins sooner after the change may miss a client
/// that was created right before it. So the coach stays due for a second pass.
const INDEX_LAG: TimeDelta = TimeDelta::seconds(10);

/// The state of a coach that the sweep watches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoachWatch {
    pk: String,
    sk: String,
    pub coach_id: CoachId,
    /// Counts the changes of automations on computed events, programmes and the time zone.
    #[serde(default)]
    pub rules_version: u64,
    /// The version of the last change by a backfill. The next evaluation of a client emits nothing if its last one was
    /// under an earlier version.
    #[serde(default)]
    pub silent_version: u64,
    /// The time at which the last of these changes was stored.
    rules_saved_at: Option<Timestamp>,
    /// The workspace's time zone.
    pub zone: Option<Tz>,
    /// The last pass found an active automation on a computed event.
    #[serde(default)]
    pub is_watched: bool,
    /// The pass that is under way.
    pass: Option<Pass>,
    sweep_shard: String,
    sweep_due_at: Option<i64>,
    pub(super) version: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pass {
    /// The time at which the pass began.
    as_of: Timestamp,
    /// The end of the last page that is done.
    after: String,
}

impl CoachWatch {
    pub(super) fn new(coach: &CoachId) -> Self {
        let pk = pk(coach);
        Self {
            sweep_shard: shard_of(&pk),
            pk,
            sk: SORT_KEY.to_owned(),
            coach_id: coach.clone(),
            rules_version: 0,
            silent_version: 0,
            rules_saved_at: None,
            zone: None,
            is_watched: false,
            pass: None,
            sweep_due_at: None,
            version: 0,
        }
    }

    pub(super) fn from_item(item: Item) -> Result<Self, StoreError> {
        from_item("watch of a coach", item)
    }

    /// Returns true if a pass is due by then.
    pub fn is_due(&self, by: Timestamp) -> bool {
        self.sweep_due_at.is_some_and(|due| due <= by.ms())
    }

    /// The end of the last page that is done; `None` before the first page.
    pub fn pass_after(&self) -> Option<&str> {
        self.pass.as_ref().map(|pass| pass.after.as_str())
    }

    /// The watch after a page of a pass. `as_of` is the beginning of the pass if this page is its first.
    pub fn with_page_done(self, after: String, as_of: Timestamp) -> Self {
        let as_of = self.pass.as_ref().map_or(as_of, |pass| pass.as_of);
        Self { pass: Some(Pass { as_of, after }), ..self }
    }

    /// The watch after a pass over all clients.
    pub fn with_pass_done(self, as_of: Timestamp, is_watched: bool) -> Self {
        let began = self.pass.as_ref().map_or(as_of, |pass| pass.as_of);
        let settled = self.rules_saved_at.map(|at| at + INDEX_LAG).filter(|settled| began < *settled);
        Self { pass: None, sweep_due_at: settled.map(|settled| settled.ms()), is_watched, ..self }
    }
}

/// An update for changed rules: the next pass begins anew. Creates the item if there is none.
pub(super) fn change_rules<'a>(
    table: &'a Table,
    coach: &CoachId,
    zone: Option<&ZoneName>,
    DueMark { now, silent }: DueMark,
) -> ItemWrite<'a> {
    let mut update = table
        .write(key(coach))
        .set("coach_id", s(coach.as_str()))
        .set("rules_saved_at", s(now.to_string()))
        .set("sweep_shard", s(shard_of(&pk(coach))))
        .set("sweep_due_at", n(now.ms()))
        .remove(["pass"])
        .count("rules_version")
        .count("version");
    if let Some(zone) = zone {
        update = update.set("zone", s(zone.as_str()));
    }
    if silent {
        update = update.set_to("silent_version = if_not_exists(rules_version, :zero) + :one");
    }
    update
}

fn pk(coach: &CoachId) -> String {
    format!("{PREFIX}{coach}")
}

pub(super) fn key(coach: &CoachId) -> Item {
    db::key(pk(coach), SORT_KEY)
}
