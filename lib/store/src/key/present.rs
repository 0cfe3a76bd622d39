//! The way of a key through the gate: check and count in one write.

use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure};
use domain::api_key::ApiKey;
use domain::id::KeyId;
use domain::rate_limit::{Minute, Quota, REQUESTS_PER_MINUTE};
use domain::time::Timestamp;

use super::{KeyRecord, Keys, Stored, item_key};
use crate::db::{Item, StoreError, Written, b, from_item, n, write};

/// Counters of past minutes that an item may gather before they are removed.
const MAX_STALE_WINDOWS: usize = 8;

/// What came of presenting a key.
#[derive(Debug)]
pub enum Presented {
    /// It counts. `stale_windows` are to be dropped beside the work.
    Accepted { record: Box<KeyRecord>, quota: Quota, stale_windows: Vec<String> },
    /// No such key, or it is revoked or has expired.
    Rejected,
    /// The key counts, but its minute is used up.
    Limited(Quota),
}

impl Keys {
    /// Checks a key and counts the request against its minute.
    pub async fn authenticate(&self, key: &ApiKey, now: Timestamp) -> Result<Presented, StoreError> {
        let minute = Minute::of(now);
        let (current, before_last) = (window(minute), window(Minute(minute.0 - 2)));
        let id = key.id();
        let written = write("UpdateItem", || {
            self.db
                .client()
                .update_item()
                .table_name(&self.table)
                .set_key(Some(item_key(&id)))
                .update_expression("SET last_used_at = :minute ADD #current :one REMOVE #before_last")
                .condition_expression(
                    "#hash = :hash AND attribute_not_exists(revoked_at) \
                     AND (attribute_not_exists(expires_at) OR expires_at > :now) \
                     AND (attribute_not_exists(#current) OR #current < :limit)",
                )
                .expression_attribute_names("#hash", "hash")
                .expression_attribute_names("#current", &current)
                .expression_attribute_names("#before_last", &before_last)
                .expression_attribute_values(":hash", b(key.hash()))
                .expression_attribute_values(":minute", n(minute.0 * 60_000))
                .expression_attribute_values(":one", n(1))
                .expression_attribute_values(":now", n(now.ms()))
                .expression_attribute_values(":limit", n(REQUESTS_PER_MINUTE))
                .return_values(ReturnValue::AllNew)
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        match written.await? {
            Written::Done(output) => {
                let item = output.attributes.unwrap_or_default();
                let used = used_in(&item, &current);
                let stale_windows = stale_windows(&item, minute);
                let stored: Stored = from_item("key", item)?;
                Ok(Presented::Accepted {
                    record: Box::new(stored.record),
                    quota: Quota::after(used, now),
                    stale_windows,
                })
            }
            Written::Refused(Some(item)) => {
                let used = used_in(&item, &current);
                let stored: Stored = from_item("key", item)?;
                let counts = stored.hash == key.hash() && stored.record.is_live(now);
                Ok(if counts { Presented::Limited(Quota::after(used, now)) } else { Presented::Rejected })
            }
            Written::Refused(None) => Ok(Presented::Rejected),
        }
    }

    /// Removes counters of minutes long past.
    pub async fn drop_windows(&self, id: &KeyId, windows: &[String]) -> Result<(), StoreError> {
        let names: Vec<String> = (0..windows.len()).map(|i| format!("#w{i}")).collect();
        write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(item_key(id)));
            let update = names
                .iter()
                .zip(windows)
                .fold(update, |update, (name, window)| update.expression_attribute_names(name, window));
            update
                .update_expression(format!("REMOVE {}", names.join(", ")))
                .condition_expression("attribute_exists(pk)")
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        })
        .await?;
        Ok(())
    }
}

fn window(minute: Minute) -> String {
    format!("w{}", minute.0)
}

fn used_in(item: &Item, window: &str) -> u32 {
    item.get(window).and_then(|used| used.as_n().ok()).and_then(|used| used.parse().ok()).unwrap_or(0)
}

/// Counters that have had their time, once there are enough of them to be worth a write.
fn stale_windows(item: &Item, now: Minute) -> Vec<String> {
    let past = |name: &&String| {
        let minute: Option<i64> = name.strip_prefix('w').and_then(|digits| digits.parse().ok());
        minute.is_some_and(|minute| minute < now.0 - 1)
    };
    let stale: Vec<String> = item.keys().filter(past).cloned().collect();
    if stale.len() > MAX_STALE_WINDOWS { stale } else { Vec::new() }
}
