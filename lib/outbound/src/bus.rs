//! The bus, on which changes reach the application.
//!
//! PutEvents takes 10 entries and 256 KiB at a time, and answers for each entry on its own
//! (<https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html>).

use std::ops::Range;
use std::sync::Arc;

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};
use domain::change::{Change, SOURCE};
use futures::future::join_all;
use runtime::{BoxError, Environment, without_message};

use crate::boxed;

const MAX_BATCH_ENTRIES: usize = 10;
const MAX_BATCH_BYTES: usize = 256 * 1024;

/// The bus refused a change or did not answer. After a call without an answer the change may be on the bus.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the bus did not take a change")]
pub struct BusError(#[source] Arc<dyn std::error::Error + Send + Sync>);

impl BusError {
    fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into().into())
    }
}

/// The bus.
#[derive(Clone)]
pub struct Bus {
    client: Client,
    name: String,
}

impl Bus {
    /// The bus that `EVENT_BUS` names.
    pub fn new(env: &Environment) -> Result<Self, BoxError> {
        Ok(Self { client: Client::new(env.sdk()), name: env.config().get("EVENT_BUS")?.to_owned() })
    }

    /// Puts changes on the bus and returns one result per change, in their order.
    pub async fn put(&self, changes: &[&Change]) -> Vec<Result<(), BusError>> {
        let details: Vec<String> = changes.iter().map(|change| change.render().to_string()).collect();
        let sizes: Vec<usize> = changes
            .iter()
            .zip(&details)
            .map(|(change, detail)| SOURCE.len() + change.name().len() + detail.len())
            .collect();
        let put = batches(&sizes).into_iter().map(|batch| {
            let entries = batch.clone().map(|i| self.entry(changes[i].name(), &details[i])).collect();
            self.put_batch(entries, batch.len())
        });
        join_all(put).await.concat()
    }

    fn entry(&self, detail_type: &str, detail: &str) -> PutEventsRequestEntry {
        let entry = PutEventsRequestEntry::builder().event_bus_name(&self.name).source(SOURCE);
        entry.detail_type(detail_type).detail(detail).build()
    }

    async fn put_batch(&self, entries: Vec<PutEventsRequestEntry>, count: usize) -> Vec<Result<(), BusError>> {
        match boxed(self.client.put_events().set_entries(Some(entries)).send()).await {
            Ok(answer) => {
                let mut results: Vec<_> = answer.entries.unwrap_or_default().iter().map(result_of).collect();
                results.resize(count, Err(BusError::new("no result for the entry")));
                results
            }
            Err(error) => vec![Err(BusError::new(without_message(error))); count],
        }
    }
}

/// The result of one entry. An entry without an id was refused, even without an error code.
fn result_of(entry: &PutEventsResultEntry) -> Result<(), BusError> {
    match (entry.error_code(), entry.event_id()) {
        (None, Some(_)) => Ok(()),
        (code, _) => Err(BusError::new(code.unwrap_or("no reason given"))),
    }
}

/// Splits entries into successive batches within both limits. An entry above the limit is a batch of its own, which the
/// bus refuses.
fn batches(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (i, size) in sizes.iter().enumerate() {
        match batches.last_mut() {
            Some(batch) if batch.len() < MAX_BATCH_ENTRIES && bytes + size <= MAX_BATCH_BYTES => {
                batch.end = i + 1;
                bytes += size;
            }
            _ => {
                batches.push(i..i + 1);
                bytes = *size;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_10_entries_and_256_kib() {
        assert!(batches(&[]).is_empty());
        assert_eq!(batches(&[1; 23]), [0..10, 10..20, 20..23]);
        assert_eq!(batches(&[100 * 1024, 100 * 1024, 100 * 1024, 1]), [0..2, 2..4]);
        assert_eq!(batches(&[MAX_BATCH_BYTES, 1, MAX_BATCH_BYTES + 1, 1]), [0..1, 1..2, 2..3, 3..4]);
    }

    #[test]
    fn an_entry_counts_as_put_only_with_an_id_and_without_an_error() {
        let entry = PutEventsResultEntry::builder;
        assert!(result_of(&entry().event_id("1").build()).is_ok());
        assert!(result_of(&entry().build()).is_err());
        assert!(result_of(&entry().error_code("ThrottlingException").build()).is_err());
    }
}
