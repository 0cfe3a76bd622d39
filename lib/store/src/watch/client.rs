//! A client's watch. It copies the fields of the client's record that rules evaluate. The transaction that changes the
//! record writes the copy. So an evaluation reads one item, and commits on condition that no field has changed.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use domain::client::Client;
use domain::id::{ClientId, CoachId, ProgrammeId};
use domain::sweep::{PhaseEntry, States};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::due::DueMark;
use crate::db::{self, Item, ItemWrite, StoreError, Table, from_item, n, s, to_attribute};
use crate::shard::shard_of;

pub(super) const PREFIX: &str = "CLIENT#";
/// The key sorts right after the months of doses, so one query reads both.
pub(super) const SORT_KEY: &str = "DOSES_WATCH";

/// The state of a client that the sweep watches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Watch {
    pk: String,
    sk: String,
    pub coach_id: CoachId,
    pub(super) created_at: Timestamp,
    pub is_active: bool,
    pub(super) last_check_in_at: Option<Timestamp>,
    /// The latest date with a daily log, unless [`Watch::daily_log_deleted`].
    pub(super) last_daily_log_on: Option<NaiveDate>,
    /// A daily log was deleted: the next evaluation looks up the latest date.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub daily_log_deleted: bool,
    phase: Option<Phase>,
    /// Counts the client's entries into phases.
    phase_entries: u64,
    pub programme_id: Option<ProgrammeId>,
    pub states: States,
    /// The version of the coach's rules of the last evaluation.
    pub rules_version: u64,
    sweep_shard: Option<String>,
    /// The due time: the one that the last evaluation computed, or the time of the last mark.
    sweep_due_at: Option<i64>,
    /// The dose items that changed last, by sort key, with their versions since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    doses_changed: BTreeMap<String, u64>,
    pub(super) version: u64,
}

/// The current phase of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Phase {
    name: String,
    started_on: NaiveDate,
}

/// An update of a client's watch.
#[derive(Debug, Default)]
pub struct WatchUpdate {
    /// Attributes with their next values; `None` removes one.
    set: Vec<(&'static str, Option<AttributeValue>)>,
    enters_phase: bool,
    /// The client becomes inactive.
    is_inactive: bool,
    /// The next evaluation emits nothing: the client is new to its coach, or active again.
    restarts: bool,
    condition: Option<&'static str>,
}

impl Watch {
    /// A new watch, which is due: the first evaluation seeds it.
    pub(super) fn new(client: &Client, now: Timestamp) -> Self {
        let pk = pk(&client.id);
        let is_active = client.is_active;
        Self {
            sweep_shard: is_active.then(|| shard_of(&pk)),
            pk,
            sk: SORT_KEY.to_owned(),
            coach_id: client.coach_id.clone(),
            created_at: client.created_at,
            is_active,
            last_check_in_at: client.latest_check_in_at,
            last_daily_log_on: None,
            daily_log_deleted: false,
            phase: phase_of(client),
            phase_entries: 1,
            programme_id: client.phase.programme_id.clone(),
            states: States::new(),
            rules_version: 0,
            sweep_due_at: is_active.then(|| now.ms()),
            doses_changed: BTreeMap::new(),
            version: 1,
        }
    }

    pub(super) fn from_item(item: Item) -> Result<Self, StoreError> {
        from_item("watch of a client", item)
    }

    /// The due time: the one that the last evaluation computed, or the time of the last mark.
    pub fn due(&self) -> Option<Timestamp> {
        self.sweep_due_at.map(Timestamp::from_ms)
    }

    pub(super) fn phase(&self) -> Option<PhaseEntry> {
        let phase = self.phase.clone()?;
        Some(PhaseEntry { name: phase.name, started_on: phase.started_on, number: self.phase_entries })
    }

    /// The watch with the date of the latest daily log, as it was looked up.
    pub fn with_last_daily_log(self, last_daily_log_on: Option<NaiveDate>) -> Self {
        Self { last_daily_log_on, daily_log_deleted: false, ..self }
    }

    /// The watch after an evaluation.
    pub(super) fn evaluated(self, states: States, rules_version: u64, is_watched: bool) -> Self {
        let is_swept = is_watched && self.is_active;
        Self {
            sweep_shard: is_swept.then(|| shard_of(&self.pk)),
            sweep_due_at: states.due.map(|due| due.ms()).filter(|_| is_swept),
            states,
            rules_version,
            version: self.version + 1,
            ..self
        }
    }

    /// Returns true if the doses that were read, from a sort key on, are at least as new as the watch.
    pub(super) fn is_covered_by(&self, first: &str, versions: &BTreeMap<&str, u64>) -> bool {
        let mut changed = self.doses_changed.iter().filter(|(sk, _)| sk.as_str() >= first);
        changed.all(|(sk, version)| versions.get(sk.as_str()).copied().unwrap_or(0) >= *version)
    }
}

impl WatchUpdate {
    /// The update that follows a change of a client's record; `None` if no field that rules evaluate changes.
    pub fn between(before: &Client, after: &Client) -> Option<Self> {
        let mut change = Self::default();
        let is_new_coach = before.coach_id != after.coach_id;
        if is_new_coach {
            change.set("coach_id", s(after.coach_id.as_str()));
            // Each coach counts versions anew, and a client of a later version is left to another sweep.
            change.set("rules_version", n(0));
        }
        if before.created_at != after.created_at {
            change.set("created_at", s(after.created_at.to_string()));
        }
        if before.latest_check_in_at != after.latest_check_in_at {
            change.set.push(("last_check_in_at", after.latest_check_in_at.map(|at| s(at.to_string()))));
        }
        if before.phase.programme_id != after.phase.programme_id {
            change.set.push(("programme_id", after.phase.programme_id.as_ref().map(to_attribute)));
        }
        let (was, is) = (phase_of(before), phase_of(after));
        if was != is {
            change.set.push(("phase", is.as_ref().map(to_attribute)));
            // An earlier date of the same phase is a correction, not another entry.
            let is_corrected =
                was.zip(is).is_some_and(|(was, is)| was.name == is.name && is.started_on <= was.started_on);
            change.enters_phase = !is_corrected;
        }
        if before.is_active != after.is_active {
            change.set("is_active", AttributeValue::Bool(after.is_active));
        }
        if change.set.is_empty() {
            return None;
        }
        change.is_inactive = !after.is_active;
        change.restarts = after.is_active && (is_new_coach || !before.is_active);
        if change.restarts {
            change.put_into_index(&after.id);
        }
        Some(change)
    }

    /// An update that puts the client into the due index. If the client is inactive, its evaluation takes it out again.
    pub(super) fn indexed(client: &ClientId) -> Self {
        let mut change = Self::default();
        change.put_into_index(client);
        change
    }

    /// An update to the new versions of the client's dose items.
    pub(crate) fn doses(versions: &BTreeMap<String, u64>) -> Self {
        let mut change = Self::default();
        change.set("doses_changed", to_attribute(versions));
        change
    }

    /// An update after a daily log of a date. Refused if a later date is known, and no log was deleted.
    pub fn daily_log(date: NaiveDate) -> Self {
        let mut change = Self::default();
        change.set("last_daily_log_on", s(date.to_string()));
        change.condition = Some(
            "attribute_exists(daily_log_deleted) OR attribute_not_exists(last_daily_log_on) \
             OR last_daily_log_on < :last_daily_log_on",
        );
        change
    }

    /// An update after a daily log was deleted. The next evaluation looks up the latest date.
    pub fn daily_log_deleted() -> Self {
        let mut change = Self::default();
        change.set("daily_log_deleted", AttributeValue::Bool(true));
        change
    }

    fn put_into_index(&mut self, client: &ClientId) {
        self.set("sweep_shard", s(shard_of(&pk(client))));
    }

    fn set(&mut self, name: &'static str, value: AttributeValue) {
        self.set.push((name, Some(value)));
    }

    pub(super) fn write<'a>(mut self, table: &'a Table, client: &ClientId, mark: DueMark) -> ItemWrite<'a> {
        if self.is_inactive {
            self.set.extend([("sweep_shard", None), ("sweep_due_at", None)]);
        } else {
            self.set("sweep_due_at", n(mark.now.ms()));
        }
        let mut write = table.write(key(client)).when_present().count("version");
        for (name, value) in self.set {
            write = write.set_or_remove(name, value);
        }
        if mark.silent || self.restarts {
            write = write.set("states.silent", AttributeValue::Bool(true));
        }
        if self.enters_phase {
            write = write.count("phase_entries");
        }
        match self.condition {
            Some(condition) => write.when(condition, []),
            None => write,
        }
    }
}

/// The current phase of a client, if its first day is known.
fn phase_of(client: &Client) -> Option<Phase> {
    let (name, started_on) = client.phase.current.clone().zip(client.phase.started_on)?;
    Some(Phase { name, started_on })
}

pub(super) fn pk(client: &ClientId) -> String {
    format!("{PREFIX}{client}")
}

pub(super) fn key(client: &ClientId) -> Item {
    db::key(pk(client), SORT_KEY)
}
