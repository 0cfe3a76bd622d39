//! Counters per calendar minute on an item: `<letter><minute>` for each limit, and `last_call`, the call that counted
//! last.
//!
//! One `UpdateItem` counts a request under all of its limits or under none. The request's own random `call` marks the
//! item: an update whose answer was lost is repeated, recognized, and counted once unless another call came between.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use domain::rate_limit::{Limit, Minute, Quota};
use domain::time::Timestamp;
use runtime::{error_chain, random_bytes};

use crate::db::{Ask, Db, Item, StoreError, Written, b, n, write};

/// Counters of past minutes that an item may gather before they are removed.
const MAX_STALE_WINDOWS: usize = 8;

/// The result of counting a request.
#[derive(Debug)]
pub struct Counted {
    /// In the limits' order.
    pub quotas: Vec<Quota>,
    /// The limit whose minute is used up: the request does not count.
    pub used_up: Option<Quota>,
}

/// Counts a request on an item that holds nothing but counters, or whose other attributes do not matter to the count.
pub(crate) async fn count(
    db: &Db,
    table: &str,
    key: Item,
    limits: &[Limit],
    now: Timestamp,
) -> Result<Counted, StoreError> {
    let counting = Counting::new(limits, now);
    let written = write("UpdateItem", || {
        let update = db.client().update_item().table_name(table).set_key(Some(key.clone()));
        counting
            .on(update)
            .update_expression(format!("SET {} {}", counting.mark(), counting.changes()))
            .condition_expression(counting.condition())
            .ask()
    });
    let item = match written.await? {
        Written::Done(output) => output.attributes.unwrap_or_default(),
        Written::Refused(item) => {
            let item = item.unwrap_or_default();
            let quotas = counting.quotas(&item);
            let used_up = Quota::used_up(&quotas).filter(|_| !counting.is_counted(&item));
            if used_up.is_some() {
                return Ok(Counted { quotas, used_up });
            }
            item
        }
    };
    let stale = counting.stale_windows(&item);
    // Nothing depends on old counters going: a request does not fail over it.
    if !stale.is_empty()
        && let Err(error) = drop_windows(db, table, key, &stale).await
    {
        tracing::warn!(error = error_chain(&error), "old counters stay for now");
    }
    Ok(Counted { quotas: counting.quotas(&item), used_up: None })
}

/// Removes counters of minutes long past.
pub(crate) async fn drop_windows(db: &Db, table: &str, key: Item, windows: &[String]) -> Result<(), StoreError> {
    let names: Vec<String> = (0..windows.len()).map(|i| format!("#w{i}")).collect();
    write("UpdateItem", || {
        let update = db.client().update_item().table_name(table).set_key(Some(key.clone()));
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

/// The counters of one request and the expressions over them.
pub(crate) struct Counting {
    now: Timestamp,
    call: [u8; 8],
    counters: Vec<Counter>,
}

/// A limit's attributes, and what the expressions call them.
struct Counter {
    limit: Limit,
    current: String,
    current_name: String,
    /// Counter of the minute before last. The same write removes the counter.
    past: String,
    past_name: String,
    most_name: String,
}

impl Counting {
    pub(crate) fn new(limits: &[Limit], now: Timestamp) -> Self {
        let minute = Minute::of(now);
        let counter = |(i, limit): (usize, &Limit)| Counter {
            limit: *limit,
            current: window(*limit, minute),
            current_name: format!("#current{i}"),
            past: window(*limit, Minute(minute.0 - 2)),
            past_name: format!("#past{i}"),
            most_name: format!(":most{i}"),
        };
        Self { now, call: random_bytes(), counters: limits.iter().enumerate().map(counter).collect() }
    }

    /// The update with the names and values of the expressions. The item is returned as it is afterwards, or as it
    /// refused.
    pub(crate) fn on(&self, update: UpdateItemFluentBuilder) -> UpdateItemFluentBuilder {
        let update = self.counters.iter().fold(update, |update, counter| {
            update
                .expression_attribute_names(&counter.current_name, &counter.current)
                .expression_attribute_names(&counter.past_name, &counter.past)
                .expression_attribute_values(&counter.most_name, n(counter.limit.per_minute()))
        });
        update
            .expression_attribute_values(":call", b(self.call))
            .expression_attribute_values(":one", n(1))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// The update's part of `SET`.
    pub(crate) fn mark(&self) -> &'static str {
        "last_call = :call"
    }

    /// The update's clauses after `SET`.
    pub(crate) fn changes(&self) -> String {
        let counted = self.joined(|counter| format!("{} :one", counter.current_name), ", ");
        let removed = self.joined(|counter| counter.past_name.clone(), ", ");
        format!("ADD {counted} REMOVE {removed}")
    }

    /// All limits have room, and this call has not counted yet.
    pub(crate) fn condition(&self) -> String {
        let within = self.joined(
            |Counter { current_name, most_name, .. }| {
                format!("(attribute_not_exists({current_name}) OR {current_name} < {most_name})")
            },
            " AND ",
        );
        format!("(attribute_not_exists(last_call) OR last_call <> :call) AND {within}")
    }

    fn joined(&self, part: fn(&Counter) -> String, separator: &str) -> String {
        self.counters.iter().map(part).collect::<Vec<_>>().join(separator)
    }

    /// Returns true if an item that refused the update has counted it before: the answer was lost.
    pub(crate) fn is_counted(&self, item: &Item) -> bool {
        item.get("last_call") == Some(&b(self.call))
    }

    pub(crate) fn quotas(&self, item: &Item) -> Vec<Quota> {
        let quota = |counter: &Counter| Quota::after(counter.limit, used_in(item, &counter.current), self.now);
        self.counters.iter().map(quota).collect()
    }

    /// Counters that have had their time, once there are enough of them to be worth a write.
    pub(crate) fn stale_windows(&self, item: &Item) -> Vec<String> {
        let letters = Limit::ALL.map(letter);
        let past = |name: &&String| {
            let minute: Option<i64> = name.strip_prefix(letters).and_then(|digits| digits.parse().ok());
            minute.is_some_and(|minute| minute < Minute::of(self.now).0 - 1)
        };
        let stale: Vec<String> = item.keys().filter(past).cloned().collect();
        if stale.len() > MAX_STALE_WINDOWS { stale } else { Vec::new() }
    }
}

/// The letter that a limit's counters begin with.
const fn letter(limit: Limit) -> char {
    match limit {
        Limit::Requests => 'w',
        Limit::LoginLinks => 'l',
        Limit::SettingsRequests => 's',
        Limit::TestEvents => 't',
    }
}

fn window(limit: Limit, minute: Minute) -> String {
    format!("{}{}", letter(limit), minute.0)
}

fn used_in(item: &Item, window: &str) -> u32 {
    item.get(window).and_then(|used| used.as_n().ok()).and_then(|used| used.parse().ok()).unwrap_or(0)
}
