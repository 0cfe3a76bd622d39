//! Entries that the stream has not published. The schedule finds them through the index of unsent entries.

use chrono::TimeDelta;
use domain::time::Timestamp;
use futures::future::join_all;
use runtime::{BoxError, Metric, Unit, add, error_chain};
use store::outbox::Entry;
use store::shard::SHARDS;

use crate::App;

/// The age of the oldest entry that is unsent and past its hold time.
const OUTBOX_LAG_S: Metric = Metric::new("outbox_lag_s", Unit::Seconds);
/// Time that the stream has for an entry before the schedule publishes it.
const GRACE: TimeDelta = TimeDelta::seconds(60);
const ROUND_ENTRIES: i32 = 100;
/// Limit of rounds per run and shard. The next run continues.
const MAX_ROUNDS: usize = 10;

/// The result of publishing a shard.
#[derive(Default)]
struct ShardResult {
    /// Entries that failed.
    failed: usize,
    /// Time since which the oldest entry has been waiting, overdue or not.
    oldest: Option<Timestamp>,
}

impl App {
    /// Publishes the overdue entries of all shards.
    pub(crate) async fn publish_unsent(&self) -> Result<(), BoxError> {
        let now = self.now();
        if !self.outbox.has_unsent().await? {
            add(OUTBOX_LAG_S, 0.0);
            return Ok(());
        }
        // A shard that fails does not stop the others.
        let shards = join_all((0..SHARDS).map(|shard| self.publish_shard(shard, now))).await;
        // The lag of an unreadable shard is unknown. No value is reported then, and the alarm treats that as the worst
        // case.
        let shards = shards.into_iter().collect::<Result<Vec<_>, _>>()?;
        let oldest = shards.iter().filter_map(|shard| shard.oldest).min();
        add(OUTBOX_LAG_S, oldest.map_or(0, |since| (now.ms() - since.ms()) / 1000) as f64);
        let failed: usize = shards.iter().map(|shard| shard.failed).sum();
        if failed == 0 { Ok(()) } else { Err(format!("{failed} overdue entries were not sent").into()) }
    }

    /// Publishes the overdue entries of one shard.
    async fn publish_shard(&self, shard: u8, now: Timestamp) -> Result<ShardResult, BoxError> {
        let overdue = now + -GRACE;
        let (mut result, mut start) = (ShardResult::default(), None);
        for _ in 0..MAX_ROUNDS {
            // Starts where the last round ended: failed entries stay in the index and must not hold up the rest.
            let (unsent, next) = self.outbox.unsent(shard, now, ROUND_ENTRIES, start).await?;
            result.oldest = result.oldest.or(unsent.first().map(|(_, since)| *since));
            let found = unsent.len();
            let ids: Vec<String> = unsent.into_iter().filter(|(_, since)| *since < overdue).map(|(id, _)| id).collect();
            let mut entries: Vec<Entry> = Vec::with_capacity(ids.len());
            for (id, got) in ids.iter().zip(join_all(ids.iter().map(|id| self.outbox.get(id))).await) {
                match got {
                    // The index may be stale: an entry may be held by now.
                    Ok(entry) => entries.extend(entry.filter(|entry| entry.send_after < overdue)),
                    Err(error) => {
                        tracing::error!(entry_id = id, error = error_chain(&error), "an entry cannot be read");
                        result.failed += 1;
                    }
                }
            }
            result.failed += self.publish(&entries).await.iter().filter(|published| published.is_err()).count();
            start = next;
            if start.is_none() || ids.len() < found {
                break;
            }
        }
        Ok(result)
    }
}
