//! Sweeps one shard, longest-due clients first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::id::{ClientId, CoachId};
use evaluation::{CONCURRENT, Evaluated, Rulebook};
use futures::stream::{self, StreamExt};
use outbound::sweep::ShardOrder;
use runtime::{BoxError, Metric, Unit, add, error_chain};
use store::watch::{Due, DuePage};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use crate::App;

/// Entries of the due index per page. A coach's rules are read once per page.
const PAGE: i32 = 100;
/// Time limit of one call, half of the function's time-out. The rest of the shard is left to another call.
const TIME: Duration = Duration::from_secs(60);

/// Clients that were evaluated, events that were emitted, clients and coaches whose evaluation failed.
const EVALUATED: Metric = Metric::logged("sweep_evaluated", Unit::Count);
const EMITTED: Metric = Metric::logged("sweep_emitted", Unit::Count);
const FAILED: Metric = Metric::logged("sweep_failed", Unit::Count);

/// The counts of a part of a sweep.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) evaluated: u64,
    pub(crate) emitted: u64,
    pub(crate) failed: u64,
    /// True if time ran out with clients left.
    pub(crate) is_out_of_time: bool,
}

impl Tally {
    pub(crate) const FAILED: Self = Self { evaluated: 0, emitted: 0, failed: 1, is_out_of_time: false };

    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            evaluated: self.evaluated + other.evaluated,
            emitted: self.emitted + other.emitted,
            failed: self.failed + other.failed,
            is_out_of_time: self.is_out_of_time || other.is_out_of_time,
        }
    }

    pub(crate) fn sum(parts: Vec<Self>) -> Self {
        parts.into_iter().fold(Self::default(), Self::add)
    }

    /// The counts of one client. A failure is logged here, and the client stays due.
    pub(crate) fn of(result: &Result<Evaluated, BoxError>, client: &str) -> Self {
        match result {
            Ok(Evaluated::Emitted(count)) => Self { evaluated: 1, emitted: *count as u64, ..Self::default() },
            Ok(Evaluated::NotDue) => Self::default(),
            Err(error) => {
                tracing::error!(client_id = client, error = error_chain(&**error), "the evaluation of a client failed");
                Self::FAILED
            }
        }
    }
}

/// The rules of the coaches of a page, each read once.
struct Rulebooks<'a> {
    app: &'a App,
    read: Mutex<HashMap<CoachId, Arc<OnceCell<Rulebook>>>>,
}

impl Rulebooks<'_> {
    async fn cell(&self, coach: &CoachId) -> Arc<OnceCell<Rulebook>> {
        Arc::clone(self.read.lock().await.entry(coach.clone()).or_default())
    }

    async fn evaluate(&self, client: &ClientId, coach: &CoachId) -> Result<Evaluated, BoxError> {
        let cell = self.cell(coach).await;
        let read = || self.app.evaluator.rulebook(coach, self.app.now());
        self.app.evaluator.evaluate(client, cell.get_or_try_init(read).await?).await
    }
}

impl App {
    /// Evaluates all due clients of a shard.
    pub(crate) async fn sweep(&self, shard: u8) -> Result<(), BoxError> {
        let (now, until) = (self.now(), Instant::now() + TIME);
        let mut tally = Tally::default();
        let mut start = None;
        loop {
            let DuePage { due, next } = self.watches.due(shard, now, PAGE, start).await?;
            tally = tally.add(self.sweep_page(due, until).await);
            start = next;
            if start.is_none() {
                break;
            }
            if Instant::now() >= until {
                tally.is_out_of_time = true;
                break;
            }
        }
        for (metric, count) in [(EVALUATED, tally.evaluated), (EMITTED, tally.emitted), (FAILED, tally.failed)] {
            add(metric, count as f64);
        }
        if tally.is_out_of_time {
            self.queue.send(ShardOrder { shard }.message(), 0).await?;
        }
        Ok(())
    }

    async fn sweep_page(&self, due: Vec<Due>, until: Instant) -> Tally {
        let rulebooks = Rulebooks { app: self, read: Mutex::default() };
        let work: Vec<_> = due.into_iter().map(|due| self.sweep_one(due, &rulebooks, until)).collect();
        Tally::sum(stream::iter(work).buffer_unordered(CONCURRENT).collect().await)
    }

    async fn sweep_one(&self, due: Due, rulebooks: &Rulebooks<'_>, until: Instant) -> Tally {
        match due {
            Due::Client { id, coach_id } => Tally::of(&rulebooks.evaluate(&id, &coach_id).await, id.as_str()),
            Due::Coach(coach) => self.pass(&coach, until).await,
            Due::Unreadable(key) => {
                tracing::error!(key, "an entry of the due index cannot be read");
                Tally::FAILED
            }
        }
    }
}
