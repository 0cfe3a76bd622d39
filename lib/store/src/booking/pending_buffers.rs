//! Events whose calendar is not stored yet. They are stored without buffers, together with an item (sk
//! `WAITING#<calendar>#<event>`) that names the calendar. A write of an event checks that the calendar is still absent,
//! and a write of a calendar looks for waiting events. So an event gets its buffers in either order of arrival.

use domain::booking::CalendarEntry;
use domain::busy::feed_writes;
use domain::id::{CalendarEntryId, CalendarId, CoachId};

use crate::booking::Bookings;
use crate::db::{Item, Part, StoreError, Write, query_page, retry, s, sk_of};
use crate::workspace::{key_of, partition};

/// Events per call.
const MAX_GIVEN: i32 = 40;

fn prefix(calendar: CalendarId) -> String {
    format!("WAITING#{calendar}#")
}

fn waiting_key(coach: &CoachId, calendar: CalendarId, event: CalendarEntryId) -> Item {
    key_of(coach, &format!("{}{event}", prefix(calendar)))
}

impl Bookings {
    /// The writes beside an event that is stored without the buffers of its calendar.
    pub(super) fn wait_for(&self, coach: &CoachId, calendar: CalendarId, event: CalendarEntryId) -> [Write; 2] {
        let waiting = self.table.write(waiting_key(coach, calendar, event)).put(Part::Waiting);
        [waiting, self.calendars.check_unseen(coach, calendar)]
    }

    /// Gives a calendar's buffers to at most `MAX_GIVEN` events that were stored before the calendar. Returns false if
    /// there may be more. A repeated call finds these events done.
    pub async fn give_buffers(&self, coach: &CoachId, calendar: CalendarId) -> Result<bool, StoreError> {
        let waiting = self.waiting(coach, calendar).await?;
        for event in &waiting {
            self.give_buffers_to(coach, calendar, *event).await?;
        }
        Ok(waiting.len() < MAX_GIVEN as usize)
    }

    async fn give_buffers_to(
        &self,
        coach: &CoachId,
        calendar: CalendarId,
        event: CalendarEntryId,
    ) -> Result<(), StoreError> {
        let done = self.table.write(waiting_key(coach, calendar, event)).delete(Part::Waiting);
        retry("the event", || async {
            let reads = futures::future::try_join(self.event(coach, event), self.calendars.get(coach, calendar));
            let (found, seen) = reads.await?;
            let waits =
                found.filter(|found| found.event.calendar_id == Some(calendar) && found.event.buffers.is_none());
            let mut writes = vec![done.clone()];
            if let (Some(found), Some(seen)) = (waits, seen) {
                let given = CalendarEntry { buffers: Some(seen.calendar.buffers), ..found.event.clone() };
                let buckets = match (found.event.busy(), given.busy()) {
                    (Some(old), Some(new)) => feed_writes(Some(old.span), Some(&new)),
                    _ => Vec::new(),
                };
                writes.push(self.put(coach, &found.changed(given), Some(&found)));
                writes.extend(buckets.iter().map(|bucket| self.bucket_write(coach, event, bucket)));
            }
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(()))
        })
        .await
    }

    /// Reads the events that wait for a calendar.
    async fn waiting(&self, coach: &CoachId, calendar: CalendarId) -> Result<Vec<CalendarEntryId>, StoreError> {
        let prefix = prefix(calendar);
        let values = [(":pk", s(partition(coach))), (":prefix", s(&prefix))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :prefix)", values).consistent_read(true);
        let event = |item: &Item| sk_of(item).strip_prefix(&prefix).and_then(|id| CalendarEntryId::parse(id).ok());
        let corrupt = || StoreError::corrupt("waiting event", "its key has another form");
        let page = query_page(query.limit(MAX_GIVEN)).await?;
        page.items.iter().map(|item| event(item).ok_or_else(corrupt)).collect()
    }
}
