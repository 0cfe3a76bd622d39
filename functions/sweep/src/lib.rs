//! The sweep: evaluates due clients under their coach's automations on computed events. Nothing else evaluates them.
//!
//! The schedule's call reads the oldest due time of each shard of the due index, reports the lag, and enqueues each
//! shard with a due client. A look at a shard with nobody due costs half a read unit and sends no message. A message's
//! call sweeps its shard within a time limit, and enqueues the shard again if clients are left. A client that was not
//! reached, or failed, stays due: the next call finds it. Each client is written in one transaction.

mod invocation;
mod pass;
mod shard;

use std::sync::Arc;

use domain::time::Timestamp;
use evaluation::Evaluator;
use futures::future::{BoxFuture, FutureExt, join_all};
use lambda_runtime::LambdaEvent;
use outbound::queue::Queue;
use outbound::sweep::ShardOrder;
use runtime::{BoxError, Clock, Environment, Metric, Observer, Unit, add, error_chain};
use store::Db;
use store::client::ClientLookup;
use store::shard::SHARDS;
use store::vault::Vault;
use store::watch::Watches;

pub use invocation::Invocation;

/// Time for which the longest-waiting client has been due.
const SWEEP_LAG_S: Metric = Metric::new("sweep_lag_s", Unit::Seconds);

/// A started sweep.
pub struct App {
    clock: Arc<dyn Clock>,
    watches: Watches,
    clients: ClientLookup,
    evaluator: Evaluator,
    queue: Queue,
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
            clients: ClientLookup::new(env, &db)?,
            evaluator: Evaluator::new(env, &db, &vault)?,
            queue: Queue::new(env, "SWEEP_QUEUE_URL")?,
            observer: env.observer(),
        })
    }

    /// Handles the schedule's call, or sweeps the shards of a batch.
    ///
    /// The future is boxed, so that this crate is compiled once, and not again in each program that runs it.
    pub fn handle(&self, event: LambdaEvent<Invocation>) -> BoxFuture<'_, Result<(), BoxError>> {
        let LambdaEvent { payload, context } = event;
        async move { self.observer.event(&context.request_id, self.take(payload)).await }.boxed()
    }

    async fn take(&self, invocation: Invocation) -> Result<(), BoxError> {
        match invocation {
            Invocation::Scheduled { .. } => self.enqueue_due_shards().await,
            Invocation::Shards(batch) => {
                for message in batch.records {
                    // A malformed message is dropped: it would be redelivered for ever.
                    match ShardOrder::read(message.body.as_deref().unwrap_or_default()) {
                        Ok(order) => self.sweep(order.shard).await?,
                        Err(error) => tracing::error!(error = error_chain(&error), "a message names no shard"),
                    }
                }
                Ok(())
            }
        }
    }

    /// Enqueues the shards with a due client, and reports the lag. A shard that fails does not stop the others.
    async fn enqueue_due_shards(&self) -> Result<(), BoxError> {
        let now = self.now();
        let oldest = join_all((0..SHARDS).map(|shard| self.enqueue_if_due(shard, now))).await;
        // The lag of an unreadable shard is unknown. No value is reported then, and the alarm treats that as the worst
        // case.
        let oldest = oldest.into_iter().collect::<Result<Vec<_>, _>>()?;
        let lag_s = oldest.iter().flatten().min().map_or(0, |since| (now.ms() - since.ms()).max(0) / 1000);
        add(SWEEP_LAG_S, lag_s as f64);
        Ok(())
    }

    /// Enqueues a shard if it has a due client. Returns the oldest due time.
    async fn enqueue_if_due(&self, shard: u8, now: Timestamp) -> Result<Option<Timestamp>, BoxError> {
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
