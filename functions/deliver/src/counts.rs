//! Counts of a batch for the endpoints' activity, which are written once for each endpoint at the end of the batch.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use domain::delivery::HourCounts;
use domain::id::EndpointId;
use futures::future::join_all;

use crate::App;

/// The counts of a batch so far.
#[derive(Default)]
pub(crate) struct BatchCounts(Mutex<BTreeMap<EndpointId, HourCounts>>);

impl BatchCounts {
    pub(crate) fn add(&self, endpoint: &EndpointId, counts: HourCounts) {
        let mut endpoints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *endpoints.entry(endpoint.clone()).or_default() += counts;
    }
}

impl App {
    /// Writes the counts of a batch.
    pub(crate) async fn write_counts(&self, BatchCounts(counts): BatchCounts) {
        let endpoints = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let now = self.now();
        join_all(endpoints.iter().map(|(endpoint, counts)| self.deliveries.count(endpoint, now, *counts))).await;
    }
}
