//! The endpoint of a group of orders, and the pace that the group's attempts observe.

use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use domain::delivery::{DELETED, Readiness};
use domain::endpoint::{EndpointStatus, SignedEndpoint};
use domain::pace::{Lateness, Pace};
use domain::time::Timestamp;

/// An endpoint as it was read for a group of orders.
pub(crate) struct EndpointState {
    /// The endpoint, or the reason why nothing is sent, for the delivery log.
    pub(crate) endpoint: Result<SignedEndpoint, String>,
    /// The latest pace that the group knows of.
    pace: Mutex<Option<Pace>>,
}

impl EndpointState {
    pub(crate) fn new(read: Option<SignedEndpoint>) -> Self {
        let pace = Mutex::new(read.as_ref().and_then(|endpoint| endpoint.pace));
        Self { endpoint: sendable(read), pace }
    }

    pub(crate) fn readiness(&self, now: Timestamp) -> Readiness {
        match &self.endpoint {
            Err(_) => Readiness::Off,
            Ok(_) if self.gap(now).is_some() => Readiness::Late,
            Ok(_) => Readiness::Quick,
        }
    }

    /// The time between two places, if the endpoint is late.
    pub(crate) fn gap(&self, now: Timestamp) -> Option<TimeDelta> {
        let pace = *self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.filter(|pace| pace.until > now).map(|pace| pace.gap)
    }

    /// The pace to record, if it has changed. Attempts of a group observe the same lateness at the same time: one of
    /// them records it.
    pub(crate) fn pace_to_record(&self, lateness: Lateness, now: Timestamp) -> Option<Pace> {
        let mut known = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = Pace::to_record(*known, lateness, now)?;
        *known = Some(changed);
        Some(changed)
    }
}

/// The endpoint if it takes deliveries, or the reason why it does not, for the delivery log.
pub(crate) fn sendable(endpoint: Option<SignedEndpoint>) -> Result<SignedEndpoint, String> {
    let endpoint = endpoint.ok_or(DELETED)?;
    match endpoint.endpoint.status {
        EndpointStatus::Enabled => Ok(endpoint),
        EndpointStatus::Disabled | EndpointStatus::Gone => Err(endpoint.endpoint.not_sent()),
    }
}
