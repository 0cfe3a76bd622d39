//! The sweep: evaluates the clients that are due under their coach's automations on computed events. Nothing else
//! evaluates them.
//!
//! The schedule's call looks into each shard of the due index, says how late the sweep is, and sends a message for each
//! shard with somebody who is due. A message's call goes through its shard. It has a time, and where that does not
//! suffice sends the message anew. A client that is not reached, or fails, stays due: the next call finds it. Each
//! client is written in one transaction.

mod evaluate;
mod event;
mod pass;
mod rulebook;
mod shard;

use std::sync::Arc;

use domain::time::Timestamp;
use futures::future::join_all;
use lambda_runtime::LambdaEvent;
use outbound::queue::Queue;
use outbound::sweep::ShardOrder;
use runtime::{BoxError, Clock, Environment, Metric, Observer, Unit, add, error_chain};
use store::Db;
use store::client::ClientLookup;
use store::outbox::Outbox;
use store::record::RecordReader;
use store::vault::Vault;
use store::watch::{SHARDS, Watches};
use store::workspace::Workspaces;
use tokio::sync::Semaphore;

pub use event::Event;

/// Time for which the client that has waited longest has been due.
const SWEEP_LAG_S: Metric = Metric::new("sweep_lag_s", Unit::Seconds);

/// A started sweep.
pub struct App {
    clock: Arc<dyn Clock>,
    watches: Watches,
    workspaces: Workspaces,
    clients: ClientLookup,
    records: RecordReader,
    outbox: Outbox,
    queue: Queue,
    /// One permit for each client that is being evaluated, of a page of the index or of a pass.
    evaluating: Semaphore,
    observer: Observer,
}

impl App {
    /// Connects to everything that the sweep uses.
    pub async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        Ok(Self {
            clock: env.clock(),
            watches: Watches::new(env, &db)?,
            workspaces: Workspaces::new(env, &db)?,
            clients: ClientLookup::new(env, &db)?,
            records: RecordReader::new(env, &db)?,
            outbox: Outbox::new(env, &db, &vault)?,
            queue: Queue::new(env, "SWEEP_QUEUE_URL")?,
            evaluating: Semaphore::new(shard::CONCURRENT),
            observer: env.observer(),
        })
    }

    /// Handles the schedule's call, or goes through the shards that messages name.
    pub async fn handle(&self, event: LambdaEvent<Event>) -> Result<(), BoxError> {
        let LambdaEvent { payload, context } = event;
        self.observer.event(&context.request_id, self.take(payload)).await
    }

    async fn take(&self, event: Event) -> Result<(), BoxError> {
        match event {
            Event::Scheduled { .. } => self.look().await,
            Event::Shards(batch) => {
                for message in batch.records {
                    // A message that is no order would come back to no end.
                    match ShardOrder::read(message.body.as_deref().unwrap_or_default()) {
                        Ok(order) => self.sweep(order.shard).await?,
                        Err(error) => tracing::error!(error = error_chain(&error), "a message names no shard"),
                    }
                }
                Ok(())
            }
        }
    }

    /// Finds the shards with somebody who is due, and has them gone through. A shard that fails does not stop the
    /// others.
    async fn look(&self) -> Result<(), BoxError> {
        let now = self.now();
        let looks = join_all((0..SHARDS).map(|shard| self.look_into(shard, now))).await;
        // Of a shard that could not be read the lag is not known: nothing is said then, and the alarm takes that for
        // the worst.
        let looks = looks.into_iter().collect::<Result<Vec<_>, _>>()?;
        let lag_s = looks.iter().flatten().min().map_or(0, |since| (now.ms() - since.ms()).max(0) / 1000);
        add(SWEEP_LAG_S, lag_s as f64);
        Ok(())
    }

    /// Since when the one who has waited longest in a shard has been due.
    async fn look_into(&self, shard: u8, now: Timestamp) -> Result<Option<Timestamp>, BoxError> {
        let since = self.watches.oldest_due(shard, now).await?;
        if since.is_some() {
            self.queue.send(ShardOrder { shard }.message(), 0).await?;
        }
        Ok(since)
    }

    fn now(&self) -> Timestamp {
        Timestamp::new(self.clock.now())
    }
}
