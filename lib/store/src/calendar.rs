//! Table `workspaces`, calendars. pk `COACH#<coach_id>`, sk `CALENDAR#<uuid>`: the record, and a version that goes up with each save.
//!
//! 1. `get`   GetItem, consistent.
//! 2. `all`   Query, consistent.
//! 3. `page`  Query of the active ones after a cursor, consistent.
//! 4. `save`  UpdateItem, unless what is stored is newer.
//! 5. `check`, `check_unseen` Parts of transactions: the calendar is as it was read, or is not there yet.

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck};
use domain::calendar::Calendar;
use domain::fact_time::FactTime;
use domain::id::{CalendarId, CoachId};
use domain::tz::Tz;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{Ask, Db, Item, Part, StoreError, Write, Written, failed, from_item, n, s, to_attribute, write};
use crate::fact_order::{NOT_NEWER, SET_SAVED};
use crate::page::{Listed, PageRequest};
use crate::workspace::{key_of, partition};

/// What the sort keys of calendars begin with.
const PREFIX: &str = "CALENDAR#";

/// A calendar as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredCalendar {
    pub calendar: Calendar,
    version: u64,
}

/// The calendars in the workspaces table.
#[derive(Clone)]
pub struct Calendars {
    db: Db,
    table: String,
}

impl Calendars {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("WORKSPACES_TABLE")?.to_owned() })
    }

    /// A calendar of a coach.
    pub async fn get(&self, coach: &CoachId, id: CalendarId) -> Result<Option<StoredCalendar>, StoreError> {
        let item = self.db.get(&self.table, key(coach, id)).await?;
        item.map(|item| from_item("calendar", item)).transpose()
    }

    /// All calendars of a coach in the order of their ids, those that are not active too.
    pub async fn all(&self, coach: &CoachId) -> Result<Vec<StoredCalendar>, StoreError> {
        self.query(coach, PREFIX.to_owned(), None, usize::MAX).await
    }

    /// A page of the active ones.
    pub async fn page(&self, coach: &CoachId, request: PageRequest) -> Result<Listed<StoredCalendar>, StoreError> {
        let from = request.after.map_or_else(|| PREFIX.to_owned(), |after| format!("{PREFIX}{after}!"));
        let limit = request.limit as usize;
        let mut records = self.query(coach, from, Some("calendar.active = :true"), limit + 1).await?;
        let more = records.len() > limit;
        records.truncate(limit);
        Ok(Listed { records, more })
    }

    /// Calendars from a sort key on, as many as are wanted or more. They are few: what a query reads at a time is enough.
    async fn query(
        &self,
        coach: &CoachId,
        from: String,
        filter: Option<&str>,
        wanted: usize,
    ) -> Result<Vec<StoredCalendar>, StoreError> {
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let query = self.db.client().query().table_name(&self.table).consistent_read(true);
            let query = match filter {
                None => query,
                Some(filter) => {
                    query.filter_expression(filter).expression_attribute_values(":true", AttributeValue::Bool(true))
                }
            };
            let page = query
                .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
                .expression_attribute_values(":pk", s(partition(coach)))
                .expression_attribute_values(":from", s(&from))
                .expression_attribute_values(":to", s(format!("{PREFIX}~")))
                .set_exclusive_start_key(start)
                .ask()
                .await
                .map_err(|error| failed("Query", error))?;
            for item in page.items.unwrap_or_default() {
                found.push(from_item("calendar", item)?);
            }
            start = page.last_evaluated_key;
            if found.len() >= wanted || start.is_none() {
                return Ok(found);
            }
        }
    }

    /// Stores a calendar as the application has it, unless a newer state is stored. An equally old one applies.
    pub async fn save(&self, coach: &CoachId, calendar: &Calendar, said_at: FactTime) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table);
            update
                .set_key(Some(key(coach, calendar.id)))
                .update_expression(format!("SET calendar = :calendar, {SET_SAVED} ADD version :one"))
                .condition_expression(NOT_NEWER)
                .expression_attribute_values(":calendar", to_attribute(calendar))
                .expression_attribute_values(":at", n(said_at.ms()))
                .expression_attribute_values(":at_ns", n(said_at.ns_of_ms()))
                .expression_attribute_values(":one", n(1))
                .ask()
        });
        match written.await? {
            Written::Done(_) | Written::Refused(_) => Ok(()),
        }
    }

    /// The calendar has still not been seen.
    pub(crate) fn check_unseen(&self, coach: &CoachId, id: CalendarId) -> Write {
        let check = ConditionCheck::builder().table_name(&self.table).set_key(Some(key(coach, id)));
        Part::Calendar.check(check.condition_expression("attribute_not_exists(pk)"))
    }

    /// The calendar is still the one that was read.
    pub(crate) fn check(&self, coach: &CoachId, found: &StoredCalendar) -> Write {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(key(coach, found.calendar.id)))
            .condition_expression("version = :version")
            .expression_attribute_values(":version", n(found.version));
        Part::Calendar.check(check)
    }
}

/// The zone that a calendar's events are shown in: the calendar's own, or another where it has not been seen.
pub fn zone_of(calendars: &[StoredCalendar], id: Option<CalendarId>, otherwise: Tz) -> Tz {
    find(calendars, id).map_or(otherwise, |found| found.calendar.time_zone)
}

/// The calendar with that id.
pub fn find(calendars: &[StoredCalendar], id: Option<CalendarId>) -> Option<&StoredCalendar> {
    calendars.iter().find(|found| Some(found.calendar.id) == id)
}

fn key(coach: &CoachId, id: CalendarId) -> Item {
    key_of(coach, &format!("{PREFIX}{id}"))
}
