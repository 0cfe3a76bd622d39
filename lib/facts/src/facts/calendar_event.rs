//! Events on calendars, and private entries. An event is stored whatever it overlaps, even if its calendar is unknown,
//! because it has happened.

use domain::booking::{CalendarEntry, CalendarEventSaved};
use domain::event::{Event, Person};
use domain::time::Timestamp;
use domain::tz::Tz;
use runtime::{Metric, add};
use store::StoreError;
use store::booking::{EventContext, StoredEntry};
use store::unit::Unit;
use store::workspace::StoredWorkspace;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};
use crate::outcome::Outcome;

/// Confirmed bookings that an event of the feed overlaps.
const BOOKING_CONFLICTS: Metric = Metric::new("booking_conflicts", runtime::Unit::Count);

/// Stores an event, unless the stored state is newer. Then emits the bookings that the event newly overlaps.
pub(crate) struct Save<'a> {
    pub(crate) saved: &'a CalendarEventSaved,
    pub(crate) workspace: &'a StoredWorkspace,
}

pub(crate) struct Snapshot {
    found: Option<StoredEntry>,
    refers_to: EventContext,
    /// The contact and calendar of a stored booking that becomes a private entry: receivers get it as it was.
    referred_to: Option<EventContext>,
    zone: Tz,
}

impl FactCommand for Save<'_> {
    type Snapshot = Snapshot;
    /// The event whose overlaps are to be emitted, if it has the mark.
    type Rest = StoredEntry;

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<Snapshot, Stop> {
        let CalendarEventSaved { coach_id, event_id, calendar_id, lead_id, .. } = self.saved;
        let read = app.bookings.event_in_context(coach_id, *event_id, *calendar_id, *lead_id).await?;
        let (found, refers_to) = read;
        let left = found.as_ref().map(|found| &found.event).filter(|known| known.is_booking());
        let referred_to = match left.filter(|_| calendar_id.is_none()) {
            Some(left) => Some(app.bookings.context_of(coach_id, left).await?),
            None => None,
        };
        Ok(Snapshot { found, refers_to, referred_to, zone: self.workspace.zone()? })
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, snapshot: Snapshot) -> Decision<StoredEntry> {
        let Snapshot { found, refers_to, referred_to, zone } = snapshot;
        let (coach, saved) = (&self.saved.coach_id, self.saved);
        // The function that moved the event died before it emitted the overlaps.
        if let Some(marked) = found.as_ref().filter(|found| found.conflict_check.is_some()) {
            return Decision::First(marked.clone());
        }
        let known = found.as_ref().map(|found| &found.event);
        let lead = saved.lead_id.filter(|_| refers_to.contact.is_some());
        let calendar = refers_to.calendar.as_ref().map(|found| &found.calendar);
        let Some(event) = CalendarEntry::apply_fact(known, saved, fact.occurred_at, calendar, lead, fact.now) else {
            return Decision::Nothing;
        };
        let mark = (!fact.backfill && takes_new_time(known, &event, fact.now)).then(|| fact.id.to_string());
        let mut next = match &found {
            None => StoredEntry::new(event.clone()),
            Some(found) => found.changed(event.clone()),
        };
        next.conflict_check = mark;
        let changed = fact.crm_event(|| {
            let EventContext { contact, calendar } = referred_to.unwrap_or(refers_to);
            let zone = calendar.map_or(zone, |found| found.calendar.time_zone);
            Event::booking_changed(coach, contact.unwrap_or(Person::NoContact), known, &event, zone)
        });
        let writes = app.bookings.put_event(coach, &next, found.as_ref());
        Decision::Commit(Unit::new().write(writes).events(changed), next)
    }

    async fn after(&self, app: &FactStore, fact: Context<'_>, stored: StoredEntry) -> Result<Outcome, StoreError> {
        let conflicts =
            app.bookings.emit_conflicts(&self.saved.coach_id, &stored, self.workspace.zone()?, fact.now).await?;
        if conflicts > 0 {
            add(BOOKING_CONFLICTS, conflicts as f64);
        }
        Ok(Outcome::Stored)
    }
}

/// Returns true if an event newly takes time that has not passed, or becomes a booking.
fn takes_new_time(known: Option<&CalendarEntry>, event: &CalendarEntry, now: Timestamp) -> bool {
    let taken = |event: &CalendarEntry| event.busy().map(|busy| busy.span).filter(|span| !span.is_empty());
    let new = taken(event).filter(|span| span.ends_at > now);
    let becomes_booking = event.is_booking() && !known.is_some_and(CalendarEntry::is_booking);
    new.is_some() && (becomes_booking || known.and_then(taken) != new)
}
