//! Expiry of items on stack time.
//!
//! dynoxide scans a whole table to find expired items. Advancing the clock by months sweeps thousands of times, so the
//! earliest expiry is cached until the next write.

use std::sync::atomic::Ordering;

use dynoxide::DynoxideError;
use dynoxide::storage::Storage;
use futures::FutureExt;
use rusqlite::Connection;

use super::{DynamoDb, TtlClock};
use crate::error::StoreError;

impl DynamoDb {
    /// Deletes expired items as DynamoDB does, with stream records whose `userIdentity` is DynamoDB. Returns their
    /// number.
    pub async fn sweep_ttl(&self) -> Result<usize, StoreError> {
        // Read before the tables, so that a concurrent write invalidates the cached value.
        let writes = self.writes.load(Ordering::Acquire);
        let now_s = self.time.now().timestamp();
        let cached = self.expiry.lock().filter(|(as_of, _)| *as_of == writes);
        let earliest = match cached {
            Some((_, earliest)) => earliest,
            None => self.file.run(earliest_expiry).await?.unwrap_or(i64::MAX),
        };
        self.expiry.set((writes, earliest));
        if earliest >= now_s {
            return Ok(0);
        }
        let (path, clock) = (self.path.to_string_lossy().into_owned(), TtlClock::shared(&self.time));
        let swept = self.file.run(|_| Ok(sweep(&path, clock))).await?;
        let deleted = swept.map_err(|error| StoreError::DynamoDb(error.to_string()))?;
        self.notify_write();
        Ok(deleted)
    }
}

/// Deletes expired items with a new connection, since dynoxide caches table metadata in a connection.
fn sweep(path: &str, clock: std::sync::Arc<dyn dynoxide::storage_backend::Clock>) -> Result<usize, DynoxideError> {
    let storage = Storage::new(path)?.with_clock(clock);
    dynoxide::ttl::sweep_expired_items(&storage).now_or_never().expect("dynoxide waits for nothing but SQLite")
}

/// Returns the earliest expiry in seconds since the epoch, or `None` when no item expires.
fn earliest_expiry(connection: &mut Connection) -> rusqlite::Result<Option<i64>> {
    let tables: Vec<(String, String)> = connection
        .prepare_cached(
            "SELECT table_name, ttl_attribute FROM _tables WHERE ttl_enabled = 1 AND ttl_attribute IS NOT NULL",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut earliest = None;
    for (table, attribute) in tables {
        let sql = format!(
            "SELECT MIN(CAST(json_extract(item_json, ?1) AS INTEGER)) FROM \"{}\" \
             WHERE json_extract(item_json, ?1) IS NOT NULL AND CAST(json_extract(item_json, ?1) AS INTEGER) >= 0",
            table.replace('"', "\"\"")
        );
        let path = format!("$.\"{attribute}\".N");
        let first: Option<i64> = connection.query_row(&sql, [path], |row| row.get(0))?;
        earliest = [earliest, first].into_iter().flatten().min();
    }
    Ok(earliest)
}
