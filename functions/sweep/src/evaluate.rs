//! The evaluation of one client: read, evaluate, commit. Two sweeps that meet at a client commit once; one that dies
//! has committed all of the evaluation or nothing.

use std::panic::AssertUnwindSafe;

use domain::event::Event;
use domain::id::ClientId;
use domain::sweep::{Computed, Evaluation, States, evaluate, reads_from};
use futures::future::FutureExt;
use runtime::BoxError;
use store::StoreError;
use store::retry;
use store::watch::{Evaluated, Observed, Watch};

use crate::App;
use crate::rulebook::Rulebook;

/// The result for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The evaluation is committed, with so many events.
    Emitted(usize),
    /// The client is not due any more, or with another coach, or gone, or was evaluated under newer rules.
    NotDue,
}

impl App {
    /// Evaluates a client that is due, or that was not evaluated under this version of the rules. One that makes the
    /// evaluation panic, by a fault of ours, does not keep other clients from being evaluated.
    pub(crate) async fn evaluate(&self, client: &ClientId, by: &Rulebook) -> Result<Outcome, BoxError> {
        let _one_of_few = self.evaluating.acquire().await?;
        let evaluation = retry("the client's watch", || self.evaluate_once(client, by));
        match AssertUnwindSafe(evaluation).catch_unwind().await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err("the evaluation panicked".into()),
        }
    }

    /// `None`: the client changed meanwhile.
    async fn evaluate_once(&self, client: &ClientId, by: &Rulebook) -> Result<Option<Outcome>, StoreError> {
        let Some(observed) = self.watches.client(client, reads_from(&by.rules, by.as_of)).await? else {
            return Ok(Some(Outcome::NotDue));
        };
        if !is_to_be_evaluated(&observed.watch, by) {
            return Ok(Some(Outcome::NotDue));
        }
        let (watch, Evaluation { emitted, states }) = self.evaluation(client, observed, by).await?;
        let Some(events) = self.events(client, &emitted).await? else { return Ok(Some(Outcome::NotDue)) };
        let count = events.len();
        let evaluated = Evaluated { watch, states, rules_version: by.version, is_watched: by.is_watched(), events };
        let is_committed = self.watches.commit(evaluated, &self.outbox, by.as_of).await?;
        Ok(is_committed.then_some(Outcome::Emitted(count)))
    }

    async fn evaluation(
        &self,
        client: &ClientId,
        observed: Observed,
        by: &Rulebook,
    ) -> Result<(Watch, Evaluation), StoreError> {
        let mut facts = observed.facts(by.zone);
        let mut watch = observed.watch;
        if !watch.is_active {
            // Version 0.1 left inactive clients in the index.
            let states = watch.states.clone();
            return Ok((watch, Evaluation { emitted: Vec::new(), states }));
        }
        if watch.daily_log_deleted {
            facts.last_daily_log_on = self.records.last_logged_date(client).await?;
            watch = watch.with_last_daily_log(facts.last_daily_log_on);
        }
        facts.phases = by.phases(&self.workspaces, watch.programme_id.as_ref()).await?;
        let silent = watch.states.silent || watch.rules_version < by.silent_version;
        let states = States { silent, ..watch.states.clone() };
        let evaluation = evaluate(&facts, &by.rules, &states, watch.due(), by.as_of);
        Ok((watch, evaluation))
    }

    /// The events to be sent; `None` where the client is gone.
    async fn events(&self, client: &ClientId, emitted: &[Computed]) -> Result<Option<Vec<Event>>, StoreError> {
        if emitted.iter().all(|computed| computed.to.is_empty()) {
            return Ok(Some(Vec::new()));
        }
        let Some(found) = self.clients.get(client).await? else { return Ok(None) };
        Ok(Some(emitted.iter().filter_map(|computed| Event::computed(&found.client, computed)).collect()))
    }
}

/// True for a client of the coach that is due, or was evaluated under an earlier version of the rules. One that was
/// evaluated under a later version is left to a sweep that has read the rules since.
fn is_to_be_evaluated(watch: &Watch, by: &Rulebook) -> bool {
    let is_due = watch.due().is_some_and(|due| due <= by.as_of);
    watch.coach_id == by.coach_id && watch.rules_version <= by.version && (is_due || watch.rules_version < by.version)
}
