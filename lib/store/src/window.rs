//! Counters per calendar minute on an item: `<letter><minute>` for each limit, and `last_call`, the call that counted
//! last.
//!
//! One `UpdateItem` counts a request under all of its limits or none. The request's random `call` marks the item. The
//! SDK repeats an update whose answer was lost: the mark keeps the repeat from counting twice, unless another call came
//! between.

use domain::rate_limit::{Limit, Minute, Quota};
use domain::time::Timestamp;
use runtime::{error_chain, random_bytes};

use crate::db::{Item, ItemWrite, StoreError, Table, Written, b, n, number};

/// Counters of past minutes that an item may gather before they are removed.
const MAX_STALE_WINDOWS: usize = 8;

/// The result of counting a request.
#[derive(Debug)]
pub struct Counted {
    /// The quotas, in the limits' order.
    pub quotas: Vec<Quota>,
    /// The limit whose minute is used up: the request does not count.
    pub used_up: Option<Quota>,
}

/// Counts a request on an item. The item's other attributes, if there are any, do not matter to the count.
pub(crate) async fn count(table: &Table, key: Item, limits: &[Limit], now: Timestamp) -> Result<Counted, StoreError> {
    let counting = Counting::new(limits, now);
    let item = match counting.on(table.write(key.clone())).update_now().await? {
        Written::Done(item) => item,
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
    // A failure to remove old counters must not fail the request.
    if !stale.is_empty()
        && let Err(error) = drop_windows(table, key, &stale).await
    {
        tracing::warn!(error = error_chain(&error), "failed to remove past counters");
    }
    Ok(Counted { quotas: counting.quotas(&item), used_up: None })
}

/// Removes counters of past minutes.
pub(crate) async fn drop_windows(table: &Table, key: Item, windows: &[String]) -> Result<(), StoreError> {
    table.write(key).remove(windows.iter().map(String::as_str)).when_present().update_now().await?;
    Ok(())
}

/// The counters of one request.
pub(crate) struct Counting<'a> {
    limits: &'a [Limit],
    now: Timestamp,
    call: [u8; 8],
}

impl<'a> Counting<'a> {
    pub(crate) fn new(limits: &'a [Limit], now: Timestamp) -> Self {
        Self { limits, now, call: random_bytes() }
    }

    /// Adds the count to an update, on condition that all limits have room and this call has not counted yet.
    pub(crate) fn on<'t>(&self, update: ItemWrite<'t>) -> ItemWrite<'t> {
        let Minute(minute) = Minute::of(self.now);
        let update = update.set("last_call", b(self.call)).returning_item();
        let update = update.when("attribute_not_exists(last_call) OR last_call <> :last_call", []);
        self.limits.iter().fold(update, |update, limit| {
            let (current, past) = (window(*limit, Minute(minute)), window(*limit, Minute(minute - 2)));
            let most = format!(":most_{current}");
            update.count(&current).remove([past.as_str()]).when(
                format!("attribute_not_exists(#{current}) OR #{current} < {most}"),
                [(most.as_str(), n(limit.per_minute()))],
            )
        })
    }

    /// Returns true if the item that refused the update counts this call: the answer to an earlier update was lost.
    pub(crate) fn is_counted(&self, item: &Item) -> bool {
        item.get("last_call") == Some(&b(self.call))
    }

    pub(crate) fn quotas(&self, item: &Item) -> Vec<Quota> {
        let used = |limit: Limit| number(item, &window(limit, Minute::of(self.now))).unwrap_or(0);
        self.limits.iter().map(|limit| Quota::after(*limit, used(*limit), self.now)).collect()
    }

    /// Counters of past minutes, once there are enough of them to be worth a write.
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

/// The first letter of a limit's counters.
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
