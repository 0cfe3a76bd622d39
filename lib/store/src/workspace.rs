//! Table `workspaces`: coaches' workspaces and teams (and, in modules of their own, what belongs to a workspace).
//! pk `COACH#<coach_id>`, sk `WORKSPACE`: the record, its `version`, the exact counts `client_count`, `active_count`,
//! and the day's welcome mails (module `welcome_mail`).
//! pk `TEAM#<team_id>`, sk `TEAM`: cap and `client_count` over all of the team's workspaces.
//!
//! 1. `get`        GetItem, consistent.
//! 2. `save`       Read, then Update on the version read; a change of team moves the seats in one transaction.
//! 3. `save_team`  Update, unless what is stored is newer.
//! 4. `take_seat`, `take_team_seat`, `move_seats`, `move_team_seats`, `count_active`: parts of transactions that create, hand over or
//!    (de)activate clients.

use aws_sdk_dynamodb::types::{ConditionCheck, ReturnValuesOnConditionCheckFailure, Update};
use domain::country::Country;
use domain::fact_time::FactTime;
use domain::id::{CoachId, TeamId};
use domain::tz::{Tz, ZoneName};
use domain::workspace::{CanonicalHost, CrmConfiguration, Entitlements, Team, Workspace};
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{
    Ask, Db, Item, Part, StoreError, Transacted, Write, Written, from_item, n, retry, s, to_attribute, write,
};
use crate::fact::FactContext;
use crate::fact_order::{NOT_NEWER, SET_SAVED, SavedAt};
use crate::watch::Watches;
use crate::welcome_mail::{MailsSent, WelcomeMail};

/// Counts begin with the record, so that conditions can rely on them.
const COUNTS_FROM_ZERO: [&str; 2] =
    ["client_count = if_not_exists(client_count, :zero)", "active_count = if_not_exists(active_count, :zero)"];
const MOVE_SEATS: &str = "ADD client_count :clients, active_count :active";
const BELOW_CAP: &str = "(attribute_not_exists(client_cap) OR client_count < client_cap)";

/// A workspace as stored.
#[derive(Debug, Clone)]
pub struct StoredWorkspace {
    pub workspace: Workspace,
    /// Goes up with each save.
    pub version: u64,
    /// Client records, deactivated ones included.
    pub client_count: u32,
    /// Active clients.
    pub active_count: u32,
    saved_at: FactTime,
    pub(crate) mails: MailsSent,
}

impl StoredWorkspace {
    /// Where the workspace's days begin and end.
    pub fn zone(&self) -> Result<Tz, StoreError> {
        self.workspace.time_zone.zone().map_err(|unknown| StoreError::corrupt("workspace", unknown))
    }
}

/// What came of saving a workspace.
#[derive(Debug)]
pub enum Saved {
    /// It is stored as given.
    Done(Box<StoredWorkspace>),
    /// What is stored is newer.
    Stale,
    /// The team has not been seen yet.
    UnknownTeam,
}

#[derive(Serialize, Deserialize)]
struct Record {
    coach_id: CoachId,
    email: String,
    name: String,
    team_id: Option<TeamId>,
    canonical_host: String,
    time_zone: ZoneName,
    country: Country,
    client_cap: Option<u32>,
    entitlements: Entitlements,
    crm: Option<CrmConfiguration>,
    #[serde(flatten)]
    saved_at: SavedAt,
    #[serde(flatten)]
    mails: MailsSent,
    version: u64,
    client_count: u32,
    active_count: u32,
}

/// The workspaces table.
#[derive(Clone)]
pub struct Workspaces {
    db: Db,
    table: String,
}

impl Workspaces {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("WORKSPACES_TABLE")?.to_owned() })
    }

    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// The workspace of a coach.
    pub async fn get(&self, coach: &CoachId) -> Result<Option<StoredWorkspace>, StoreError> {
        self.db.get(&self.table, key(coach)).await?.map(stored).transpose()
    }

    /// Where the days of a coach's clients begin and end.
    pub async fn zone(&self, coach: &CoachId) -> Result<Tz, StoreError> {
        let workspace = self.get(coach).await?;
        workspace.ok_or_else(|| StoreError::corrupt("client", "its workspace is missing"))?.zone()
    }

    /// Stores a workspace as the application has it, unless a newer state is stored. An equally old one applies.
    /// Another time zone moves the days of all clients, who are to be evaluated again.
    pub async fn save(
        &self,
        workspace: &Workspace,
        watches: &Watches,
        fact: FactContext<'_>,
    ) -> Result<Saved, StoreError> {
        let occurred_at = fact.occurred_at;
        retry("the workspace", || async {
            let found = self.get(&workspace.coach_id).await?;
            if found.as_ref().is_some_and(|found| found.saved_at > occurred_at) {
                return Ok(Some(Saved::Stale));
            }
            let mut writes = vec![self.save_record(workspace, found.as_ref(), occurred_at)];
            let old_team = found.as_ref().and_then(|found| found.workspace.team_id.as_ref());
            let new_team = workspace.team_id.as_ref();
            let seats = found.as_ref().map_or(0, |found| i64::from(found.client_count));
            if old_team != new_team {
                writes.extend(new_team.map(|team| self.move_team_seats(team, seats)));
                writes.extend(old_team.map(|team| self.move_team_seats(team, -seats).labelled(Part::FormerTeam)));
            }
            if found.as_ref().is_none_or(|found| found.workspace.time_zone != workspace.time_zone) {
                writes.push(watches.change_zone(&workspace.coach_id, &workspace.time_zone, fact.marked()));
            }
            match self.db.transact(&writes).await? {
                Transacted::Done => match self.get(&workspace.coach_id).await? {
                    Some(stored) => Ok(Some(Saved::Done(Box::new(stored)))),
                    None => Err(StoreError::corrupt("workspace", "it is gone after it was saved")),
                },
                Transacted::Refused(refused) if refused.is(Part::Team) => Ok(Some(Saved::UnknownTeam)),
                Transacted::Refused(_) => Ok(None),
            }
        })
        .await
    }

    fn save_record(&self, workspace: &Workspace, found: Option<&StoredWorkspace>, at: FactTime) -> Write {
        let mut sets = Vec::new();
        let mut removes = Vec::new();
        let mut update = Update::builder().table_name(&self.table).set_key(Some(key(&workspace.coach_id)));
        let fields = [
            ("coach_id", Some(to_attribute(&workspace.coach_id))),
            ("email", Some(s(&workspace.email))),
            ("name", Some(s(&workspace.name))),
            ("team_id", workspace.team_id.as_ref().map(to_attribute)),
            ("canonical_host", Some(s(workspace.canonical_host.as_str()))),
            ("time_zone", Some(s(workspace.time_zone.as_str()))),
            ("country", Some(to_attribute(&workspace.country))),
            ("client_cap", workspace.client_cap.map(n)),
            ("entitlements", Some(to_attribute(&workspace.entitlements))),
            ("crm", workspace.crm.as_ref().map(to_attribute)),
            ("saved_at", Some(n(at.ms()))),
            ("saved_ns", Some(n(at.ns_of_ms()))),
        ];
        for (name, value) in fields {
            update = update.expression_attribute_names(format!("#{name}"), name);
            match value {
                Some(value) => {
                    sets.push(format!("#{name} = :{name}"));
                    update = update.expression_attribute_values(format!(":{name}"), value);
                }
                None => removes.push(format!("#{name}")),
            }
        }
        sets.extend(COUNTS_FROM_ZERO.map(str::to_owned));
        let mut expression = format!("SET {}", sets.join(", "));
        if !removes.is_empty() {
            expression.push_str(&format!(" REMOVE {}", removes.join(", ")));
        }
        expression.push_str(" ADD version :one");
        update = update
            .update_expression(expression)
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":zero", n(0));
        // The count is part of the condition: the seats that move with a change of team are those that were read.
        update = match found {
            None => update.condition_expression("attribute_not_exists(pk)"),
            Some(found) if found.workspace.team_id == workspace.team_id => update
                .condition_expression("version = :version")
                .expression_attribute_values(":version", n(found.version)),
            Some(found) => update
                .condition_expression("version = :version AND client_count = :count")
                .expression_attribute_values(":version", n(found.version))
                .expression_attribute_values(":count", n(found.client_count)),
        };
        Part::Workspace.update(update)
    }

    /// Stores a team as the application has it, unless a newer state is stored.
    pub async fn save_team(&self, team: &Team, occurred_at: FactTime) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(team_key(&team.team_id)));
            let update = update
                .condition_expression(NOT_NEWER)
                .expression_attribute_values(":at", n(occurred_at.ms()))
                .expression_attribute_values(":at_ns", n(occurred_at.ns_of_ms()))
                .expression_attribute_values(":zero", n(0));
            match team.client_cap {
                Some(cap) => update
                    .update_expression(format!("SET {SET_SAVED}, {}, client_cap = :cap", COUNTS_FROM_ZERO[0]))
                    .expression_attribute_values(":cap", n(cap))
                    .ask(),
                None => update
                    .update_expression(format!("SET {SET_SAVED}, {} REMOVE client_cap", COUNTS_FROM_ZERO[0]))
                    .ask(),
            }
        });
        match written.await? {
            Written::Done(_) | Written::Refused(_) => Ok(()),
        }
    }

    /// One more client, if the plan allows it, and the client's welcome mail. Refused with the old item:
    /// [`seat_refusal`] tells why.
    pub(crate) fn take_seat(&self, coach: &CoachId, team: Option<&TeamId>, mail: Option<WelcomeMail>) -> Write {
        let below_cap = format!(" AND {BELOW_CAP}");
        let update = match mail {
            None => self.seats(coach, team, 1, 1, &below_cap),
            Some(mail) => {
                let update = self.seats(coach, team, 1, 1, &format!("{below_cap} AND {}", mail.condition()));
                mail.valued(update.update_expression(mail.counted_in(MOVE_SEATS)))
            }
        };
        let update = update.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        Part::Workspace.update(update)
    }

    /// Part of a transaction: the workspace is as it was read, but for its counts.
    pub(crate) fn unchanged(&self, workspace: &StoredWorkspace) -> Write {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(key(&workspace.workspace.coach_id)))
            .condition_expression("version = :version")
            .expression_attribute_values(":version", n(workspace.version));
        Part::Workspace.check(check)
    }

    /// One more client of the team, if its cap allows it.
    pub(crate) fn take_team_seat(&self, team: &TeamId) -> Write {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(team_key(team)))
            .update_expression("ADD client_count :one")
            .condition_expression(format!("attribute_exists(pk) AND {BELOW_CAP}"))
            .expression_attribute_values(":one", n(1));
        Part::Team.update(update)
    }

    /// A change of the counts that no cap stops. The team must still be the one that was read.
    pub(crate) fn move_seats(&self, coach: &CoachId, team: Option<&TeamId>, clients: i64, active: i64) -> Write {
        let update = self.seats(coach, team, clients, active, "");
        Part::Workspace.update(update)
    }

    /// A client was switched on (1) or off (-1).
    pub(crate) fn count_active(&self, coach: &CoachId, change: i64) -> Write {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(coach)))
            .update_expression("ADD active_count :change")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":change", n(change));
        Part::Workspace.update(update)
    }

    /// Moves the count of the seats that a team's clients take.
    pub(crate) fn move_team_seats(&self, team: &TeamId, clients: i64) -> Write {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(team_key(team)))
            .update_expression("ADD client_count :clients")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":clients", n(clients));
        Part::Team.update(update)
    }

    fn seats(
        &self,
        coach: &CoachId,
        team: Option<&TeamId>,
        clients: i64,
        active: i64,
        and: &str,
    ) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(coach)))
            .update_expression(MOVE_SEATS)
            .expression_attribute_values(":clients", n(clients))
            .expression_attribute_values(":active", n(active));
        match team {
            Some(team) => update
                .condition_expression(format!("team_id = :team{and}"))
                .expression_attribute_values(":team", s(team.as_str())),
            None => update.condition_expression(format!("attribute_exists(pk) AND attribute_not_exists(team_id){and}")),
        }
    }
}

/// Why [`Workspaces::take_seat`] was refused.
pub(crate) enum SeatRefusal {
    /// The plan's cap is reached.
    PlanFull,
    /// The workspace has changed since it was read.
    Changed,
}

/// Reads the reason out of the old item.
pub(crate) fn seat_refusal(old: Option<&Item>, team: Option<&TeamId>) -> Result<SeatRefusal, StoreError> {
    let Some(item) = old else { return Ok(SeatRefusal::Changed) };
    let found = stored(item.clone())?;
    let same_team = found.workspace.team_id.as_ref() == team;
    let full = found.workspace.client_cap.is_some_and(|cap| found.client_count >= cap);
    Ok(if same_team && full { SeatRefusal::PlanFull } else { SeatRefusal::Changed })
}

fn stored(item: Item) -> Result<StoredWorkspace, StoreError> {
    let record: Record = from_item("workspace", item)?;
    let canonical_host =
        CanonicalHost::parse(&record.canonical_host).map_err(|rule| StoreError::corrupt("workspace", rule))?;
    Ok(StoredWorkspace {
        workspace: Workspace {
            coach_id: record.coach_id,
            email: record.email,
            name: record.name,
            team_id: record.team_id,
            canonical_host,
            time_zone: record.time_zone,
            country: record.country,
            client_cap: record.client_cap,
            entitlements: record.entitlements,
            crm: record.crm,
        },
        version: record.version,
        client_count: record.client_count,
        active_count: record.active_count,
        saved_at: record.saved_at.into(),
        mails: record.mails,
    })
}

/// Partition of everything that belongs to a workspace.
pub(crate) fn partition(coach: &CoachId) -> String {
    format!("COACH#{coach}")
}

/// The key of an item in that partition.
pub(crate) fn key_of(coach: &CoachId, sk: &str) -> Item {
    Item::from([("pk".to_owned(), s(partition(coach))), ("sk".to_owned(), s(sk))])
}

/// The workspace's own item.
pub(crate) fn key(coach: &CoachId) -> Item {
    key_of(coach, "WORKSPACE")
}

fn team_key(team: &TeamId) -> Item {
    Item::from([("pk".to_owned(), s(format!("TEAM#{team}"))), ("sk".to_owned(), s("TEAM"))])
}
