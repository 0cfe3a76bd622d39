//! Table `workspaces`, calendars. pk `COACH#<coach_id>`, sk `CALENDAR#<uuid>`: the record, and a version that each save
//! raises.
//!
//! 1. `get` GetItem, consistent.
//! 2. `all` Query, consistent.
//! 3. `page` Query of the active calendars after a cursor, consistent.
//! 4. `put` Part of a transaction, unless the stored state is newer.
//! 5. `check`, `check_unseen` Parts of transactions: the calendar is as it was read, or is not stored yet.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::calendar::Calendar;
use domain::crm_list::{ById, PageRequest, Position};
use domain::fact_time::FactTime;
use domain::id::{CalendarId, CoachId};
use domain::list::Order;
use domain::tz::Tz;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{Db, Item, Part, StoreError, Table, Write, from_item, query_up_to, s, to_attribute};
use crate::fact_order::set_by_fact;
use crate::page::{Page, Placed, bounds};
use crate::workspace::{key_of, partition};

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
    table: Table,
}

impl Calendars {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "WORKSPACES_TABLE")? })
    }

    /// Reads a calendar of a coach.
    pub async fn get(&self, coach: &CoachId, id: CalendarId) -> Result<Option<StoredCalendar>, StoreError> {
        self.table.get("calendar", key(coach, id)).await
    }

    /// Reads all calendars of a coach, inactive ones too, in the order of their ids.
    pub async fn all(&self, coach: &CoachId) -> Result<Vec<StoredCalendar>, StoreError> {
        let all = ById { order: Order::Asc, after: None };
        self.find(coach, &all, false, usize::MAX).await
    }

    /// Reads a page of the active calendars.
    pub async fn page(&self, coach: &CoachId, request: &PageRequest<ById>) -> Result<Page<StoredCalendar>, StoreError> {
        let records = self.find(coach, &request.walk, true, request.limit as usize + 1).await?.into_iter();
        let placed = records.map(|record| Placed { position: Position::Id(record.calendar.id.0), record });
        Ok(Page::first_of(placed.collect(), request.limit))
    }

    /// Reads the first `most` calendars of a walk. Calendars are few, so the query has no limit.
    async fn find(
        &self,
        coach: &CoachId,
        walk: &ById,
        active_only: bool,
        most: usize,
    ) -> Result<Vec<StoredCalendar>, StoreError> {
        let [from, to] = bounds(PREFIX, walk);
        let values = [(":pk", s(partition(coach))), (":from", s(from)), (":to", s(to))];
        let mut query = self.table.query("pk = :pk AND sk BETWEEN :from AND :to", values).consistent_read(true);
        query = query.scan_index_forward(walk.order == Order::Asc);
        if active_only {
            query = query
                .filter_expression("calendar.active = :true")
                .expression_attribute_values(":true", AttributeValue::Bool(true));
        }
        query_up_to(query, most).await?.into_iter().map(|item| from_item("calendar", item)).collect()
    }

    /// Part of a transaction: stores a calendar, unless the stored state is newer.
    pub fn put(&self, coach: &CoachId, calendar: &Calendar, at: FactTime) -> Write {
        let write = self.table.write(key(coach, calendar.id)).set("calendar", to_attribute(calendar)).count("version");
        set_by_fact(write, at).update(Part::LaterFact)
    }

    /// Part of a transaction: checks that the calendar is not stored yet.
    pub(crate) fn check_unseen(&self, coach: &CoachId, id: CalendarId) -> Write {
        self.table.write(key(coach, id)).when_absent().check(Part::Calendar)
    }

    /// Part of a transaction: checks that the calendar is as it was read.
    pub(crate) fn check(&self, coach: &CoachId, found: &StoredCalendar) -> Write {
        self.table.write(key(coach, found.calendar.id)).when_version(Some(found.version)).check(Part::Calendar)
    }
}

/// The time zone that a calendar's events are shown in: the calendar's own, or `otherwise` if the calendar is not
/// stored.
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
