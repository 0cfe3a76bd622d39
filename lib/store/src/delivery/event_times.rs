//! Times at which an event's deliveries were created, for events whose id does not tell: they were emitted late, or may
//! be emitted again. pk `COACH#<coach_id>`, sk `EVENT#<event_id>#<ms>`. With the time, the log finds the deliveries of
//! an event in a short range of their ids.

use std::ops::RangeInclusive;

use domain::delivery::{CHAIN_RETENTION, DELIVERY_RETENTION, tells_creation, times_around};
use domain::id::{CoachId, EventId};
use domain::time::Timestamp;

use super::record::ENTITY;
use super::{Deliveries, NewDelivery};
use crate::db::{Item, StoreError, n, query_all, s, sk_of};
use crate::workspace::{key_of, partition};

impl Deliveries {
    /// Notes the time of a delivery, unless the id of its event tells.
    pub(super) async fn put_event_time(&self, delivery: &NewDelivery<'_>, now: Timestamp) -> Result<(), StoreError> {
        let NewDelivery { coach_id, event_id, made_at, may_repeat, .. } = *delivery;
        if !may_repeat && tells_creation(event_id, made_at) {
            return Ok(());
        }
        let mut time = key_of(coach_id, &format!("{}{:015}", prefix(event_id), made_at.ms()));
        time.insert("expires_at".to_owned(), n((now + DELIVERY_RETENTION + CHAIN_RETENTION).unix_s()));
        self.table.write(time).put_now().await?;
        Ok(())
    }

    /// Returns the time between whose ends all deliveries of an event were created.
    pub(super) async fn event_times(
        &self,
        coach: &CoachId,
        event: &EventId,
    ) -> Result<RangeInclusive<Timestamp>, StoreError> {
        let values = [(":pk", s(partition(coach))), (":prefix", s(prefix(event)))];
        let noted = query_all(self.table.query("pk = :pk AND begins_with(sk, :prefix)", values)).await?;
        match (noted.first(), noted.last()) {
            (Some(first), Some(last)) => Ok(time_of(first)?..=time_of(last)?),
            _ => Ok(times_around(event)),
        }
    }
}

fn prefix(event: &EventId) -> String {
    format!("EVENT#{event}#")
}

fn time_of(item: &Item) -> Result<Timestamp, StoreError> {
    let ms = sk_of(item).rsplit('#').next().and_then(|ms| ms.parse().ok());
    ms.map(Timestamp::from_ms).ok_or_else(|| StoreError::corrupt(ENTITY, "the time of an event has another form"))
}
