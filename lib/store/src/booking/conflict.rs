//! Overlaps that the application has caused. The transaction that moves an event to a time puts a mark on the event.
//! Then the buckets are read: they hold every booking that was stored before that transaction, and every later booking
//! finds the event. The transaction that emits the overlaps removes the mark, so each overlap is emitted once, however
//! often the fact arrives.
//!
//! An event with more than eighty overlaps takes several transactions. If the function dies between two, some overlaps
//! are published again under the same ids.

use domain::booking::CalendarEntry;
use domain::change::Change;
use domain::id::{CalendarEntryId, CoachId};
use domain::time::Timestamp;
use domain::tz::Tz;

use crate::booking::{Bookings, StoredEntry, event_key};
use crate::calendar::{StoredCalendar, zone_of};
use crate::db::{Part, StoreError, Transacted, s};
use crate::outbox::Content;

/// Overlaps per transaction, which holds a hundred items.
const EMITTED_TOGETHER: usize = 80;

impl Bookings {
    /// Emits the overlaps of a marked event and removes the mark. Returns the number of overlaps.
    pub async fn emit_conflicts(
        &self,
        coach: &CoachId,
        marked: &StoredEntry,
        zone: Tz,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let Some(mark) = &marked.conflict_check else { return Ok(0) };
        let event = &marked.event;
        let others = self.overlapping(coach, event, now).await?;
        let calendars = if others.is_empty() { Vec::new() } else { self.calendars.all(coach).await? };
        let changes: Vec<Change> =
            others.iter().filter_map(|other| conflict(coach, event, other, &calendars, zone)).collect();
        let mut emitted = 0;
        let mut groups = changes.chunks(EMITTED_TOGETHER).peekable();
        loop {
            let group = groups.next().unwrap_or_default();
            // The last group removes the mark. After a crash before that, all overlaps are emitted again, under the
            // same ids.
            let is_last = groups.peek().is_none();
            let marked =
                self.table.write(event_key(coach, event.id)).when("conflict_check = :mark", [(":mark", s(mark))]);
            let mut writes = vec![match is_last {
                true => marked.remove(["conflict_check"]).update(Part::Event),
                false => marked.check(Part::Event),
            }];
            writes.extend(group.iter().map(|change| self.outbox.put(&Content::Change(Box::new(change.clone())), now)));
            match self.table.db.transact(&writes).await? {
                Transacted::Done => emitted += group.len(),
                // Another function has emitted the overlaps, or a later fact has moved the event.
                Transacted::Refused(_) => return Ok(emitted),
            }
            if is_last {
                return Ok(emitted);
            }
        }
    }

    /// Events that overlap an event and have not ended, by their starts. At least one of the two is a booking.
    async fn overlapping(
        &self,
        coach: &CoachId,
        event: &CalendarEntry,
        now: Timestamp,
    ) -> Result<Vec<CalendarEntry>, StoreError> {
        let lasts = |event: &CalendarEntry| event.is_confirmed() && event.span.ends_at > now;
        if !lasts(event) || event.span.is_empty() {
            return Ok(Vec::new());
        }
        let [first, last] = [event.span.starts_at.max(now), event.span.ends_at].map(|at| at.utc().date_naive());
        let busy = self.busy_between(coach, first, last).await?;
        let mut near: Vec<_> = busy
            .entries()
            .filter(|(id, busy)| *id != event.id && busy.span.overlaps(event.span) && busy.span.ends_at > now)
            .map(|(id, busy)| (busy.span, id))
            .collect();
        near.sort_unstable();
        let ids: Vec<CalendarEntryId> = near.into_iter().map(|(_, id)| id).collect();
        let mut found = self.events(coach, &ids).await?;
        found.retain(|other| {
            lasts(other) && other.span.overlaps(event.span) && (event.is_booking() || other.is_booking())
        });
        Ok(found)
    }

    async fn events(&self, coach: &CoachId, ids: &[CalendarEntryId]) -> Result<Vec<CalendarEntry>, StoreError> {
        let items = self.table.read(ids.iter().map(|id| event_key(coach, *id)).collect()).await?;
        let events = items.into_iter().map(|item| StoredEntry::from_item(item).map(|stored| stored.event));
        let mut events = events.collect::<Result<Vec<_>, _>>()?;
        events.sort_by_key(|event| (event.span, event.id));
        Ok(events)
    }
}

/// The change for two events that overlap. Of two bookings, the change reports the earlier one as overlapped by the
/// later. Two bookings that arrive at once find each other, and emit the same change.
fn conflict(
    coach: &CoachId,
    event: &CalendarEntry,
    other: &CalendarEntry,
    calendars: &[StoredCalendar],
    zone: Tz,
) -> Option<Change> {
    let view = |event: &CalendarEntry| event.view(zone_of(calendars, event.calendar_id, zone));
    let [earlier, later] =
        if (other.updated_at, other.id) <= (event.updated_at, event.id) { [other, event] } else { [event, other] };
    match view(earlier) {
        Some(booking) => Some(Change::booking_conflict(coach, &booking, later)),
        None => Some(Change::booking_conflict(coach, &view(later)?, earlier)),
    }
}
