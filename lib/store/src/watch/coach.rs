//! A coach's watch. A change of the rules makes the coach due: the next sweep passes over all clients, judges each, and remembers how far
//! it has come. A client that a fact changes before the pass comes to it is judged first, as it stood.

mod before;

use chrono::TimeDelta;
use domain::id::CoachId;
use domain::time::Timestamp;
use domain::tz::Tz;
use serde::{Deserialize, Serialize};

use super::{COACH_PREFIX, shard_of};
use crate::db::{Item, StoreError, from_item, s};

pub(crate) use before::{Before, Changed};

const SORT_KEY: &str = "WATCH";
/// Longer than the function takes that stores facts, or is let live. Rules are another from when their fact came, and can be read once it is
/// stored: who is judged in between may be judged by the ones before.
const STORING: TimeDelta = TimeDelta::seconds(60);

/// What is watched of a coach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoachWatch {
    pk: String,
    sk: String,
    pub coach_id: CoachId,
    /// When an automation, a programme or the time zone last became another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rules_saved_at: Option<Timestamp>,
    /// Whether there is, or was when the last pass began, an active automation on a computed event.
    pub is_watched: bool,
    /// The workspace's, as last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<Tz>,
    /// What it was before, while somebody watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zone_before: Option<Before<Tz>>,
    /// The pass that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pass: Option<Pass>,
    /// As of when the last finished pass has judged every client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) passed_at: Option<Timestamp>,
    sweep_shard: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sweep_due_at: Option<i64>,
    version: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pass {
    /// When it began.
    as_of: Timestamp,
    /// Where the pages that are done end.
    after: String,
}

impl CoachWatch {
    pub(super) fn new(coach: &CoachId) -> Self {
        let pk = format!("{COACH_PREFIX}{coach}");
        Self {
            sweep_shard: shard_of(&pk),
            pk,
            sk: SORT_KEY.to_owned(),
            coach_id: coach.clone(),
            rules_saved_at: None,
            is_watched: false,
            zone: None,
            zone_before: None,
            pass: None,
            passed_at: None,
            sweep_due_at: None,
            version: 0,
        }
    }

    pub(super) fn from_item(item: Item) -> Result<Self, StoreError> {
        from_item("watch of a coach", item)
    }

    /// As it is to be stored.
    pub(super) fn next_version(&self) -> Self {
        Self { version: self.version + 1, ..self.clone() }
    }

    /// As it is once it has been stored.
    pub(crate) fn stored(self) -> Self {
        self.next_version()
    }

    pub(super) fn found_version(&self) -> Option<u64> {
        (self.version > 0).then_some(self.version)
    }

    /// What clients are judged by is another: all of them are to be judged anew.
    pub(crate) fn change_rules(&mut self, now: Timestamp, is_watched: bool) {
        // Whoever stores a dose and was told that nobody watches has ended by then.
        let due = if self.is_watched { now } else { now + STORING };
        self.rules_saved_at = self.rules_saved_at.max(Some(now));
        self.sweep_due_at = self.sweep_due_at.max(Some(due.ms()));
        self.is_watched |= is_watched;
        self.pass = None;
    }

    /// The workspace's time zone is this. False where it was that already.
    pub(crate) fn change_zone(&mut self, zone: Tz, changed: Changed) -> bool {
        if self.zone == Some(zone) {
            return false;
        }
        if let Some(was) = self.zone.replace(zone).filter(|_| self.is_watched) {
            self.zone_before = Some(Before::with(self.zone_before.take(), was, changed, self.passed_at));
            self.change_rules(changed.at, true);
        }
        true
    }

    /// Who was judged after that was judged by the rules as they are.
    pub fn rules_known_at(&self) -> Option<Timestamp> {
        self.rules_saved_at.map(|at| at + STORING)
    }

    /// Whether a pass is to be made by then.
    pub(crate) fn is_due(&self, by: Timestamp) -> bool {
        self.sweep_due_at.is_some_and(|due| due <= by.ms())
    }

    /// Where the pass goes on; `None` at its beginning.
    pub(crate) fn pass_after(&self) -> Option<&str> {
        self.pass.as_ref().map(|pass| pass.after.as_str())
    }

    /// The pass has come so far, with rules that were read at `as_of`.
    pub(crate) fn come_to(&mut self, after: String, as_of: Timestamp) {
        let began = self.pass.as_ref().map_or(as_of, |pass| pass.as_of);
        self.pass = Some(Pass { as_of: began, after });
    }

    /// The pass has come to its end.
    pub(crate) fn finish(&mut self, as_of: Timestamp, is_watched: bool) {
        self.passed_at = Some(self.pass.take().map_or(as_of, |pass| pass.as_of));
        self.sweep_due_at = None;
        self.is_watched = is_watched;
    }
}

/// Rules that were another by then at the latest can be read at that instant.
pub(super) fn saved_before(read_at: Timestamp) -> Timestamp {
    read_at + -STORING
}

pub(super) fn key(coach: &CoachId) -> Item {
    Item::from([("pk".to_owned(), s(format!("{COACH_PREFIX}{coach}"))), ("sk".to_owned(), s(SORT_KEY))])
}
