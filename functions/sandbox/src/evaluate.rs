//! `POST /v1/test/evaluate`: evaluates the workspace's due clients now, as a sweep would.

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::sandbox::{EvaluationResult, MAX_EVALUATED};
use edge::{Inbound, KeyHolder, Problem, Reply, Steps};
use evaluation::Evaluated;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::App;

/// Clients that are looked at together.
const PAGE: u32 = 50;
/// Most pages of a request. A client that is not due costs one read.
const MAX_PAGES: usize = 20;
/// Clients that are evaluated at once.
const CONCURRENT: usize = 16;

pub(crate) struct Evaluate;

impl Steps for Evaluate {
    type App = App;
    type Caller = KeyHolder;

    async fn run(app: &App, caller: &KeyHolder, inbound: &Inbound) -> Result<Reply, Problem> {
        inbound.refuse_fields()?;
        let coach = &caller.key.coach_id;
        let rules = app.evaluator.rulebook(coach, caller.now).await?;
        let (evaluated, events) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let evaluate = async |client| {
            if evaluated.load(Ordering::Relaxed) >= MAX_EVALUATED {
                return Ok(());
            }
            let outcome = app.evaluator.evaluate(&client, &rules).await;
            if let Evaluated::Emitted(count) = outcome.map_err(|error| Problem::internal("evaluate a client", error))? {
                evaluated.fetch_add(1, Ordering::Relaxed);
                events.fetch_add(count, Ordering::Relaxed);
            }
            Ok::<(), Problem>(())
        };
        let mut after = None;
        let mut more = true;
        for _ in 0..MAX_PAGES {
            let page = app.clients.active_page(coach, after.as_deref(), PAGE).await?;
            let work: Vec<_> = page.items.into_iter().map(&evaluate).collect();
            stream::iter(work).buffer_unordered(CONCURRENT).try_collect::<()>().await?;
            let is_full = evaluated.load(Ordering::Relaxed) >= MAX_EVALUATED;
            after = page.next;
            more = is_full || after.is_some();
            if is_full || after.is_none() {
                break;
            }
        }
        Reply::ok(&EvaluationResult { evaluated: evaluated.into_inner(), events: events.into_inner(), more })
    }
}
