//! Facts of the application about calendar events. An event is stored whatever it overlaps, because it has happened.
//! Its transaction has no condition but the event's own version.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use domain::booking::{CalendarEvent, CalendarEventSaved};
use domain::busy::feed_writes;
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
    /// Stored without emission of overlaps.
    pub backfill: bool,
}

impl Bookings {
    /// Stores an event from a fact, unless the stored state is newer. Emits the bookings that the event newly overlaps,
    /// and returns their number. `zone` is the workspace's time zone.
    pub async fn save(&self, fact: EventFact<'_>, zone: Tz, now: Timestamp) -> Result<usize, StoreError> {
        // An attempt may emit overlaps and then lose the race for the event: its overlaps count too.
        let conflicts = AtomicUsize::new(0);
        retry("the event", || self.save_once(fact, zone, now, &conflicts)).await?;
        Ok(conflicts.into_inner())
    }

    /// Makes one attempt. Adds the emitted overlaps to `conflicts`. Returns `None` if the event has changed meanwhile.
    async fn save_once(
        &self,
        fact: EventFact<'_>,
        zone: Tz,
        now: Timestamp,
        conflicts: &AtomicUsize,
    ) -> Result<Option<()>, StoreError> {
        let (coach, saved) = (&fact.saved.coach_id, fact.saved);
        let (mut found, calendar, lead) = self.read_context(saved).await?;
        // The function that moved the event died before it emitted the overlaps.
        if let Some(marked) = found.as_mut().filter(|found| found.conflict_check.is_some()) {
            conflicts.fetch_add(self.emit_conflicts(coach, marked, zone, now).await?, Relaxed);
            marked.conflict_check = None;
        }
        let known = found.as_ref().map(|found| &found.event);
        let calendar = calendar.as_ref().map(|found| &found.calendar);
        let Some(event) = CalendarEvent::apply_fact(known, saved, fact.occurred_at, calendar, lead, now) else {
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

/// Returns true if an event newly takes time that has not passed, or becomes a booking.
fn takes_new_time(known: Option<&CalendarEvent>, event: &CalendarEvent, now: Timestamp) -> bool {
    let taken = |event: &CalendarEvent| event.busy().map(|busy| busy.span).filter(|span| !span.is_empty());
    let new = taken(event).filter(|span| span.ends_at > now);
    let becomes_booking = event.is_booking() && !known.is_some_and(CalendarEvent::is_booking);
    new.is_some() && (becomes_booking || known.and_then(taken) != new)
}
