//! Authentication of a request by its key: one write checks the key and counts the request.

use domain::api_key::ApiKey;
use domain::id::KeyId;
use domain::rate_limit::{Limit, Minute, Quota, WINDOW_S};
use domain::time::Timestamp;

use super::{KeyItem, KeyRecord, Keys, item_key};
use crate::db::{Item, StoreError, Written, b, from_item, n};
use crate::window::{self, Counting};

/// The result of presenting a key.
#[derive(Debug)]
pub enum Presented {
    /// The key is valid and the request is counted. The caller removes `stale_windows` while the request is worked on.
    Accepted { record: Box<KeyRecord>, quotas: Vec<Quota>, stale_windows: Vec<String> },
    /// The key is valid, but its minute is used up.
    Limited { record: Box<KeyRecord>, used_up: Quota, quotas: Vec<Quota> },
    /// The key is revoked or has expired.
    Ended { record: Box<KeyRecord> },
    /// The key is for deployments of the other mode.
    OtherMode,
    /// No key has this secret.
    Unknown,
}

impl Keys {
    /// Checks a key and counts the request against its minute, under all of the limits or none. Quotas are in the
    /// limits' order.
    pub async fn authenticate(&self, key: &ApiKey, limits: &[Limit], now: Timestamp) -> Result<Presented, StoreError> {
        if key.mode() != self.mode {
            return Ok(Presented::OtherMode);
        }
        let counting = Counting::new(limits, now);
        let minute_ms = Minute::of(now).0 * i64::from(WINDOW_S) * 1000;
        let update = counting
            .on(self.table.write(item_key(&key.id())))
            .set("last_used_at", n(minute_ms))
            .when("#hash = :hash AND attribute_not_exists(revoked_at)", [(":hash", b(key.hash()))])
            .when("attribute_not_exists(expires_at) OR expires_at > :now", [(":now", n(now.ms()))]);
        match update.update_now().await? {
            Written::Done(item) => accepted(&counting, item),
            Written::Refused(Some(item)) if counting.is_counted(&item) => accepted(&counting, item),
            Written::Refused(Some(item)) => {
                let quotas = counting.quotas(&item);
                let used_up = Quota::used_up(&quotas);
                let stored: KeyItem = from_item("key", item)?;
                if stored.hash != key.hash() {
                    return Ok(Presented::Unknown);
                }
                let record = Box::new(stored.record);
                Ok(match used_up.filter(|_| record.is_live(now)) {
                    Some(used_up) => Presented::Limited { record, used_up, quotas },
                    None => Presented::Ended { record },
                })
            }
            Written::Refused(None) => Ok(Presented::Unknown),
        }
    }

    /// Removes counters of past minutes.
    pub async fn drop_windows(&self, id: &KeyId, windows: &[String]) -> Result<(), StoreError> {
        window::drop_windows(&self.table, item_key(id), windows).await
    }
}

fn accepted(counting: &Counting<'_>, item: Item) -> Result<Presented, StoreError> {
    let quotas = counting.quotas(&item);
    let stale_windows = counting.stale_windows(&item);
    let stored: KeyItem = from_item("key", item)?;
    Ok(Presented::Accepted { record: Box::new(stored.record), quotas, stale_windows })
}
