//! `POST /v1/test/evaluate`: evaluates the workspace's due clients now, as a sweep would.

use domain::id::ClientId;
use domain::sandbox::{EvaluationResult, MAX_EVALUATED};
use edge::{Inbound, KeyHolder, Problem, Reply, Steps};
use evaluation::Evaluated;
use futures::future::try_join_all;

use crate::App;

/// Clients that are looked at together.
const PAGE: u32 = 50;
/// Most pages of a request. A client that is not due costs one read.
const MAX_PAGES: usize = 100;
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
        let evaluate = async |client: ClientId| match app.evaluator.evaluate(&client, &rules).await {
            Ok(Evaluated::Emitted(events)) => Ok((1, events)),
            Ok(Evaluated::NotDue) => Ok((0, 0)),
            Err(error) => Err(Problem::internal("evaluate a client", error)),
        };
        let (mut evaluated, mut events) = (0, 0);
        let (mut after, mut more) = (None, true);
        for _ in 0..MAX_PAGES {
            let page = app.clients.active_page(coach, after.as_deref(), PAGE).await?;
            let mut left = page.items;
            while !left.is_empty() && evaluated < MAX_EVALUATED {
                let next = left.drain(..left.len().min(CONCURRENT).min(MAX_EVALUATED - evaluated));
                for (one, emitted) in try_join_all(next.map(&evaluate)).await? {
                    evaluated += one;
                    events += emitted;
                }
            }
            after = page.next;
            more = !left.is_empty() || after.is_some();
            if evaluated == MAX_EVALUATED || !more {
                break;
            }
        }
        Reply::ok(&EvaluationResult { evaluated, events, more })
    }
}
