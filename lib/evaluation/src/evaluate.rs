//! The evaluation of one client: read, evaluate, commit. Concurrent sweeps of a client commit once. A sweep that dies
//! has committed the whole evaluation or nothing.

use std::panic::AssertUnwindSafe;

use domain::event::Event;
use domain::id::ClientId;
use domain::sweep::{Computed, Evaluation, States, evaluate, reads_from};
use futures::future::FutureExt;
use runtime::BoxError;
use store::StoreError;
use store::retry;
use store::unit::{Commit, Once, Unit};
use store::watch::{Observed, Watch};

use crate::evaluator::Evaluator;
use crate::rulebook::Rulebook;

/// The result of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluated {
    /// The evaluation is committed, with this number of events.
    Emitted(usize),
    /// The client is not due any more, belongs to another coach, is gone, or was evaluated under newer rules.
    NotDue,
}

impl Evaluator {
    /// Evaluates a client that is due, or that was evaluated under an older version of the rules. A panic, a fault of
    /// ours, does not stop the evaluation of other clients.
    pub async fn evaluate(&self, client: &ClientId, rulebook: &Rulebook) -> Result<Evaluated, BoxError> {
        let _permit = self.evaluating.acquire().await?;
        let evaluation = retry("the client's watch", || self.evaluate_once(client, rulebook));
        match AssertUnwindSafe(evaluation).catch_unwind().await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err("the evaluation panicked".into()),
        }
    }

    /// Tries to evaluate a client once. `None` if the client changed meanwhile.
    async fn evaluate_once(&self, client: &ClientId, rulebook: &Rulebook) -> Result<Option<Evaluated>, StoreError> {
        let Some(observed) = self.watches.client(client, reads_from(&rulebook.rules, rulebook.as_of)).await? else {
            return Ok(Some(Evaluated::NotDue));
        };
        if !is_to_be_evaluated(&observed.watch, rulebook) {
            return Ok(Some(Evaluated::NotDue));
        }
        let (watch, Evaluation { emitted, states }) = self.evaluation(client, observed, rulebook).await?;
        let Some(events) = self.events(client, &emitted).await? else { return Ok(Some(Evaluated::NotDue)) };
        let count = events.len();
        let put = self.watches.put_evaluated(watch, states, rulebook.version, rulebook.is_watched());
        let unit = Unit::new().write([put]).events(events);
        let commit = self.units.commit(unit, Once::ByVersion, rulebook.as_of).await?;
        Ok(matches!(commit, Commit::Done).then_some(Evaluated::Emitted(count)))
    }

    async fn evaluation(
        &self,
        client: &ClientId,
        observed: Observed,
        rulebook: &Rulebook,
    ) -> Result<(Watch, Evaluation), StoreError> {
        let mut facts = observed.facts(rulebook.zone);
        let mut watch = observed.watch;
        if !watch.is_active {
            // The index of active clients lags, and a failed evaluation puts a client into the due index again.
            let states = watch.states.clone();
            return Ok((watch, Evaluation { emitted: Vec::new(), states }));
        }
        if watch.daily_log_deleted {
            facts.last_daily_log_on = self.records.last_logged_date(client).await?;
            watch = watch.with_last_daily_log(facts.last_daily_log_on);
        }
        facts.phases = rulebook.phases(&self.workspaces, watch.programme_id.as_ref()).await?;
        let silent = watch.states.silent || watch.rules_version < rulebook.silent_version;
        let states = States { silent, ..watch.states.clone() };
        let evaluation = evaluate(&facts, &rulebook.rules, &states, watch.due(), rulebook.as_of);
        Ok((watch, evaluation))
    }

    /// The events to emit. `None` if the client is gone.
    async fn events(&self, client: &ClientId, emitted: &[Computed]) -> Result<Option<Vec<Event>>, StoreError> {
        if emitted.iter().all(|computed| computed.to.is_empty()) {
            return Ok(Some(Vec::new()));
        }
        let Some(found) = self.clients.get(client).await? else { return Ok(None) };
        Ok(Some(emitted.iter().filter_map(|computed| computed.event(&found.client)).collect()))
    }
}

/// Returns true for a client of the coach that is due, or was evaluated under an earlier version of the rules. A client
/// that was evaluated under a later version is left to a sweep that has read that version.
fn is_to_be_evaluated(watch: &Watch, rulebook: &Rulebook) -> bool {
    let is_due = watch.due().is_some_and(|due| due <= rulebook.as_of);
    watch.coach_id == rulebook.coach_id
        && watch.rules_version <= rulebook.version
        && (is_due || watch.rules_version < rulebook.version)
}
