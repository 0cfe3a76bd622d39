//! Table `crm`, calendar events. pk `COACH#<coach_id>`.
//! sk `EVENT#<uuid>`: every event, cancelled and private ones too. LSI `listed`: `BOOKING#<uuid>` of a confirmed event
//! on a calendar. LSI `by_update`: `updated` of every event on a calendar (module `updated`). GSI `by_contact`:
//! `contact_ref` of an event with a contact. Each write raises the `version`.
//! sk `BUSY#..`: busy intervals (module `bucket`).
//! 1. `page` Query of `listed` or `by_update`, consistent; with a filter up to four. First, with a contact, reads of
//!    those that live as the same person. `get` BatchGetItem.
//! 2. `read_booking` BatchGetItem of the contact and the buckets around a date, and GetItem of the calendar.
//!    `read_change` The same with the event, for a move, and Query of all calendars.
//! 3. `book`, `change` Parts of a transaction: the event, its buckets under the versions read, checks of calendar and
//!    contact (module `change`).
//! 4. `event_in_context`, `context_of` Reads of a fact. `put_event` Parts of its transaction, on the event's version
//!    alone (module `feed`).
//! 5. `emit_conflicts` Reads the buckets again. Transaction: emits the overlaps, removes the mark (module `conflict`).
//! 6. `give_buffers` Query of up to 40 events that wait for a calendar, then a transaction each (module
//!    `pending_buffers`).
//! 7. `busy_between` Query of day buckets, and a read of the bucket of long events.

mod bucket;
mod change;
mod conflict;
mod feed;
mod pending_buffers;

use domain::booking::{BookingFilter, CalendarEntry};
use domain::crm_list::{PageRequest, Walk};
use domain::id::{CalendarEntryId, CoachId, ContactId};
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::about_contact::{EVENT_PREFIX, LISTED_PREFIX, first_updated};
use crate::calendar::Calendars;
use crate::contact::Contacts;
use crate::contact_ref::ContactRef;
use crate::db::{Db, Item, Part, StoreError, Table, Write, from_item, n, s, to_item};
use crate::outbox::Outbox;
use crate::page::{Filter, Listing, Page};
use crate::updated::Updated;
use crate::workspace::{key_of, partition};

pub use bucket::BusyTimes;
pub use change::{BookingRead, ChangeRead};
pub use feed::EventContext;

/// An event as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredEntry {
    #[serde(flatten)]
    pub event: CalendarEntry,
    /// `None`: a private entry, which no list shows.
    updated: Option<Updated>,
    version: u64,
    /// The fact that moved the event to its time, until its overlaps are emitted.
    pub conflict_check: Option<String>,
}

#[derive(Serialize)]
struct EventItem<'a> {
    pk: String,
    sk: String,
    listed: Option<String>,
    contact_ref: Option<String>,
    #[serde(flatten)]
    stored: &'a StoredEntry,
}

/// Bookings and private entries in the CRM table.
#[derive(Clone)]
pub struct Bookings {
    table: Table,
    calendars: Calendars,
    contacts: Contacts,
    outbox: Outbox,
}

impl Bookings {
    /// The table that `CRM_TABLE` names.
    pub fn new(
        env: &Environment,
        db: &Db,
        calendars: &Calendars,
        contacts: &Contacts,
        outbox: &Outbox,
    ) -> Result<Self, BoxError> {
        let (calendars, contacts, outbox) = (calendars.clone(), contacts.clone(), outbox.clone());
        Ok(Self { table: Table::new(env, db, "CRM_TABLE")?, calendars, contacts, outbox })
    }

    /// Reads a page of the bookings that a filter shows: those that are not cancelled, or in the order of updates all.
    pub async fn page(
        &self,
        coach: &CoachId,
        request: &PageRequest<Walk>,
        filter: &BookingFilter,
    ) -> Result<Page<CalendarEntry>, StoreError> {
        let listing = Listing { table: &self.table, index: Some("listed"), prefix: LISTED_PREFIX };
        let leads = match filter.lead_id {
            Some(lead) => Some(self.contacts.same_person(coach, lead).await?),
            None => None,
        };
        let page = listing.filtered_page(coach, request, filter_of(filter, leads)).await?;
        page.try_map(|item| StoredEntry::from_item(item).map(|stored| Some(stored.event)))
    }

    /// Reads an event of a coach.
    pub async fn get(&self, coach: &CoachId, id: CalendarEntryId) -> Result<Option<CalendarEntry>, StoreError> {
        Ok(self.event(coach, id).await?.map(|stored| stored.event))
    }

    async fn event(&self, coach: &CoachId, id: CalendarEntryId) -> Result<Option<StoredEntry>, StoreError> {
        let found = self.table.read(vec![event_key(coach, id)]).await?.pop();
        found.map(StoredEntry::from_item).transpose()
    }

    /// Stores an event, on condition that the item is as it was found.
    fn put(&self, coach: &CoachId, stored: &StoredEntry, found: Option<&StoredEntry>) -> Write {
        let put = self.table.write(stored.to_item(coach)).when_version(found.map(|found| found.version));
        match found.map(|found| &found.conflict_check) {
            None => put,
            Some(None) => put.when("attribute_not_exists(conflict_check)", []),
            Some(Some(mark)) => put.when("conflict_check = :mark", [(":mark", s(mark))]),
        }
        .put(Part::Event)
    }
}

impl StoredEntry {
    /// A new event.
    pub fn new(event: CalendarEntry) -> Self {
        let updated = event.is_booking().then(|| first_updated(event.id, event.updated_at));
        Self { event, updated, version: 1, conflict_check: None }
    }

    /// The event after a change. An event's `updated_at` is the service's time.
    pub fn changed(&self, event: CalendarEntry) -> Self {
        let is_change = event.updated_at != self.event.updated_at;
        let next = || match &self.updated {
            Some(updated) => updated.next_if(is_change, event.updated_at),
            None => first_updated(event.id, event.updated_at),
        };
        Self { updated: event.is_booking().then(next), event, version: self.version + 1, ..self.clone() }
    }

    fn from_item(item: Item) -> Result<Self, StoreError> {
        from_item("calendar event", item)
    }

    fn to_item(&self, coach: &CoachId) -> Item {
        let event = &self.event;
        let is_listed = event.is_confirmed() && event.is_booking();
        to_item(&EventItem {
            pk: partition(coach),
            sk: event_sk(event.id),
            listed: is_listed.then(|| format!("{LISTED_PREFIX}{}", event.id)),
            contact_ref: event.lead_id.map(|lead| ContactRef::new(coach, lead).to_string()),
            stored: self,
        })
    }
}

/// The condition of a filter. `leads` are the contacts that live as the filter's contact.
fn filter_of(filter: &BookingFilter, leads: Option<Vec<ContactId>>) -> Filter {
    Filter::default()
        .clause("starts_at >= :earliest", ":earliest", filter.from.map(|from| n(from.ms())))
        .clause("starts_at < :end", ":end", filter.to.map(|to| n(to.ms())))
        .clause("calendar_id = :calendar", ":calendar", filter.calendar_id.map(|id| s(id.to_string())))
        .one_of("lead_id", leads.map(|leads| leads.iter().map(|id| s(id.to_string())).collect()))
}

fn event_sk(id: CalendarEntryId) -> String {
    format!("{EVENT_PREFIX}{id}")
}

fn event_key(coach: &CoachId, id: CalendarEntryId) -> Item {
    key_of(coach, &event_sk(id))
}
