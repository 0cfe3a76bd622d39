//! Admission: a slot of an endpoint that answers in time, a place at a late one. Whatever is queued for a receiver that
//! hangs, it holds up few functions.

use std::time::Duration;

use chrono::TimeDelta;
use domain::delivery::Readiness;
use domain::time::Timestamp;
use runtime::{error_chain, random_bytes};
use store::StoreError;
use store::endpoint::{EndpointRef, Slot};

use crate::App;
use crate::receiver::Receiver;

/// Waits for a slot, which a quick endpoint gives back soon; a second in all.
const WAITS_MS: [u64; 5] = [30, 60, 120, 240, 550];
/// A place that comes as soon is waited for: no queue delays a message by less than a second.
const SHORT_WAIT: TimeDelta = TimeDelta::seconds(1);
/// The wait of orders that found no slot: so long, and up to as long again, so that they do not come back as one. If
/// the slots are taken because the endpoint does not answer, the endpoint is known to be late by then.
const PUT_OFF: TimeDelta = TimeDelta::seconds(2);

/// The time at which a group of orders may be carried out.
pub(crate) enum Admission {
    /// Now, in this slot if the endpoint has slots.
    Now(Option<Slot>),
    Later {
        due_at: Timestamp,
        placed: bool,
    },
}

impl App {
    /// Admits a group of orders that are due.
    pub(crate) async fn admit(
        &self,
        whose: &EndpointRef,
        receiver: &Receiver,
        readiness: Readiness,
    ) -> Result<Admission, StoreError> {
        match receiver.gap(self.now()) {
            _ if readiness == Readiness::Off => Ok(Admission::Now(None)),
            Some(gap) => self.place(whose, gap).await,
            None => self.slot(whose).await,
        }
    }

    async fn slot(&self, EndpointRef { coach, id }: &EndpointRef) -> Result<Admission, StoreError> {
        let mut is_free = true;
        for wait_ms in WAITS_MS.into_iter().map(Some).chain([None]) {
            if is_free && let Some(slot) = self.endpoints.acquire_slot(coach, id, self.now()).await? {
                return Ok(Admission::Now(Some(slot)));
            }
            if let Some(wait_ms) = wait_ms {
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                // A read: a write that is refused costs as much as one that is done.
                is_free = self.endpoints.has_free_slot(coach, id, self.now()).await?;
            }
        }
        let more_ms = PUT_OFF.num_milliseconds() * i64::from(u16::from_be_bytes(random_bytes())) / i64::from(u16::MAX);
        let due_at = self.now() + PUT_OFF + TimeDelta::milliseconds(more_ms);
        Ok(Admission::Later { due_at, placed: false })
    }

    async fn place(&self, EndpointRef { coach, id }: &EndpointRef, gap: TimeDelta) -> Result<Admission, StoreError> {
        let now = self.now();
        let place = self.endpoints.reserve_place(coach, id, gap, now).await?;
        if place > now + SHORT_WAIT {
            return Ok(Admission::Later { due_at: place, placed: true });
        }
        tokio::time::sleep((place.utc() - now.utc()).to_std().unwrap_or_default()).await;
        Ok(Admission::Now(None))
    }

    /// Gives a slot back. One that cannot be given back runs out.
    pub(crate) async fn release(&self, slot: Slot) {
        if let Err(error) = self.endpoints.release_slot(&slot).await {
            tracing::warn!(error = error_chain(&error), "a slot was not released and expires by itself");
        }
    }
}
