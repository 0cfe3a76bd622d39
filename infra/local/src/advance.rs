//! Moves the clock forward in steps: settle, jump to the next due time, settle, and so on. Everything that becomes due
//! on the way happens in order and at its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use local_aws::{Aws, StoreError};
use runtime::Clock;
use tokio::sync::Mutex;

use crate::clock::{ClockError, StackClock};
use crate::environments::Pool;
use crate::schedule::Schedules;
use crate::settle::{Reader, SettleError, settle};
use crate::work::Work;

/// Interval in stack time at which expired items are deleted while the clock moves.
const TTL_SWEEP_EVERY: TimeDelta = TimeDelta::hours(1);
/// Interval at which expired items and idle environments are dropped while the clock does not move.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(60);
/// Delay before due times are read again after a change, since changes come by the thousand.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Interval between log lines while the clock moves.
const LOG_EVERY: Duration = Duration::from_secs(2);

/// The clock with everything that depends on it.
pub struct Timeline {
    /// Stack time.
    pub clock: Arc<StackClock>,
    /// The AWS endpoint: queues with delayed messages, tables with expiring items.
    pub aws: Aws,
    /// Schedules.
    pub schedules: Schedules,
    /// The count of running invocations by events.
    pub work: Work,
    /// Streams that functions consume.
    pub readers: Vec<Reader>,
    /// Pools, whose idle environments are dropped.
    pub pools: Vec<Arc<Pool>>,
    /// Held while the clock moves, so that only one advance runs at a time.
    pub advancing: Mutex<()>,
}

/// The reason why the clock did not reach its target.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    /// The stack did not settle on the way.
    #[error(transparent)]
    Settle(#[from] SettleError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The clock refused the new offset.
    #[error(transparent)]
    Clock(#[from] ClockError),
}

impl Timeline {
    /// Waits until nothing is left to do at the current time.
    pub async fn settle(&self) -> Result<(), SettleError> {
        settle(&self.aws, &self.work, &self.readers).await
    }

    /// Moves the clock forward and returns the new time once nothing due is left to do.
    pub async fn advance(&self, by: TimeDelta) -> Result<DateTime<Utc>, AdvanceError> {
        let _advancing = self.advancing.lock().await;
        let target_ms = self.clock.offset_ms().saturating_add(by.num_milliseconds());
        // Checked before the first step, so that an invalid target moves nothing.
        StackClock::check_offset(target_ms)?;
        self.settle().await?;
        let mut swept_at = self.clock.now();
        let mut logged = Instant::now();
        loop {
            let message = self.aws.sqs().next_due().await?;
            let schedule = self.schedules.next_due();
            let Some(due) = message.into_iter().chain(schedule).min() else { break };
            let offset_ms = (due - self.clock.base()).num_milliseconds();
            if offset_ms > target_ms {
                break;
            }
            self.clock.set_offset_ms(offset_ms)?;
            let now = self.clock.now();
            if logged.elapsed() >= LOG_EVERY {
                logged = Instant::now();
                let hours_left = TimeDelta::milliseconds(target_ms - offset_ms).num_hours();
                tracing::info!(hours_left, "the clock is moving");
            }
            self.schedules.fire_due(now, &self.work);
            if message.is_some_and(|message| message <= now) {
                self.aws.notify();
            }
            if now - swept_at >= TTL_SWEEP_EVERY {
                self.aws.dynamodb().sweep_ttl().await?;
                swept_at = now;
            }
            self.settle().await?;
        }
        self.clock.set_offset_ms(target_ms)?;
        self.schedules.fire_due(self.clock.now(), &self.work);
        self.aws.dynamodb().sweep_ttl().await?;
        self.aws.notify();
        self.settle().await?;
        Ok(self.clock.now())
    }

    /// Runs whatever becomes due in real time, until the stack ends. Sleeps while nothing is due.
    pub async fn run(&self) {
        let mut changes = self.aws.changes();
        let mut last_housekeeping = tokio::time::Instant::now();
        loop {
            changes.borrow_and_update();
            let due = match self.aws.sqs().next_due().await {
                Ok(message) => message.into_iter().chain(self.schedules.next_due()).min(),
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::error!(%error, "cannot read due times");
                    None
                }
            };
            let housekeeping = HOUSEKEEPING_EVERY.saturating_sub(last_housekeeping.elapsed());
            let wait = due.map_or(housekeeping, |due| {
                // Plus one millisecond, since the clock counts whole milliseconds.
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
                self.aws.notify();
            }
            if last_housekeeping.elapsed() >= HOUSEKEEPING_EVERY {
                last_housekeeping = tokio::time::Instant::now();
                self.pools.iter().for_each(|pool| pool.drop_idle());
                if let Err(error) = self.aws.dynamodb().sweep_ttl().await {
                    tracing::error!(%error, "cannot delete expired items");
                }
            }
        }
    }
}
