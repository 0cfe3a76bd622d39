//! Table `workspaces`: coaches' workspaces and teams, and in other modules the items of a workspace.
//! pk `COACH#<coach_id>`, sk `WORKSPACE`: the record, its `version`, the exact counts `client_count`, `active_count`,
//! and the day's welcome mails (module `welcome_mail`).
//! pk `TEAM#<team_id>`, sk `TEAM`: cap and `client_count` over all of the team's workspaces.
//!
//! 1. `get` GetItem, consistent.
//! 2. `save` Parts of a transaction on the version read; a change of team moves the seats in the same transaction.
//! 3. `put_team` Part of a transaction, unless the stored state is newer.
//! 4. `set_wipe` UpdateItem on the version read.
//! 5. `take_seat`, `take_team_seat`, `move_seats`, `move_team_seats`, `count_active` Parts of transactions that create,
//!    hand over or (de)activate clients.

use domain::fact_time::FactTime;
use domain::id::{CoachId, TeamId, WipeId};
use domain::time::Timestamp;
use domain::tz::Tz;
use domain::workspace::{Team, Workspace};
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{
    self, Db, Item, ItemWrite, Part, RefusedTransaction, StoreError, Table, Write, Written, from_item, n, s,
    to_attribute, to_attributes,
};
use crate::fact_order::set_by_fact;
use crate::welcome_mail::{MailsSent, WelcomeMail};

const PARTITION_PREFIX: &str = "COACH#";

/// Counts start with the record, so that conditions can rely on them.
const CLIENTS_FROM_ZERO: &str = "client_count = if_not_exists(client_count, :zero)";
const ACTIVE_FROM_ZERO: &str = "active_count = if_not_exists(active_count, :zero)";
const BELOW_CAP: &str = "attribute_not_exists(client_cap) OR client_count < client_cap";

/// A workspace as stored.
#[derive(Debug, Clone, Deserialize)]
pub struct StoredWorkspace {
    #[serde(flatten)]
    pub workspace: Workspace,
    /// Raised by each save.
    pub version: u64,
    /// Client records, deactivated ones included.
    pub client_count: u32,
    /// Active clients.
    pub active_count: u32,
    saved_at: FactTime,
    #[serde(flatten)]
    pub mails: MailsSent,
    /// The latest removal of the workspace's test data.
    #[serde(default)]
    pub wipe: Option<Wipe>,
}

/// A removal of a workspace's test data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wipe {
    pub job: WipeId,
    pub begun_at: Timestamp,
    /// The time from which the workspace's facts waited. `None`: some do not yet.
    #[serde(default)]
    pub closed_at: Option<Timestamp>,
    pub stage: WipeStage,
    /// The end of the lease of the call that works on the removal.
    #[serde(default)]
    pub busy_until: Option<Timestamp>,
}

impl Wipe {
    /// A removal that begins.
    pub fn new(job: WipeId, now: Timestamp) -> Self {
        Self { job, begun_at: now, closed_at: None, stage: WipeStage::Removing, busy_until: None }
    }
}

/// The stage of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WipeStage {
    /// Writes are refused.
    Removing,
    /// Writes are taken again, but for keys that do not know it yet.
    Opening,
    Done,
}

impl StoredWorkspace {
    /// The time of the fact that set the workspace.
    pub fn saved_at(&self) -> FactTime {
        self.saved_at
    }

    /// Returns true while the workspace's test data is being removed, so that writes are refused.
    pub fn is_wiping(&self) -> bool {
        self.wipe.as_ref().is_some_and(|wipe| wipe.stage == WipeStage::Removing)
    }

    /// The time zone of the workspace.
    pub fn zone(&self) -> Result<Tz, StoreError> {
        self.workspace.time_zone.zone().map_err(|unknown| StoreError::corrupt("workspace", unknown))
    }
}

/// The workspaces table.
#[derive(Clone)]
pub struct Workspaces {
    pub(crate) table: Table,
}

impl Workspaces {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "WORKSPACES_TABLE")? })
    }

    /// Reads the workspace of a coach.
    pub async fn get(&self, coach: &CoachId) -> Result<Option<StoredWorkspace>, StoreError> {
        self.table.get("workspace", key(coach)).await
    }

    /// Reads the time zone of a coach's workspace.
    pub async fn zone(&self, coach: &CoachId) -> Result<Tz, StoreError> {
        let workspace = self.get(coach).await?;
        workspace.ok_or_else(|| StoreError::corrupt("client", "its workspace is missing"))?.zone()
    }

    /// Parts of a transaction: store a workspace in the place of the one that was found; `None` if that is newer. The
    /// seats of its clients move with a change of team.
    pub fn save(&self, workspace: &Workspace, found: Option<&StoredWorkspace>, at: FactTime) -> Option<Vec<Write>> {
        if found.is_some_and(|found| found.saved_at > at) {
            return None;
        }
        let mut writes = vec![self.save_record(workspace, found, at)];
        let old_team = found.and_then(|found| found.workspace.team_id.as_ref());
        let new_team = workspace.team_id.as_ref();
        let seats = found.map_or(0, |found| i64::from(found.client_count));
        if old_team != new_team {
            writes.extend(new_team.map(|team| self.move_team_seats(team, seats)));
            writes.extend(old_team.map(|team| self.move_team_seats(team, -seats).labelled(Part::FormerTeam)));
        }
        Some(writes)
    }

    fn save_record(&self, workspace: &Workspace, found: Option<&StoredWorkspace>, at: FactTime) -> Write {
        let mut write = self.table.write(key(&workspace.coach_id)).set_to(CLIENTS_FROM_ZERO).set_to(ACTIVE_FROM_ZERO);
        for (name, value) in to_attributes(workspace) {
            write = write.set_or_remove(&name, value);
        }
        write = write.set("saved_at", s(at.to_string())).count("version");
        write = write.when_version(found.map(|found| found.version));
        // The count is part of the condition: the seats that move with a change of team are the seats that were read.
        if let Some(found) = found.filter(|found| found.workspace.team_id != workspace.team_id) {
            write = write.when("client_count = :count", [(":count", n(found.client_count))]);
        }
        write.update(Part::Workspace)
    }

    /// Part of a transaction: stores a team, unless the stored state is newer.
    pub fn put_team(&self, team: &Team, at: FactTime) -> Write {
        let write = self.table.write(team_key(&team.team_id)).set_or_remove("client_cap", team.client_cap.map(n));
        set_by_fact(write.set_to(CLIENTS_FROM_ZERO), at).update(Part::LaterFact)
    }

    /// Part of a transaction: takes a seat, if the plan allows one more client, and counts the welcome mail. The
    /// refused write returns the item, from which [`StoredWorkspace::is_full`] reads the reason.
    pub(crate) fn take_seat(&self, coach: &CoachId, team: Option<&TeamId>, mail: Option<WelcomeMail>) -> Write {
        let seat = self.seats(coach, team, 1, 1).when(BELOW_CAP, []);
        match mail {
            None => seat,
            Some(mail) => mail.counted_in(seat),
        }
        .update(Part::Workspace)
    }

    /// Parts of a transaction: change a workspace that was read, as of `at`, or of the fact that set it if that is
    /// later.
    pub fn change(&self, found: &StoredWorkspace, workspace: &Workspace, at: FactTime) -> Vec<Write> {
        self.save(workspace, Some(found), at.max(found.saved_at)).unwrap_or_default()
    }

    /// Begins a removal of a workspace's test data, unless one is running. Returns the workspace.
    pub async fn begin_wipe(&self, coach: &CoachId, wipe: &Wipe) -> Result<StoredWorkspace, StoreError> {
        db::retry("a removal of test data", || async {
            let found = self.get(coach).await?;
            let found = found.ok_or_else(|| StoreError::corrupt("key", "its workspace is missing"))?;
            match &found.wipe {
                Some(running) if running.stage != WipeStage::Done => Ok(Some(found)),
                Some(_) | None => self.set_wipe(&found, wipe).await,
            }
        })
        .await
    }

    /// Sets the removal of a workspace's test data, if the workspace is as it was read. Returns the changed workspace;
    /// `None` if another write was faster.
    pub async fn set_wipe(&self, found: &StoredWorkspace, wipe: &Wipe) -> Result<Option<StoredWorkspace>, StoreError> {
        let write = self.table.write(key(&found.workspace.coach_id)).set("wipe", to_attribute(wipe)).count("version");
        let written = write.when_version(Some(found.version)).returning_item().update_now().await?;
        match written {
            Written::Done(item) => from_item("workspace", item).map(Some),
            // The update is repeated if its answer was lost.
            Written::Refused(Some(item)) => {
                let current: StoredWorkspace = from_item("workspace", item)?;
                Ok((current.wipe.as_ref() == Some(wipe)).then_some(current))
            }
            Written::Refused(None) => Ok(None),
        }
    }

    /// Part of a transaction: checks that the workspace is as it was read, except its counts.
    pub fn check_unchanged(&self, workspace: &StoredWorkspace) -> Write {
        let found = self.table.write(key(&workspace.workspace.coach_id)).when_version(Some(workspace.version));
        found.check(Part::Workspace)
    }

    /// Part of a transaction: takes a seat of the team, if its cap allows one more client.
    pub(crate) fn take_team_seat(&self, team: &TeamId) -> Write {
        let seat = self.table.write(team_key(team)).count("client_count");
        seat.when_present().when(BELOW_CAP, []).update(Part::Team)
    }

    /// Part of a transaction: changes the counts regardless of caps. The team must still be the one that was read.
    pub(crate) fn move_seats(&self, coach: &CoachId, team: Option<&TeamId>, clients: i64, active: i64) -> Write {
        self.seats(coach, team, clients, active).update(Part::Workspace)
    }

    /// Part of a transaction: counts a client that became active (1) or inactive (-1).
    pub(crate) fn count_active(&self, coach: &CoachId, change: i64) -> Write {
        self.table.write(key(coach)).add("active_count", n(change)).when_present().update(Part::Workspace)
    }

    /// Part of a transaction: changes the count of a team's clients, regardless of its cap.
    pub(crate) fn move_team_seats(&self, team: &TeamId, clients: i64) -> Write {
        self.table.write(team_key(team)).add("client_count", n(clients)).when_present().update(Part::Team)
    }

    fn seats(&self, coach: &CoachId, team: Option<&TeamId>, clients: i64, active: i64) -> ItemWrite<'_> {
        let moved = self.table.write(key(coach)).add("client_count", n(clients)).add("active_count", n(active));
        match team {
            Some(team) => moved.when("team_id = :team", [(":team", s(team.as_str()))]),
            None => moved.when("attribute_exists(pk) AND attribute_not_exists(team_id)", []),
        }
    }
}

impl StoredWorkspace {
    /// Returns true if a new client's seat was refused because the plan is full. False: the workspace has changed
    /// since it was read.
    pub fn is_full(&self, refused: &RefusedTransaction) -> Result<bool, StoreError> {
        let Some(item) = refused.item(Part::Workspace) else { return Ok(false) };
        let found: Self = from_item("workspace", item.clone())?;
        let is_full = found.workspace.client_cap.is_some_and(|cap| found.client_count >= cap);
        Ok(is_full && found.workspace.team_id == self.workspace.team_id)
    }
}

/// The partition of all items that belong to a workspace.
pub(crate) fn partition(coach: &CoachId) -> String {
    format!("{PARTITION_PREFIX}{coach}")
}

/// The coach of a partition.
pub(crate) fn coach_of(pk: &str) -> Result<CoachId, StoreError> {
    let id = pk.strip_prefix(PARTITION_PREFIX).and_then(|id| CoachId::parse(id).ok());
    id.ok_or_else(|| StoreError::corrupt("workspace", "its partition has another form"))
}

/// The key of an item in that partition.
pub(crate) fn key_of(coach: &CoachId, sk: &str) -> Item {
    db::key(partition(coach), sk)
}

/// The key of the workspace's own item.
pub(crate) fn key(coach: &CoachId) -> Item {
    key_of(coach, "WORKSPACE")
}

fn team_key(team: &TeamId) -> Item {
    db::key(format!("TEAM#{team}"), "TEAM")
}

#[cfg(test)]
mod tests {
    use domain::country::Country;
    use domain::tz::ZoneName;
    use domain::workspace::{CanonicalHost, Entitlements};

    use super::*;

    #[test]
    fn a_workspace_is_written_under_the_names_that_it_is_read_by() {
        let workspace = Workspace {
            coach_id: CoachId::parse("coach_1").unwrap(),
            email: "ada@example.com".to_owned(),
            name: "Ada".to_owned(),
            team_id: None,
            canonical_host: CanonicalHost::parse("https://ada.example.com").unwrap(),
            time_zone: ZoneName::from("Europe/Berlin".parse::<Tz>().unwrap()),
            country: Country::parse("US").unwrap(),
            client_cap: Some(10),
            entitlements: Entitlements { partner_api: true, pro_crm: false, gym: false },
            crm: None,
        };
        let removed: Vec<String> =
            to_attributes(&workspace).filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert_eq!(removed.len(), 2, "{removed:?}");
        let mut item: Item = to_attributes(&workspace).filter_map(|(name, value)| Some((name, value?))).collect();
        let numbers = [("version", 2), ("client_count", 3), ("active_count", 1), ("mails_sent", 4)];
        item.extend(numbers.map(|(name, value)| (name.to_owned(), n(value))));
        let saved_at = FactTime::from_ms(5);
        item.extend(
            [("mail_day", "2026-12-01"), ("saved_at", &saved_at.to_string())]
                .map(|(name, value)| (name.to_owned(), s(value))),
        );
        let read: StoredWorkspace = from_item("workspace", item).unwrap();
        assert_eq!(read.workspace, workspace);
        assert_eq!((read.version, read.client_count, read.active_count), (2, 3, 1));
        assert_eq!(read.saved_at, saved_at);
        let day = chrono::NaiveDate::from_ymd_opt(2026, 12, 1).unwrap();
        assert!(read.mails.one_more(day, 4).is_none() && read.mails.one_more(day, 5).is_some());
    }
}
