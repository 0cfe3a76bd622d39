//! What the stream has not carried: found by the index of unsent entries, which the schedule goes through.

use chrono::TimeDelta;
use domain::time::Timestamp;
use futures::future::join_all;
use runtime::{BoxError, Metric, Unit, add, error_chain};
use store::outbox::{Entry, SHARDS};

use crate::App;

/// The age of the oldest entry that is unsent and past its hold time.
const OUTBOX_LAG_S: Metric = Metric::new("outbox_lag_s", Unit::Seconds);
/// The stream has had this long.
const GRACE: TimeDelta = TimeDelta::seconds(60);
const ROUND_ENTRIES: i32 = 100;
/// Rounds of one run, for each shard. What is left then is for the next run.
const MAX_ROUNDS: usize = 10;

/// The result of carrying a shard.
#[derive(Default)]
struct Carried {
    /// Entries that failed.
    failed: usize,
    /// Since when the oldest entry waits, overdue or not yet.
    oldest: Option<Timestamp>,
}

impl App {
    /// Carries what is overdue in all shards.
    pub(crate) async fn carry_unsent(&self) -> Result<(), BoxError> {
        let now = self.now();
        if !self.outbox.has_unsent().await? {
            add(OUTBOX_LAG_S, 0.0);
            return Ok(());
        }
        // A shard that fails does not stop the others.
        let shards = join_all((0..SHARDS).map(|shard| self.carry_shard(shard, now))).await;
        // Of a shard that could not be read the lag is not known: nothing is said then, and the alarm takes that for
        // the worst.
        let shards = shards.into_iter().collect::<Result<Vec<_>, _>>()?;
        let oldest = shards.iter().filter_map(|shard| shard.oldest).min();
        add(OUTBOX_LAG_S, oldest.map_or(0, |since| (now.ms() - since.ms()) / 1000) as f64);
        let failed: usize = shards.iter().map(|shard| shard.failed).sum();
        if failed == 0 { Ok(()) } else { Err(format!("{failed} overdue entries were not sent").into()) }
    }

    /// Carries what is overdue in one shard.
    async fn carry_shard(&self, shard: u8, now: Timestamp) -> Result<Carried, BoxError> {
        let overdue = now + -GRACE;
        let (mut carried, mut start) = (Carried::default(), None);
        for _ in 0..MAX_ROUNDS {
            // On from where the last round ended: what fails stays in the index, and must not keep the rest waiting.
            let (unsent, next) = self.outbox.unsent(shard, now, ROUND_ENTRIES, start).await?;
            carried.oldest = carried.oldest.or(unsent.first().map(|(_, since)| *since));
            let found = unsent.len();
            let ids: Vec<String> = unsent.into_iter().filter(|(_, since)| *since < overdue).map(|(id, _)| id).collect();
            let mut entries: Vec<Entry> = Vec::with_capacity(ids.len());
            for (id, got) in ids.iter().zip(join_all(ids.iter().map(|id| self.outbox.get(id))).await) {
                match got {
                    // The index may be behind on what is held back, too.
                    Ok(entry) => entries.extend(entry.filter(|entry| entry.send_after < overdue)),
                    Err(error) => {
                        tracing::error!(entry_id = id, error = error_chain(&error), "an entry cannot be read");
                        carried.failed += 1;
                    }
                }
            }
            carried.failed += self.carry(&entries).await.iter().filter(|result| result.is_err()).count();
            start = next;
            if start.is_none() || ids.len() < found {
                break;
            }
        }
        Ok(carried)
    }
}
