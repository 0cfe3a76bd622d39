//! The way of a key through the gate: check and count in one write.

use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use domain::api_key::ApiKey;
use domain::id::KeyId;
use domain::rate_limit::{Limit, Minute, Quota};
use domain::time::Timestamp;
use runtime::random_bytes;

use super::{KeyRecord, Keys, Stored, item_key};
use crate::db::{Ask, Item, StoreError, Written, b, from_item, n, write};

/// Counters of past minutes that an item may gather before they are removed.
const MAX_STALE_WINDOWS: usize = 8;

/// What came of presenting a key.
#[derive(Debug)]
pub enum Presented {
    /// It counts. `stale_windows` are to be dropped beside the work.
    Accepted { record: Box<KeyRecord>, quotas: Vec<Quota>, stale_windows: Vec<String> },
    /// No such key, or it is revoked or has expired.
    Rejected,
    /// The key counts, but its minute is used up.
    Limited { used_up: Quota, quotas: Vec<Quota> },
}

impl Keys {
    /// Checks a key and counts the request against its minute, under each of the limits or under none. Quotas are in the limits' order.
    /// The item keeps which call counted last: one whose answer was lost is repeated, and counts once unless another came between.
    pub async fn authenticate(&self, key: &ApiKey, limits: &[Limit], now: Timestamp) -> Result<Presented, StoreError> {
        let minute = Minute::of(now);
        let counting = Counting::new(limits, minute);
        let id = key.id();
        let call = random_bytes::<8>();
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(item_key(&id)));
            let update = counting.counters.iter().fold(update, |update, counter| {
                update
                    .expression_attribute_names(&counter.current_name, &counter.current)
                    .expression_attribute_names(&counter.past_name, &counter.past)
                    .expression_attribute_values(&counter.most_name, n(counter.limit.per_minute()))
            });
            update
                .update_expression(&counting.update)
                .condition_expression(&counting.condition)
                .expression_attribute_names("#hash", "hash")
                .expression_attribute_values(":hash", b(key.hash()))
                .expression_attribute_values(":call", b(call))
                .expression_attribute_values(":minute", n(minute.0 * 60_000))
                .expression_attribute_values(":one", n(1))
                .expression_attribute_values(":now", n(now.ms()))
                .return_values(ReturnValue::AllNew)
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .ask()
        });
        match written.await? {
            Written::Done(output) => accepted(&counting, output.attributes.unwrap_or_default(), now),
            Written::Refused(Some(item)) if item.get("last_call") == Some(&b(call)) => accepted(&counting, item, now),
            Written::Refused(Some(item)) => {
                let quotas = counting.quotas(&item, now);
                let used_up = quotas.iter().find(|quota| quota.remaining == 0).copied();
                let stored: Stored = from_item("key", item)?;
                let counts = stored.hash == key.hash() && stored.record.is_live(now);
                Ok(match used_up.filter(|_| counts) {
                    Some(used_up) => Presented::Limited { used_up, quotas },
                    None => Presented::Rejected,
                })
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
                .ask()
        })
        .await?;
        Ok(())
    }
}

fn accepted(counting: &Counting, item: Item, now: Timestamp) -> Result<Presented, StoreError> {
    let quotas = counting.quotas(&item, now);
    let stale_windows = stale_windows(&item, Minute::of(now));
    let stored: Stored = from_item("key", item)?;
    Ok(Presented::Accepted { record: Box::new(stored.record), quotas, stale_windows })
}

/// The counters of one request and the expressions over them.
struct Counting {
    counters: Vec<Counter>,
    update: String,
    condition: String,
}

/// A limit's attributes, and what the expressions call them.
struct Counter {
    limit: Limit,
    current: String,
    current_name: String,
    /// Of the minute before last: it goes with the same write.
    past: String,
    past_name: String,
    most_name: String,
}

impl Counting {
    fn new(limits: &[Limit], minute: Minute) -> Self {
        let counter = |(i, limit): (usize, &Limit)| Counter {
            limit: *limit,
            current: window(*limit, minute),
            current_name: format!("#current{i}"),
            past: window(*limit, Minute(minute.0 - 2)),
            past_name: format!("#past{i}"),
            most_name: format!(":most{i}"),
        };
        let counters: Vec<Counter> = limits.iter().enumerate().map(counter).collect();
        let joined = |part: fn(&Counter) -> String, separator: &str| {
            counters.iter().map(part).collect::<Vec<_>>().join(separator)
        };
        let counted = joined(|counter| format!("{} :one", counter.current_name), ", ");
        let removed = joined(|counter| counter.past_name.clone(), ", ");
        let within = joined(
            |Counter { current_name, most_name, .. }| {
                format!("(attribute_not_exists({current_name}) OR {current_name} < {most_name})")
            },
            " AND ",
        );
        let update = format!("SET last_used_at = :minute, last_call = :call ADD {counted} REMOVE {removed}");
        let condition = format!(
            "#hash = :hash AND attribute_not_exists(revoked_at) \
             AND (attribute_not_exists(expires_at) OR expires_at > :now) \
             AND (attribute_not_exists(last_call) OR last_call <> :call) AND {within}"
        );
        Self { counters, update, condition }
    }

    fn quotas(&self, item: &Item, now: Timestamp) -> Vec<Quota> {
        let quota = |counter: &Counter| Quota::after(counter.limit, used_in(item, &counter.current), now);
        self.counters.iter().map(quota).collect()
    }
}

/// The letter that a limit's counters begin with.
const fn letter(limit: Limit) -> char {
    match limit {
        Limit::Requests => 'w',
        Limit::LoginLinks => 'l',
    }
}

fn window(limit: Limit, minute: Minute) -> String {
    format!("{}{}", letter(limit), minute.0)
}

fn used_in(item: &Item, window: &str) -> u32 {
    item.get(window).and_then(|used| used.as_n().ok()).and_then(|used| used.parse().ok()).unwrap_or(0)
}

/// Counters that have had their time, once there are enough of them to be worth a write.
fn stale_windows(item: &Item, now: Minute) -> Vec<String> {
    let letters = [Limit::Requests, Limit::LoginLinks].map(letter);
    let past = |name: &&String| {
        let minute: Option<i64> = name.strip_prefix(letters).and_then(|digits| digits.parse().ok());
        minute.is_some_and(|minute| minute < now.0 - 1)
    };
    let stale: Vec<String> = item.keys().filter(past).cloned().collect();
    if stale.len() > MAX_STALE_WINDOWS { stale } else { Vec::new() }
}
