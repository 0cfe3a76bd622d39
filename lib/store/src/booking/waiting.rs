//! Events whose calendar has not been seen yet. They are stored all the same, without buffers, and an item beside them (sk
//! `WAITING#<calendar>#<event>`) says what they wait for. Storing one checks that the calendar is still unseen; whoever stores a calendar
//! looks for those that wait: so that, in whatever order the two come, the event has its calendar's buffers at once.

use aws_sdk_dynamodb::types::{Delete, Put};
use domain::booking::CalendarEvent;
use domain::busy::feed_writes;
use domain::id::{CalendarEventId, CalendarId, CoachId};

use crate::booking::Bookings;
use crate::db::{Ask, Item, Part, StoreError, Write, failed, retry, s, sk_of};
use crate::workspace::{key_of, partition};

/// Events that one call gives their buffers.
const MAX_GIVEN: i32 = 40;

fn prefix(calendar: CalendarId) -> String {
    format!("WAITING#{calendar}#")
}

fn waiting_key(coach: &CoachId, calendar: CalendarId, event: CalendarEventId) -> Item {
    key_of(coach, &format!("{}{event}", prefix(calendar)))
}

impl Bookings {
    /// What goes with an event that is stored without the buffers of its calendar.
    pub(super) fn wait_for(&self, coach: &CoachId, calendar: CalendarId, event: CalendarEventId) -> [Write; 2] {
        let put = Put::builder().table_name(&self.table).set_item(Some(waiting_key(coach, calendar, event)));
        [Part::Waiting.put(put), self.calendars.check_unseen(coach, calendar)]
    }

    /// Gives a calendar's buffers to events that were stored before it: at most `MAX_GIVEN`. Returns false if there
    /// may be more. A second call finds these done.
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
        event: CalendarEventId,
    ) -> Result<(), StoreError> {
        let done = Delete::builder().table_name(&self.table).set_key(Some(waiting_key(coach, calendar, event)));
        let done = Part::Waiting.delete(done);
        retry("the event", || async {
            let reads = futures::future::try_join(self.event(coach, event), self.calendars.get(coach, calendar));
            let (found, seen) = reads.await?;
            let waits =
                found.filter(|found| found.event.calendar_id == Some(calendar) && found.event.buffers.is_none());
            let mut writes = vec![done.clone()];
            if let (Some(found), Some(seen)) = (waits, seen) {
                let given = CalendarEvent { buffers: Some(seen.calendar.buffers), ..found.event.clone() };
                let buckets = match (found.event.busy(), given.busy()) {
                    (Some(old), Some(new)) => feed_writes(Some(old.span), Some(&new)),
                    _ => Vec::new(),
                };
                writes.push(self.put(coach, &found.changed(given), Some(&found)));
                writes.extend(buckets.iter().map(|bucket| self.bucket_write(coach, event, bucket)));
            }
            Ok(self.db.transact(&writes).await?.is_done().then_some(()))
        })
        .await
    }

    /// Events that wait for a calendar.
    async fn waiting(&self, coach: &CoachId, calendar: CalendarId) -> Result<Vec<CalendarEventId>, StoreError> {
        let prefix = prefix(calendar);
        let query = self.db.client().query().table_name(&self.table).consistent_read(true);
        let query = query
            .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
            .expression_attribute_values(":pk", s(partition(coach)))
            .expression_attribute_values(":prefix", s(&prefix))
            .limit(MAX_GIVEN);
        let page = query.ask().await.map_err(|error| failed("Query", error))?;
        let event = |item: &Item| sk_of(item).strip_prefix(&prefix).and_then(|id| CalendarEventId::parse(id).ok());
        let corrupt = || StoreError::corrupt("waiting event", "its key has another form");
        page.items.unwrap_or_default().iter().map(|item| event(item).ok_or_else(corrupt)).collect()
    }
}
