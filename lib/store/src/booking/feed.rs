//! Facts of the application about events. An event has happened: it is stored whatever it overlaps, and waits for no
//! version but its own.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use domain::booking::CalendarEvent;
use domain::busy::feed_writes;
use domain::fact::CalendarEventSaved;
use domain::fact_time::FactTime;
use domain::id::{ContactId, FactId};
use domain::time::Timestamp;
use domain::tz::Tz;
use futures::future::try_join3;

use crate::booking::{Bookings, StoredEvent};
use crate::calendar::StoredCalendar;
use crate::contact::ContactState;
use crate::db::{StoreError, retry};

/// A fact about an event.
#[derive(Debug, Clone, Copy)]
pub struct EventFact<'a> {
    pub id: &'a FactId,
    pub saved: &'a CalendarEventSaved,
    pub occurred_at: FactTime,
    /// Stored without telling of overlaps.
    pub backfill: bool,
}

impl Bookings {
    /// Stores an event as the application has it, unless a newer state is stored, and emits the bookings that it
    /// overlaps where it has not been before. Returns their number. `zone` is the workspace's.
    pub async fn save(&self, fact: EventFact<'_>, zone: Tz, now: Timestamp) -> Result<usize, StoreError> {
        // A round that emits overlaps may lose the race for the event afterwards.
        let conflicts = AtomicUsize::new(0);
        retry("the event", || self.save_once(fact, zone, now, &conflicts)).await?;
        Ok(conflicts.into_inner())
    }

    /// Adds the overlaps that were emitted to `conflicts`. `None`: the event has changed meanwhile.
    async fn save_once(
        &self,
        fact: EventFact<'_>,
        zone: Tz,
        now: Timestamp,
        conflicts: &AtomicUsize,
    ) -> Result<Option<()>, StoreError> {
        let (coach, saved) = (&fact.saved.coach_id, fact.saved);
        let (mut found, calendar, lead) = self.read_context(saved).await?;
        // The function that put the event where it is died before it emitted the overlaps there.
        if let Some(marked) = found.as_mut().filter(|found| found.conflict_check.is_some()) {
            conflicts.fetch_add(self.emit_conflicts(coach, marked, zone, now).await?, Relaxed);
            marked.conflict_check = None;
        }
        let known = found.as_ref().map(|found| &found.event);
        let calendar = calendar.as_ref().map(|found| &found.calendar);
        let Some(event) = CalendarEvent::heard(known, saved, fact.occurred_at, calendar, lead, now) else {
            return Ok(Some(()));
        };
        if known == Some(&event) {
            return Ok(Some(()));
        }
        let mark = (!fact.backfill && takes_new_time(known, &event, now)).then(|| fact.id.to_string());
        let stored = StoredEvent { conflict_check: mark, ..next(found.as_ref(), &event) };
        let mut writes = vec![self.put(coach, &stored, found.as_ref())];
        let (old, new) = (known.and_then(CalendarEvent::busy), event.busy());
        if old != new {
            let buckets = feed_writes(old.map(|busy| busy.span), new.as_ref());
            writes.extend(buckets.iter().map(|bucket| self.bucket_write(coach, event.id, bucket)));
        }
        if let (Some(unseen), None) = (event.calendar_id, event.buffers) {
            writes.extend(self.wait_for(coach, unseen, event.id));
        }
        if !self.table.db.transact(&writes).await?.is_done() {
            return Ok(None);
        }
        conflicts.fetch_add(self.emit_conflicts(coach, &stored, zone, now).await?, Relaxed);
        Ok(Some(()))
    }

    /// The event as it is known, its calendar, and its contact, unless the contact is erased.
    async fn read_context(
        &self,
        saved: &CalendarEventSaved,
    ) -> Result<(Option<StoredEvent>, Option<StoredCalendar>, Option<ContactId>), StoreError> {
        let coach = &saved.coach_id;
        let calendar = async {
            match saved.calendar_id {
                Some(id) => self.calendars.get(coach, id).await,
                None => Ok(None),
            }
        };
        let lead = async {
            match saved.lead_id {
                Some(lead) => Ok(match self.contacts.state(coach, lead).await? {
                    ContactState::Erased => None,
                    ContactState::Live(_) | ContactState::Merged { .. } | ContactState::Unknown => Some(lead),
                }),
                None => Ok(None),
            }
        };
        try_join3(self.event(coach, saved.event_id), calendar, lead).await
    }
}

/// The event as it is to be stored next.
fn next(found: Option<&StoredEvent>, event: &CalendarEvent) -> StoredEvent {
    match found {
        None => StoredEvent::new(event.clone()),
        Some(found) => found.changed(event.clone()),
    }
}

/// Returns true if an event newly takes time that is not over, or takes it as a booking from now on.
fn takes_new_time(known: Option<&CalendarEvent>, event: &CalendarEvent, now: Timestamp) -> bool {
    let taken = |event: &CalendarEvent| event.busy().map(|busy| busy.span).filter(|span| !span.is_empty());
    let new = taken(event).filter(|span| span.ends_at > now);
    let becomes_booking = event.is_booking() && !known.is_some_and(CalendarEvent::is_booking);
    new.is_some() && (becomes_booking || known.and_then(taken) != new)
}
