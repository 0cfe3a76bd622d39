//! A client's watch. It holds what the rules ask of the client's record as well, written by whoever writes the record, in the same
//! transaction: an evaluation reads one item, and what it decides is written on condition that nothing of it has changed.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use domain::client::Client;
use domain::id::{ClientId, CoachId, ProgrammeId};
use domain::programme::ProgrammePhase;
use domain::sweep::{Facts, PhaseEntry, States};
use domain::time::Timestamp;
use domain::tz::Tz;
use serde::{Deserialize, Serialize};

use super::{CLIENT_PREFIX, Observed, shard_of};
use crate::db::{Item, StoreError, from_item, s};

pub(super) const SORT_KEY: &str = "DOSES_WATCH";

/// What is watched of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Watch {
    pk: String,
    sk: String,
    pub(crate) coach_id: CoachId,
    created_at: Timestamp,
    is_active: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_check_in_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_daily_log_on: Option<NaiveDate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<PhaseEntry>,
    /// How often the client came to a phase.
    #[serde(default)]
    phase_entries: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) programme_id: Option<ProgrammeId>,
    /// Without the instant at which the client is due, which is the index's.
    states: States,
    sweep_shard: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sweep_due_at: Option<i64>,
    /// The items of doses that were last changed while somebody watched, by sort key, and the versions that they came to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    doses_changed: BTreeMap<String, u64>,
    version: u64,
}

/// How something is told that changes what is known of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    pub(crate) now: Timestamp,
    pub(crate) backfill: bool,
    /// Whether the coach has automations that it could make the client match.
    pub(crate) is_watched: bool,
}

impl Watch {
    /// Of a client that nothing is remembered of.
    pub(crate) fn new(client: &Client, now: Timestamp) -> Self {
        let pk = format!("{CLIENT_PREFIX}{}", client.id);
        let mut watch = Self {
            sweep_shard: shard_of(&pk),
            pk,
            sk: SORT_KEY.to_owned(),
            coach_id: client.coach_id.clone(),
            created_at: client.created_at,
            is_active: client.is_active,
            last_check_in_at: None,
            last_daily_log_on: None,
            phase: None,
            phase_entries: 0,
            programme_id: None,
            states: States::new(now),
            sweep_due_at: None,
            doses_changed: BTreeMap::new(),
            version: 0,
        };
        watch.copy(client);
        if !client.is_active {
            watch.states.due = None;
        }
        watch
    }

    pub(super) fn from_item(item: Item) -> Result<Self, StoreError> {
        let mut watch: Self = from_item("watch of a client", item)?;
        watch.states.due = watch.sweep_due_at.map(Timestamp::from_ms);
        Ok(watch)
    }

    /// As it is to be stored.
    pub(super) fn next_version(&self) -> Self {
        let states = States { due: None, ..self.states.clone() };
        let sweep_due_at = self.states.due.map(|due| due.ms());
        Self { states, sweep_due_at, version: self.version + 1, ..self.clone() }
    }

    pub(super) fn found_version(&self) -> Option<u64> {
        (self.version > 0).then_some(self.version)
    }

    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    /// What was decided by it.
    pub(crate) fn with_states(self, states: States) -> Self {
        Self { states, ..self }
    }

    /// Whether the doses that were read, from a sort key on, are at least as new as it is.
    pub(super) fn is_met_by(&self, first: &str, versions: &BTreeMap<&str, u64>) -> bool {
        let mut changed = self.doses_changed.iter().filter(|(sk, _)| sk.as_str() >= first);
        changed.all(|(sk, version)| versions.get(sk.as_str()).copied().unwrap_or(0) >= *version)
    }

    /// Takes over what the client's record says. True if anything is another now, which makes the client due.
    pub(crate) fn follow(&mut self, client: &Client, said: Said) -> bool {
        let comes_back = client.is_active && (!self.is_active || self.coach_id != client.coach_id);
        if self.is_of(client) {
            return false;
        }
        self.copy(client);
        if !self.is_active {
            self.states.due = None;
        } else if comes_back {
            self.states.restart(said.now, said.backfill);
        } else {
            self.touch(said);
        }
        true
    }

    /// The last date with a daily log is this.
    pub(crate) fn log_daily(&mut self, last: Option<NaiveDate>, said: Said) {
        if self.last_daily_log_on != last {
            self.last_daily_log_on = last;
            self.touch(said);
        }
    }

    /// Items of doses have come to these versions.
    pub(crate) fn change_doses(&mut self, versions: BTreeMap<String, u64>, said: Said) {
        self.doses_changed = versions;
        self.touch(said);
    }

    pub(crate) fn last_daily_log_on(&self) -> Option<NaiveDate> {
        self.last_daily_log_on
    }

    fn touch(&mut self, said: Said) {
        if self.is_active && said.is_watched {
            self.states.touch(said.now, said.backfill);
        }
    }

    /// Whether the client's record says nothing else.
    pub(crate) fn is_of(&self, client: &Client) -> bool {
        self.coach_id == client.coach_id
            && self.created_at == client.created_at
            && self.is_active == client.is_active
            && self.last_check_in_at == client.latest_check_in_at
            && self.programme_id == client.phase.programme_id
            && self.phase.as_ref().map(|phase| (phase.name.as_str(), phase.started_on)) == phase_of(client)
    }

    fn copy(&mut self, client: &Client) {
        self.coach_id = client.coach_id.clone();
        self.created_at = client.created_at;
        self.is_active = client.is_active;
        self.last_check_in_at = client.latest_check_in_at;
        self.programme_id = client.phase.programme_id.clone();
        self.phase = phase_of(client).map(|(name, started_on)| {
            // The same phase with an earlier date is put right.
            let stays = self.phase.as_ref().is_some_and(|was| was.name == name && started_on <= was.started_on);
            self.phase_entries += u64::from(!stays);
            PhaseEntry { name: name.to_owned(), started_on, number: self.phase_entries }
        });
    }
}

impl Observed {
    /// All that the rules ask of the client.
    pub(crate) fn facts(&self, zone: Tz, phases: Vec<ProgrammePhase>) -> Facts {
        let watch = &self.watch;
        Facts {
            created_at: watch.created_at,
            is_active: watch.is_active,
            zone,
            last_check_in_at: watch.last_check_in_at,
            last_daily_log_on: watch.last_daily_log_on,
            phase: watch.phase.clone(),
            phases,
            schedule: self.doses.schedule.clone(),
            logged: self.doses.logged.clone(),
        }
    }
}

/// The phase that the client is in, where it is known since when.
fn phase_of(client: &Client) -> Option<(&str, NaiveDate)> {
    client.phase.current.as_deref().zip(client.phase.started_on)
}

pub(super) fn key(client: &ClientId) -> Item {
    Item::from([("pk".to_owned(), s(format!("{CLIENT_PREFIX}{client}"))), ("sk".to_owned(), s(SORT_KEY))])
}
