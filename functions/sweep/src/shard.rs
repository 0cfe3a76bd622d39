//! Going through one shard, who has waited longest first.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::id::{ClientId, CoachId};
use futures::future::FutureExt;
use futures::stream::{self, StreamExt};
use outbound::sweep::ShardOrder;
use runtime::{BoxError, Metric, Unit, add, error_chain};
use store::StoreError;
use store::sweep::{Because, Due, Judged, Rulebook};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use crate::App;

/// Who is read of the index at once. Coaches' rules are read once for all of them.
const PAGE: i32 = 100;
/// Clients that are judged at once.
pub(crate) const CONCURRENT: usize = 32;
/// How long one call goes through a shard before it leaves the rest to another: half of the function's time-out.
const TIME: Duration = Duration::from_secs(60);

/// Clients that were judged, events that were told, clients and coaches that could not be judged.
const JUDGED: Metric = Metric::new("sweep_judged", Unit::Count);
const TOLD: Metric = Metric::new("sweep_told", Unit::Count);
const FAILED: Metric = Metric::new("sweep_failed", Unit::Count);

/// What came of a part of a sweep.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) judged: u64,
    pub(crate) told: u64,
    pub(crate) failed: u64,
    /// Something is left that there was no time for.
    pub(crate) is_cut: bool,
}

impl Tally {
    pub(crate) const FAILED: Self = Self { judged: 0, told: 0, failed: 1, is_cut: false };

    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            judged: self.judged + other.judged,
            told: self.told + other.told,
            failed: self.failed + other.failed,
            is_cut: self.is_cut || other.is_cut,
        }
    }

    pub(crate) fn sum(parts: Vec<Self>) -> Self {
        parts.into_iter().fold(Self::default(), Self::add)
    }

    /// One client. A failure is logged here; whoever failed stays due.
    pub(crate) fn of(result: &Result<Judged, BoxError>, client: &str) -> Self {
        match result {
            Ok(Judged::Told(told)) => Self { judged: 1, told: *told as u64, ..Self::default() },
            Ok(Judged::NotDue) => Self::default(),
            Err(error) => {
                tracing::error!(client_id = client, error = error_chain(&**error), "a client could not be judged");
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

    async fn judge(&self, client: &ClientId, coach: &CoachId) -> Result<Judged, StoreError> {
        let cell = self.cell(coach).await;
        let rules = cell.get_or_try_init(|| self.app.sweeper.rulebook(coach, self.app.now())).await?;
        self.app.sweeper.judge(client, rules, Because::Due).await
    }
}

impl App {
    /// What comes of judging a client, once it is one of few. One that makes it panic, by a fault of ours, keeps nobody else from being
    /// judged.
    pub(crate) async fn judged(
        &self,
        work: impl Future<Output = Result<Judged, StoreError>>,
    ) -> Result<Judged, BoxError> {
        let _one_of_few = self.judging.acquire().await?;
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(judged) => Ok(judged?),
            Err(_) => Err("judging it panicked".into()),
        }
    }

    /// Judges all of a shard who are due now.
    pub(crate) async fn sweep(&self, shard: u8) -> Result<(), BoxError> {
        let (now, until) = (self.now(), Instant::now() + TIME);
        let mut tally = Tally::default();
        let mut start = None;
        loop {
            let (due, next) = self.sweeper.due(shard, now, PAGE, start).await?;
            tally = tally.add(self.sweep_page(due, until).await);
            start = next;
            if start.is_none() {
                break;
            }
            if Instant::now() >= until {
                tally.is_cut = true;
                break;
            }
        }
        for (metric, count) in [(JUDGED, tally.judged), (TOLD, tally.told), (FAILED, tally.failed)] {
            add(metric, count as f64);
        }
        if tally.is_cut {
            self.queue.send(ShardOrder { shard }).await?;
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
            Due::Client(client, coach) => {
                Tally::of(&self.judged(rulebooks.judge(&client, &coach)).await, client.as_str())
            }
            Due::Coach(coach) => self.pass(&coach, until).await,
            Due::Unreadable(key) => {
                tracing::error!(key, "an entry of the due index cannot be read");
                Tally::FAILED
            }
        }
    }
}
