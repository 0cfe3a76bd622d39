//! What the API does to bookings: read, decide (in `domain`), write under the condition that what was read still holds. A write that
//! meets another one is decided anew.

use aws_sdk_dynamodb::types::TransactWriteItem;
use chrono::NaiveDate;
use domain::booking::{CalendarEvent, Lead};
use domain::busy::{BucketWrite, Busy, booking_writes, reach_of, removal_writes};
use domain::id::{CalendarEventId, CalendarId, CoachId, ContactId};
use domain::outgoing::OutgoingFact;
use domain::time::Timestamp;
use futures::future::try_join;
use runtime::random_bytes;

use crate::booking::{Bookings, BusyTimes, StoredEvent, bucket, event_key, event_sk, key, sk_of};
use crate::calendar::StoredCalendar;
use crate::claim::{Answer, Claim, Claims};
use crate::contact::{Standing, contact_key};
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, Transacted, refused_at, stand_back};
use crate::outbox::Content;

/// What a new booking is decided by.
#[derive(Debug)]
pub struct BookingRead {
    pub lead: Lead,
    pub calendar: Option<StoredCalendar>,
    pub busy: BusyTimes,
}

/// What a change of a booking is decided by.
#[derive(Debug)]
pub struct ChangeRead {
    pub lead: Lead,
    /// The one that is named, if it is with the contact.
    pub event: Option<StoredEvent>,
    /// All of the coach's.
    pub calendars: Vec<StoredCalendar>,
    /// What takes time around the new date, where there is one.
    pub busy: BusyTimes,
}

/// A write of the API: what it tells the application, and what it answers.
pub struct Write<'a> {
    pub coach: &'a CoachId,
    /// The contact that the caller names.
    pub lead: ContactId,
    pub fact: OutgoingFact,
    pub claim: (&'a Claims, &'a Claim, &'a Answer),
    pub now: Timestamp,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    Done,
    /// Another request has taken over.
    ClaimLost,
    /// Something that it was decided by has changed.
    Changed,
}

/// Where the parts stand in a transaction whose refusals are told apart.
const CLAIM_AT: usize = 0;
const EVENT_AT: usize = 1;

impl Bookings {
    /// Reads what a new booking is decided by. `round` counts the writes before that came too late.
    pub async fn read_booking(
        &self,
        coach: &CoachId,
        (lead, calendar): (ContactId, CalendarId),
        date: NaiveDate,
        round: u32,
    ) -> Result<BookingRead, StoreError> {
        stand_back(round).await;
        let mut keys = bucket_keys(coach, date);
        keys.push(contact_key(coach, lead));
        let (calendar, items) = try_join(self.calendars.get(coach, calendar), self.db.read(&self.table, keys)).await?;
        let (buckets, records) = split(items);
        let lead = self.lead_read(coach, lead, records.into_iter().next()).await?;
        Ok(BookingRead { lead, calendar, busy: BusyTimes::from_items(buckets)? })
    }

    /// Reads what a change of a booking is decided by: its move to a date, or its cancellation.
    pub async fn read_change(
        &self,
        coach: &CoachId,
        (event, lead): (CalendarEventId, ContactId),
        to: Option<NaiveDate>,
        round: u32,
    ) -> Result<ChangeRead, StoreError> {
        stand_back(round).await;
        let mut keys = to.map(|date| bucket_keys(coach, date)).unwrap_or_default();
        keys.extend([event_key(coach, event), contact_key(coach, lead)]);
        let (calendars, items) = try_join(self.calendars.all(coach), self.db.read(&self.table, keys)).await?;
        let (buckets, records) = split(items);
        let own_sk = event_sk(event);
        let (events, contacts): (Vec<Item>, Vec<Item>) = records.into_iter().partition(|item| sk_of(item) == own_sk);
        let event = events.into_iter().next().map(StoredEvent::from_item).transpose()?;
        let is_bound = match event.as_ref().and_then(|found| found.event.lead_id) {
            // Whom it is with may have been merged into the one that is named.
            Some(bound) => bound == lead || self.contacts.lives_as(coach, bound).await? == Some(lead),
            None => false,
        };
        Ok(ChangeRead {
            lead: self.lead_read(coach, lead, contacts.into_iter().next()).await?,
            event: event.filter(|_| is_bound),
            calendars,
            busy: BusyTimes::from_items(buckets)?,
        })
    }

    /// Whom a caller names.
    pub async fn lead(&self, coach: &CoachId, lead: ContactId) -> Result<Lead, StoreError> {
        Ok(match self.contacts.standing(coach, lead).await? {
            Standing::Live(_) => Lead::Live,
            Standing::Merged { into } => Lead::Merged(into),
            Standing::Unknown | Standing::Erased => Lead::Unknown,
        })
    }

    /// The same, whose item was read with others. Only the end of a chain of merges takes more reads.
    async fn lead_read(&self, coach: &CoachId, lead: ContactId, item: Option<Item>) -> Result<Lead, StoreError> {
        match Standing::from_item(item)? {
            Standing::Live(_) => Ok(Lead::Live),
            Standing::Unknown | Standing::Erased => Ok(Lead::Unknown),
            Standing::Merged { .. } => self.lead(coach, lead).await,
        }
    }

    /// Makes a booking.
    pub async fn book(
        &self,
        read: &BookingRead,
        event: &CalendarEvent,
        write: &Write<'_>,
    ) -> Result<Committed, StoreError> {
        let stored = StoredEvent::new(event.clone());
        let put = self.put(write.coach, &stored, None);
        let buckets = buckets_of(None, event, &read.busy);
        let check = read.calendar.as_ref().map(|calendar| self.calendars.check(write.coach, calendar));
        let written = self.commit(write, event.id, put, &buckets, check).await?;
        match written {
            Transacted::Done => Ok(Committed::Done),
            // Nobody else knows the id: an earlier try of this one, whose answer was lost, has made the event.
            Transacted::Refused(reasons) if refused_at(&reasons, EVENT_AT) => Ok(Committed::Done),
            Transacted::Refused(reasons) if refused_at(&reasons, CLAIM_AT) => Ok(Committed::ClaimLost),
            Transacted::Refused(_) => Ok(Committed::Changed),
        }
    }

    /// Leaves a booking as `event`: moved or cancelled.
    pub async fn change(
        &self,
        read: &ChangeRead,
        event: &CalendarEvent,
        write: &Write<'_>,
    ) -> Result<Committed, StoreError> {
        let Some(found) = &read.event else { return Ok(Committed::Changed) };
        let mark = hex::encode(random_bytes::<16>());
        let stored = StoredEvent { changed_by: Some(mark.clone()), ..found.changed(event.clone()) };
        let put = self.put(write.coach, &stored, Some(found));
        let buckets = buckets_of(found.event.busy(), event, &read.busy);
        let calendar = crate::calendar::find(&read.calendars, event.calendar_id).filter(|_| event.is_confirmed());
        let check = calendar.map(|calendar| self.calendars.check(write.coach, calendar));
        let Transacted::Refused(reasons) = self.commit(write, event.id, put, &buckets, check).await? else {
            return Ok(Committed::Done);
        };
        // An earlier try of this one, whose answer was lost, may have left the event so.
        if refused_at(&reasons, EVENT_AT)
            && let Some(now) = self.event(write.coach, event.id).await?
            && now.changed_by == Some(mark)
        {
            return Ok(Committed::Done);
        }
        Ok(if refused_at(&reasons, CLAIM_AT) { Committed::ClaimLost } else { Committed::Changed })
    }

    async fn commit(
        &self,
        write: &Write<'_>,
        event: CalendarEventId,
        put: TransactWriteItem,
        buckets: &[BucketWrite],
        calendar: Option<TransactWriteItem>,
    ) -> Result<Transacted, StoreError> {
        let (claims, claim, answer) = write.claim;
        let about = ContactRef::new(write.coach, write.lead);
        let mut writes = vec![claims.answer_about(claim, answer, &about, write.now), put];
        writes.extend(buckets.iter().map(|bucket| self.bucket_write(write.coach, event, bucket)));
        writes.extend(calendar);
        writes.push(self.contacts.check_live(write.coach, write.lead));
        writes.push(self.outbox.put(&Content::Fact(Box::new(write.fact.clone())), write.now));
        self.db.transact(&writes).await
    }
}

/// How the buckets follow an event from the time that it took to the time that it takes.
fn buckets_of(old: Option<Busy>, event: &CalendarEvent, read: &BusyTimes) -> Vec<BucketWrite> {
    let old = old.map(|busy| busy.span);
    match event.busy() {
        Some(new) => booking_writes(old, &new, read.versions()),
        None => old.map(removal_writes).unwrap_or_default(),
    }
}

fn bucket_keys(coach: &CoachId, date: NaiveDate) -> Vec<Item> {
    reach_of(date).into_iter().map(|bucket| key(coach, &bucket::sk_of(bucket))).collect()
}

/// Buckets, and records.
fn split(items: Vec<Item>) -> (Vec<Item>, Vec<Item>) {
    items.into_iter().partition(|item| sk_of(item).starts_with(bucket::PREFIX))
}
