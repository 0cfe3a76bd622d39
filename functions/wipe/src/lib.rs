//! The removal of a workspace's test data, in a sandbox. A live stack does not deploy the function.
//!
//! A message asks for one part of a removal, for a limited time, and its call sends the message for the next part.
//! First the facts about the workspace's clients are made to wait, as its other facts and its requests do. The removal
//! begins once everything that was under way by then has ended. One call at a time works on a workspace: a lease in the
//! workspace's record says until when. Then the first contents are laid again, and writes are taken.
//!
//! The schedule's call starts the removal for workspaces whose keys are not used any more.

mod invocation;

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::fact_time::FactTime;
use domain::sandbox::{MAX_UNUSED, SETTLING, reset};
use domain::time::Timestamp;
use futures::future::{BoxFuture, FutureExt};
use lambda_runtime::LambdaEvent;
use outbound::wipe::{WipeOrder, WipeQueue};
use runtime::{BoxError, Clock, Environment, Observer, error_chain, note_each};
use store::first_contents::FirstContentsWriter;
use store::key::Keys;
use store::test_data::{Removal, TestData};
use store::unit::{Commit, Once, Unit, Units};
use store::vault::Vault;
use store::watch::{DueMark, Watches};
use store::workspace::{StoredWorkspace, Wipe, WipeStage, Workspaces};
use store::{Db, StoreError, retry};

pub use invocation::Invocation;

/// Time limit of a part.
const PART: Duration = Duration::from_secs(10);
/// Lease of a call: longer than the function's time-out.
const LEASE: chrono::TimeDelta = chrono::TimeDelta::seconds(30);
/// Wait for another call, or for the relay.
const WAIT_S: i32 = 5;

/// A started wipe.
pub struct App {
    clock: Arc<dyn Clock>,
    workspaces: Workspaces,
    keys: Keys,
    data: TestData,
    contents: FirstContentsWriter,
    watches: Watches,
    units: Units,
    queue: WipeQueue,
    observer: Observer,
}

impl App {
    /// Connects to everything that a removal reads and writes.
    pub async fn new(env: &Environment) -> Result<Self, BoxError> {
        let db = Db::new(env);
        let vault = Vault::open(env).await?;
        Ok(Self {
            clock: env.clock(),
            workspaces: Workspaces::new(env, &db)?,
            keys: Keys::new(env, &db)?,
            data: TestData::new(env, &db, &vault)?,
            contents: FirstContentsWriter::new(env, &db)?,
            watches: Watches::new(env, &db)?,
            units: Units::new(env, &db, &vault)?,
            queue: WipeQueue::new(env, &db)?,
            observer: env.observer(),
        })
    }

    /// Handles the schedule's call, or the orders of a batch.
    ///
    /// The future is boxed, so that this crate is compiled once, and not again in each program that runs it.
    pub fn handle(&self, event: LambdaEvent<Invocation>) -> BoxFuture<'_, Result<(), BoxError>> {
        let LambdaEvent { payload, context } = event;
        async move { self.observer.event(&context.request_id, self.take(payload)).await }.boxed()
    }

    async fn take(&self, invocation: Invocation) -> Result<(), BoxError> {
        match invocation {
            Invocation::Scheduled { .. } => self.wipe_unused().await,
            Invocation::Orders(batch) => {
                for message in batch.records {
                    // A malformed message is dropped: it would be redelivered for ever.
                    match WipeOrder::read(message.body.as_deref().unwrap_or_default()) {
                        Ok(order) => self.work(&order).await?,
                        Err(error) => tracing::error!(error = error_chain(&error), "a message names no removal"),
                    }
                }
                Ok(())
            }
        }
    }

    /// Starts the removal for workspaces whose keys are not used any more. One that fails does not stop the others.
    async fn wipe_unused(&self) -> Result<(), BoxError> {
        let now = self.now();
        for (coach, used_at) in self.data.unused(now + -MAX_UNUSED).await? {
            let Some(found) = self.workspaces.get(&coach).await? else { continue };
            // Nothing has been written since the last removal.
            if found.wipe.is_some_and(|wipe| wipe.begun_at > used_at) {
                continue;
            }
            let coach_id = coach.as_str();
            match self.queue.start(&coach, now).await {
                Ok(_) => tracing::info!(coach_id, "started the removal of unused test data"),
                Err(error) => tracing::error!(coach_id, error = error_chain(&*error), "could not start a removal"),
            }
        }
        Ok(())
    }

    /// Does the next part of a removal, and orders the part after it.
    async fn work(&self, order: &WipeOrder) -> Result<(), BoxError> {
        note_each("coach_ids", order.coach_id.as_str());
        let now = self.now();
        let Some(found) = self.workspaces.get(&order.coach_id).await? else { return Ok(()) };
        let Some(wipe) = found.wipe.clone().filter(|wipe| wipe.job == order.job) else { return Ok(()) };
        if wipe.stage == WipeStage::Done {
            return Ok(());
        }
        if let Some(settled_at) = wipe.closed_at.map(|at| at + SETTLING).filter(|at| *at > now) {
            let wait_s = (settled_at.ms() - now.ms()) / 1_000 + 1;
            return self.queue.send(order, i32::try_from(wait_s)?).await;
        }
        let leased = Wipe { busy_until: Some(now + LEASE), ..wipe.clone() };
        let is_free = wipe.busy_until.is_none_or(|until| until <= now);
        let held = if is_free { self.workspaces.set_wipe(&found, &leased).await? } else { None };
        let Some(held) = held else { return self.queue.send(order, WAIT_S).await };
        match wipe.stage {
            WipeStage::Removing if wipe.closed_at.is_none() => self.close(order, &held, &leased, now).await,
            WipeStage::Removing => self.remove(order, &held, &leased, now).await,
            WipeStage::Opening => self.open(order, &leased, now).await,
            WipeStage::Done => Ok(()),
        }
    }

    /// Makes the requests with the workspace's keys be refused, whatever came of the call that started the removal, and
    /// the facts of its clients wait. The other facts wait already.
    async fn close(
        &self,
        order: &WipeOrder,
        held: &StoredWorkspace,
        leased: &Wipe,
        now: Timestamp,
    ) -> Result<(), BoxError> {
        self.keys.copy_entitlements(held, now).await?;
        let is_closed = self.data.close(&order.coach_id, Instant::now() + PART).await?;
        let closed_at = is_closed.then(|| self.now());
        self.release(order, leased, Wipe { closed_at, ..leased.clone() }).await?;
        self.queue.send(order, 0).await
    }

    async fn remove(
        &self,
        order: &WipeOrder,
        held: &StoredWorkspace,
        leased: &Wipe,
        now: Timestamp,
    ) -> Result<(), BoxError> {
        let removal = self.data.remove(&order.coach_id, now, Instant::now() + PART).await?;
        let (stage, delay_s) = match removal {
            Removal::Done => {
                self.contents.lay(&held.workspace).await?;
                // The automations are gone.
                let rules = self.watches.change_rules(&order.coach_id, DueMark { now, silent: false });
                self.units.commit(Unit::new().write([rules]), Once::ByVersion, now).await?;
                (WipeStage::Opening, 0)
            }
            Removal::Continues => (WipeStage::Removing, 0),
            Removal::Waits => (WipeStage::Removing, WAIT_S),
        };
        self.release(order, leased, Wipe { stage, ..leased.clone() }).await?;
        self.queue.send(order, delay_s).await
    }

    /// Resets the workspace's switches, and lets writes in again. Facts that waited are newer.
    async fn open(&self, order: &WipeOrder, leased: &Wipe, now: Timestamp) -> Result<(), BoxError> {
        retry("a workspace", || async {
            let Some(found) = self.workspaces.get(&order.coach_id).await? else { return Ok(Some(())) };
            let writes = self.workspaces.change(&found, &reset(found.workspace.clone()), FactTime::from_ms(0));
            let commit = self.units.commit(Unit::new().write(writes), Once::ByVersion, now).await?;
            Ok::<_, StoreError>(matches!(commit, Commit::Done).then_some(()))
        })
        .await?;
        if let Some(stored) = self.workspaces.get(&order.coach_id).await? {
            self.keys.copy_entitlements(&stored, now).await?;
        }
        Ok(self.release(order, leased, Wipe { stage: WipeStage::Done, ..leased.clone() }).await?)
    }

    /// Ends the lease of this call, and sets the state of the removal. Without the lease it sets nothing.
    async fn release(&self, order: &WipeOrder, leased: &Wipe, state: Wipe) -> Result<(), StoreError> {
        let released = Wipe { busy_until: None, ..state };
        retry("a removal of test data", || async {
            match self.workspaces.get(&order.coach_id).await? {
                Some(found) if found.wipe.as_ref() == Some(leased) => {
                    Ok(self.workspaces.set_wipe(&found, &released).await?.map(drop))
                }
                Some(_) | None => Ok(Some(())),
            }
        })
        .await
    }

    fn now(&self) -> Timestamp {
        Timestamp::new(self.clock.now())
    }
}
