//! Calendar events of the application: what a decision needs, and the writes of its result. An event is stored whatever
//! it overlaps, because it has happened, so the transaction has no condition but the event's own version.

use domain::booking::CalendarEntry;
use domain::busy::feed_writes;
use domain::event::Person;
use domain::id::{CalendarEntryId, CalendarId, CoachId, ContactId};
use futures::future::{try_join, try_join3};

use crate::booking::{Bookings, StoredEntry};
use crate::calendar::StoredCalendar;
use crate::db::{StoreError, Write};

/// The records that an event of the feed refers to.
#[derive(Debug)]
pub struct EventContext {
    pub calendar: Option<StoredCalendar>,
    /// `None`: the event has no contact, or the contact is erased.
    pub contact: Option<Person>,
}

impl Bookings {
    /// Reads an event as stored, and what its next state refers to.
    pub async fn event_in_context(
        &self,
        coach: &CoachId,
        id: CalendarEntryId,
        calendar: Option<CalendarId>,
        lead: Option<ContactId>,
    ) -> Result<(Option<StoredEntry>, EventContext), StoreError> {
        let reads = try_join3(self.event(coach, id), self.calendar_of(coach, calendar), self.contact_of(coach, lead));
        let (found, calendar, contact) = reads.await?;
        Ok((found, EventContext { calendar, contact }))
    }

    /// Reads what an event refers to.
    pub async fn context_of(&self, coach: &CoachId, event: &CalendarEntry) -> Result<EventContext, StoreError> {
        let reads = try_join(self.calendar_of(coach, event.calendar_id), self.contact_of(coach, event.lead_id));
        let (calendar, contact) = reads.await?;
        Ok(EventContext { calendar, contact })
    }

    async fn calendar_of(
        &self,
        coach: &CoachId,
        calendar: Option<CalendarId>,
    ) -> Result<Option<StoredCalendar>, StoreError> {
        match calendar {
            Some(id) => self.calendars.get(coach, id).await,
            None => Ok(None),
        }
    }

    async fn contact_of(&self, coach: &CoachId, lead: Option<ContactId>) -> Result<Option<Person>, StoreError> {
        match lead {
            Some(lead) => Ok(self.contacts.state(coach, lead).await?.person(lead)),
            None => Ok(None),
        }
    }

    /// Parts of a transaction: store an event in the place of the one that was read, with the time that it takes.
    pub fn put_event(&self, coach: &CoachId, next: &StoredEntry, found: Option<&StoredEntry>) -> Vec<Write> {
        let event = &next.event;
        let mut writes = vec![self.put(coach, next, found)];
        let (old, new) = (found.and_then(|found| found.event.busy()), event.busy());
        if old != new {
            let buckets = feed_writes(old.map(|busy| busy.span), new.as_ref());
            writes.extend(buckets.iter().map(|bucket| self.bucket_write(coach, event.id, bucket)));
        }
        if let (Some(unseen), None) = (event.calendar_id, event.buffers) {
            writes.extend(self.wait_for(coach, unseen, event.id));
        }
        writes
    }
}
