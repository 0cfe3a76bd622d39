//! Bookings of the API: what a decision (in `domain`) needs, and the writes of its result, on condition that the items
//! read are unchanged.

use chrono::NaiveDate;
use domain::booking::{CalendarEntry, Lead};
use domain::busy::{BucketWrite, Busy, booking_writes, buckets_near_date, feed_writes};
use domain::id::{CalendarEntryId, CalendarId, CoachId, ContactId};
use futures::future::try_join;

use crate::booking::{Bookings, BusyTimes, StoredEntry, bucket, event_key, event_sk};
use crate::calendar::{StoredCalendar, find};
use crate::contact::{ContactState, contact_key};
use crate::db::{Item, StoreError, Write, sk_of};
use crate::workspace::key_of;

/// The state that the decision about a new booking needs.
#[derive(Debug)]
pub struct BookingRead {
    pub lead: ContactState,
    pub calendar: Option<StoredCalendar>,
    pub busy: BusyTimes,
}

/// The state that the decision about a change of a booking needs.
#[derive(Debug)]
pub struct ChangeRead {
    /// The contact that the caller names. If the event is with it: the contact that it lives as.
    pub lead: ContactState,
    /// The named event, if it is with the contact: the two live as the same person.
    pub event: Option<StoredEntry>,
    /// All calendars of the coach.
    pub calendars: Vec<StoredCalendar>,
    /// The busy intervals around the new date, if there is one.
    pub busy: BusyTimes,
}

impl Bookings {
    /// Reads the state for a new booking.
    pub async fn read_booking(
        &self,
        coach: &CoachId,
        lead: ContactId,
        calendar: CalendarId,
        date: NaiveDate,
    ) -> Result<BookingRead, StoreError> {
        let mut keys = bucket_keys(coach, date);
        keys.push(contact_key(coach, lead));
        let (calendar, items) = try_join(self.calendars.get(coach, calendar), self.table.read(keys)).await?;
        let (buckets, records) = split(items);
        let lead = self.lead_of_item(coach, lead, records.into_iter().next()).await?;
        Ok(BookingRead { lead, calendar, busy: BusyTimes::from_items(buckets)? })
    }

    /// Reads the state for a change of a booking: its move to a date, or its cancellation.
    pub async fn read_change(
        &self,
        coach: &CoachId,
        event: CalendarEntryId,
        lead: ContactId,
        to: Option<NaiveDate>,
    ) -> Result<ChangeRead, StoreError> {
        let mut keys = to.map(|date| bucket_keys(coach, date)).unwrap_or_default();
        keys.extend([event_key(coach, event), contact_key(coach, lead)]);
        let (calendars, items) = try_join(self.calendars.all(coach), self.table.read(keys)).await?;
        let (buckets, records) = split(items);
        let own_sk = event_sk(event);
        let (events, contacts): (Vec<Item>, Vec<Item>) = records.into_iter().partition(|item| sk_of(item) == own_sk);
        let event = events.into_iter().next().map(StoredEntry::from_item).transpose()?;
        let named = self.lead_of_item(coach, lead, contacts.into_iter().next()).await?;
        let is_bound = match event.as_ref().and_then(|found| found.event.lead_id) {
            Some(bound) => self.contacts.are_same_person(coach, bound, lead).await?,
            None => false,
        };
        Ok(ChangeRead {
            lead: if is_bound { named.survived() } else { named },
            event: event.filter(|_| is_bound),
            calendars,
            busy: BusyTimes::from_items(buckets)?,
        })
    }

    /// Reads the state of the contact that a caller names.
    pub async fn lead(&self, coach: &CoachId, lead: ContactId) -> Result<Lead, StoreError> {
        Ok(self.contacts.state(coach, lead).await?.lead())
    }

    /// The state of a contact whose item was read already. Only a chain of merges takes more reads.
    async fn lead_of_item(
        &self,
        coach: &CoachId,
        lead: ContactId,
        item: Option<Item>,
    ) -> Result<ContactState, StoreError> {
        match ContactState::from_item(item)? {
            ContactState::Merged { .. } => self.contacts.state(coach, lead).await,
            state => Ok(state),
        }
    }

    /// Parts of a transaction: store a new booking of a contact.
    pub fn book(&self, coach: &CoachId, lead: ContactId, read: &BookingRead, event: &CalendarEntry) -> Vec<Write> {
        let put = self.put(coach, &StoredEntry::new(event.clone()), None);
        let buckets = bucket_writes(None, event, &read.busy);
        self.event_writes(coach, lead, put, event.id, &buckets, read.calendar.as_ref())
    }

    /// Parts of a transaction: store a contact's booking as `event`, moved or cancelled.
    pub fn change(
        &self,
        coach: &CoachId,
        lead: ContactId,
        found: &StoredEntry,
        read: &ChangeRead,
        event: &CalendarEntry,
    ) -> Vec<Write> {
        let put = self.put(coach, &found.changed(event.clone()), Some(found));
        let buckets = bucket_writes(found.event.busy(), event, &read.busy);
        let calendar = find(&read.calendars, event.calendar_id).filter(|_| event.is_confirmed());
        self.event_writes(coach, lead, put, event.id, &buckets, calendar)
    }

    /// Writes of the event and its buckets, and checks that the calendar is unchanged and the contact live.
    fn event_writes(
        &self,
        coach: &CoachId,
        lead: ContactId,
        put: Write,
        event: CalendarEntryId,
        buckets: &[BucketWrite],
        calendar: Option<&StoredCalendar>,
    ) -> Vec<Write> {
        let mut records = vec![put];
        records.extend(buckets.iter().map(|bucket| self.bucket_write(coach, event, bucket)));
        records.extend(calendar.map(|calendar| self.calendars.check(coach, calendar)));
        records.push(self.contacts.check_live(coach, lead));
        records
    }
}

/// The writes that move an event in the buckets from the time that it took to the time that it takes.
fn bucket_writes(old: Option<Busy>, event: &CalendarEntry, read: &BusyTimes) -> Vec<BucketWrite> {
    if old == event.busy() {
        return Vec::new();
    }
    let old = old.map(|busy| busy.span);
    match event.busy() {
        Some(new) => booking_writes(old, &new, read.versions()),
        None => feed_writes(old, None),
    }
}

fn bucket_keys(coach: &CoachId, date: NaiveDate) -> Vec<Item> {
    buckets_near_date(date).into_iter().map(|bucket| key_of(coach, &bucket::bucket_sk(bucket))).collect()
}

/// Splits items into buckets and records.
fn split(items: Vec<Item>) -> (Vec<Item>, Vec<Item>) {
    items.into_iter().partition(|item| sk_of(item).starts_with(bucket::PREFIX))
}
