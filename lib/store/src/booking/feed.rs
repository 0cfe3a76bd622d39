//! Facts of the application about calendar events. An event is stored whatever it overlaps, because it has happened.
//! Its transaction has no condition but the event's own version.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use domain::booking::{CalendarEvent, CalendarEventSaved};
use domain::busy::feed_writes;
use domain::event::{Event, Person};
use domain::id::{CalendarId, CoachId, ContactId};
use domain::time::Timestamp;
use domain::tz::Tz;
use futures::future::{try_join, try_join3};

use crate::booking::{Bookings, StoredEvent};
use crate::calendar::StoredCalendar;
use crate::db::{StoreError, retry};
use crate::fact::FactContext;
use crate::outbox::Content;

impl Bookings {
    /// Stores an event from a fact, unless the stored state is newer. Emits the bookings that the event newly overlaps,
    /// and returns their number. `zone` is the workspace's time zone.
    pub async fn save(&self, saved: &CalendarEventSaved, fact: FactContext<'_>, zone: Tz) -> Result<usize, StoreError> {
        // An attempt may emit overlaps and then lose the race for the event: its overlaps count too.
        let conflicts = AtomicUsize::new(0);
        retry("the event", || self.save_once(saved, fact, zone, &conflicts)).await?;
        Ok(conflicts.into_inner())
    }

    /// Makes one attempt. Adds the emitted overlaps to `conflicts`. Returns `None` if the event has changed meanwhile.
    async fn save_once(
        &self,
        saved: &CalendarEventSaved,
        fact: FactContext<'_>,
        zone: Tz,
        conflicts: &AtomicUsize,
    ) -> Result<Option<()>, StoreError> {
        let (coach, now) = (&saved.coach_id, fact.now);
        let (mut found, calendar, contact) = self.read_context(saved).await?;
        // The function that moved the event died before it emitted the overlaps.
        if let Some(marked) = found.as_mut().filter(|found| found.conflict_check.is_some()) {
            conflicts.fetch_add(self.emit_conflicts(coach, marked, zone, now).await?, Relaxed);
            marked.conflict_check = None;
        }
        let known = found.as_ref().map(|found| &found.event);
        let lead = saved.lead_id.filter(|_| contact.is_some());
        let seen = calendar.as_ref().map(|found| &found.calendar);
        let Some(event) = CalendarEvent::apply_fact(known, saved, fact.occurred_at, seen, lead, now) else {
            return Ok(Some(()));
        };
        let mark = (!fact.backfill && takes_new_time(known, &event, now)).then(|| fact.id.to_string());
        let next = match &found {
            None => StoredEvent::new(event.clone()),
            Some(found) => found.changed(event.clone()),
        };
        let stored = StoredEvent { conflict_check: mark, ..next };
        let mut writes = vec![self.put(coach, &stored, found.as_ref())];
        let (old, new) = (known.and_then(CalendarEvent::busy), event.busy());
        if old != new {
            let buckets = feed_writes(old.map(|busy| busy.span), new.as_ref());
            writes.extend(buckets.iter().map(|bucket| self.bucket_write(coach, event.id, bucket)));
        }
        if let (Some(unseen), None) = (event.calendar_id, event.buffers) {
            writes.extend(self.wait_for(coach, unseen, event.id));
        }
        let shown = match known.filter(|known| known.is_booking() && !event.is_booking()) {
            None => (contact, calendar),
            // Receivers get a booking that became a private entry as it was.
            Some(left) => {
                try_join(self.contact_of(coach, left.lead_id), self.calendar_of(coach, left.calendar_id)).await?
            }
        };
        let emitted = fact.crm_event(|| {
            let (contact, calendar) = shown;
            let zone = calendar.map_or(zone, |found| found.calendar.time_zone);
            Event::booking_changed(coach, contact.unwrap_or(Person::NoContact), known, &event, zone)
        });
        writes.extend(emitted.map(|emitted| self.outbox.put(&Content::Event(Box::new(emitted)), now)));
        if !self.table.db.transact(&writes).await?.is_done() {
            return Ok(None);
        }
        conflicts.fetch_add(self.emit_conflicts(coach, &stored, zone, now).await?, Relaxed);
        Ok(Some(()))
    }

    /// Reads the stored event, its calendar, and its contact unless the contact is erased.
    async fn read_context(
        &self,
        saved: &CalendarEventSaved,
    ) -> Result<(Option<StoredEvent>, Option<StoredCalendar>, Option<Person>), StoreError> {
        let coach = &saved.coach_id;
        let calendar = self.calendar_of(coach, saved.calendar_id);
        try_join3(self.event(coach, saved.event_id), calendar, self.contact_of(coach, saved.lead_id)).await
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

    /// Reads the contact of an event. `None`: the event has none, or the contact is erased.
    async fn contact_of(&self, coach: &CoachId, lead: Option<ContactId>) -> Result<Option<Person>, StoreError> {
        match lead {
            Some(lead) => Ok(self.contacts.state(coach, lead).await?.person(lead)),
            None => Ok(None),
        }
    }
}

/// Returns true if an event newly takes time that has not passed, or becomes a booking.
fn takes_new_time(known: Option<&CalendarEvent>, event: &CalendarEvent, now: Timestamp) -> bool {
    let taken = |event: &CalendarEvent| event.busy().map(|busy| busy.span).filter(|span| !span.is_empty());
    let new = taken(event).filter(|span| span.ends_at > now);
    let becomes_booking = event.is_booking() && !known.is_some_and(CalendarEvent::is_booking);
    new.is_some() && (becomes_booking || known.and_then(taken) != new)
}
