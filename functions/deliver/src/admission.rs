//! Admission: an endpoint permit if the endpoint answers in time, a reserved place if it is late. However many orders
//! wait for a receiver that hangs, they occupy few functions.

use std::time::Duration;

use chrono::TimeDelta;
use domain::delivery::Readiness;
use domain::time::Timestamp;
use runtime::{error_chain, random_bytes};
use store::StoreError;
use store::endpoint::Permit;
use store::endpoint_ref::EndpointRef;

use crate::App;
use crate::endpoint_state::EndpointState;

/// Waits between tries to acquire a permit, one second in all. A quick endpoint frees its permits soon.
const WAITS_MS: [u64; 5] = [30, 60, 120, 240, 550];
/// A place within this time is awaited: no queue delays a message by less than a second.
const SHORT_WAIT: TimeDelta = TimeDelta::seconds(1);
/// Delay of orders that found no permit, plus jitter of up to the same length. If the permits are taken because the
/// endpoint does not answer, the endpoint is known to be late by then.
const PUT_OFF: TimeDelta = TimeDelta::seconds(2);

/// The time at which a group of orders may be carried out.
pub(crate) enum Admission {
    /// Now, in this permit if the endpoint has permits.
    Now(Option<Permit>),
    Later {
        due_at: Timestamp,
        placed: bool,
    },
}

impl App {
    /// Admits a group of orders that are due.
    pub(crate) async fn admit(
        &self,
        endpoint: &EndpointRef,
        state: &EndpointState,
        readiness: Readiness,
    ) -> Result<Admission, StoreError> {
        match state.gap(self.now()) {
            _ if readiness == Readiness::Off => Ok(Admission::Now(None)),
            Some(gap) => self.place(endpoint, gap).await,
            None => self.permit(endpoint).await,
        }
    }

    async fn permit(&self, EndpointRef { coach, id }: &EndpointRef) -> Result<Admission, StoreError> {
        let mut is_free = true;
        for wait_ms in WAITS_MS.into_iter().map(Some).chain([None]) {
            if is_free && let Some(permit) = self.endpoints.acquire_permit(coach, id, self.now()).await? {
                return Ok(Admission::Now(Some(permit)));
            }
            if let Some(wait_ms) = wait_ms {
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                // A read, since a refused write costs as much as a successful one.
                is_free = self.endpoints.has_free_permit(coach, id, self.now()).await?;
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

    /// Releases a permit. A permit that cannot be released expires.
    pub(crate) async fn release(&self, permit: Permit) {
        if let Err(error) = self.endpoints.release_permit(&permit).await {
            tracing::warn!(error = error_chain(&error), "could not release a permit; it expires by itself");
        }
    }
}
