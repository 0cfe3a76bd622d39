//! Moving the clock forward: settle, go to the next due time, settle, and so on, so that everything that would have happened in
//! between happens, in order and at its time.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use local_aws::{Aws, StoreError};
use runtime::Clock;
use tokio::sync::Mutex;

use crate::clock::{ClockError, StackClock};
use crate::environments::Pool;
use crate::progress::Progress;
use crate::schedule::Schedules;
use crate::settle::{Reader, SettleError, settle};
use crate::work::Work;

/// Expired items are removed at least this often in stack time while the clock moves.
const SWEEP_EVERY: TimeDelta = TimeDelta::hours(1);
/// .. and this often while it does not.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(60);
/// After a change, due times are looked at again no sooner than this: changes come by the thousand.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Everything that happens because time passes.
pub struct Timeline {
    /// Stack time.
    pub clock: Arc<StackClock>,
    /// Queues with delayed messages, tables with expiring items.
    pub aws: Aws,
    /// Schedules.
    pub schedules: Schedules,
    /// Invocations by events.
    pub work: Work,
    /// Streams that functions read.
    pub readers: Vec<Reader>,
    /// Pools, for their idle environments.
    pub pools: Vec<Arc<Pool>>,
    /// Held while the clock moves: one journey at a time.
    pub journey: Mutex<()>,
}

/// Why the clock did not get where it was to go.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    /// Something on the way did not settle.
    #[error(transparent)]
    Settle(#[from] SettleError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The clock cannot go there.
    #[error(transparent)]
    Clock(#[from] ClockError),
}

impl Timeline {
    /// Answers when nothing is left to do now.
    pub async fn settle(&self) -> Result<(), SettleError> {
        settle(&self.aws, &self.work, &self.readers).await
    }

    /// Moves the clock forward and answers the new time once nothing due is left to do.
    pub async fn advance(&self, by: TimeDelta) -> Result<DateTime<Utc>, AdvanceError> {
        let _journey = self.journey.lock().await;
        let start_ms = self.clock.offset_ms();
        let target_ms = start_ms.saturating_add(by.num_milliseconds());
        // Before the first step, not once the journey has got there.
        StackClock::can_be_ahead(target_ms)?;
        self.settle().await?;
        let mut swept_at = self.clock.now();
        let mut progress = Progress::new("clock, hours", by.num_hours().unsigned_abs());
        loop {
            let message = self.aws.sqs().next_due().await?;
            let schedule = self.schedules.next_due();
            let Some(due) = message.into_iter().chain(schedule).min() else { break };
            let offset_ms = (due - self.clock.real_now()).num_milliseconds();
            if offset_ms > target_ms {
                break;
            }
            self.clock.set_offset_ms(offset_ms)?;
            let now = self.clock.now();
            let moved = TimeDelta::milliseconds(offset_ms - start_ms);
            progress.show(moved.num_hours().unsigned_abs(), &now.format("%F %T").to_string());
            self.schedules.fire_due(now, &self.work);
            if message.is_some_and(|message| message <= now) {
                self.aws.poke();
            }
            if now - swept_at >= SWEEP_EVERY {
                self.aws.dynamodb().sweep_ttl().await?;
                swept_at = now;
            }
            self.settle().await?;
        }
        self.clock.set_offset_ms(target_ms)?;
        self.schedules.fire_due(self.clock.now(), &self.work);
        self.aws.dynamodb().sweep_ttl().await?;
        self.aws.poke();
        self.settle().await?;
        Ok(self.clock.now())
    }

    /// Does what becomes due at the clock's own pace, until the stack ends. Sleeps while nothing is.
    pub async fn run(&self) {
        let mut changes = self.aws.changes();
        let mut kept_house_at = tokio::time::Instant::now();
        loop {
            changes.borrow_and_update();
            let due = match self.aws.sqs().next_due().await {
                Ok(message) => message.into_iter().chain(self.schedules.next_due()).min(),
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::error!(%error, "due times cannot be read");
                    None
                }
            };
            let housekeeping = HOUSEKEEPING_EVERY.saturating_sub(kept_house_at.elapsed());
            let wait = due.map_or(housekeeping, |due| {
                // One millisecond more: the clock counts whole ones.
                let until = (due - self.clock.now()).to_std().unwrap_or_default() + Duration::from_millis(1);
                until.min(housekeeping)
            });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep(DEBOUNCE).await;
                }
            }
            let now = self.clock.now();
            self.schedules.fire_due(now, &self.work);
            if due.is_some_and(|due| due <= now) {
                self.aws.poke();
            }
            if kept_house_at.elapsed() >= HOUSEKEEPING_EVERY {
                kept_house_at = tokio::time::Instant::now();
                self.pools.iter().for_each(|pool| pool.drop_idle());
                if let Err(error) = self.aws.dynamodb().sweep_ttl().await {
                    tracing::error!(%error, "expired items cannot be removed");
                }
            }
        }
    }
}
