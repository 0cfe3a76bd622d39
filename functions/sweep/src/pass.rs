//! The pass over all active clients of a coach whose rules have changed: each is evaluated under the new version of the
//! rules. The progress is stored page by page, so that a pass over many clients survives the end of its call.

use domain::id::{ClientId, CoachId};
use evaluation::{CONCURRENT, Rulebook};
use futures::stream::{self, StreamExt};
use runtime::error_chain;
use store::StoreError;
use store::watch::CoachWatch;
use tokio::time::Instant;

use crate::App;
use crate::shard::Tally;

/// Clients per page. The coach's rules are read once per page.
const PAGE: u32 = 200;

impl App {
    pub(crate) async fn pass(&self, coach: &CoachId, until: Instant) -> Tally {
        let mut tally = Tally::default();
        if let Err(error) = self.pass_pages(coach, until, &mut tally).await {
            tracing::error!(coach_id = %coach, error = error_chain(&error), "the pass over a coach's clients failed");
            tally.failed += 1;
        }
        tally
    }

    async fn pass_pages(&self, coach: &CoachId, until: Instant, tally: &mut Tally) -> Result<(), StoreError> {
        let mut watch = self.watches.coach(coach).await?;
        while watch.is_due(self.now()) {
            let rules = self.evaluator.rulebook_of(&watch, self.now()).await?;
            let done = self.pass_page(&watch, &rules, tally).await?;
            // `None`: the rules have changed, and the pass starts again.
            watch = match self.watches.save_pass(done).await? {
                Some(next) => next,
                None => self.watches.coach(coach).await?,
            };
            if watch.is_due(self.now()) && Instant::now() >= until {
                tally.is_out_of_time = true;
                break;
            }
        }
        Ok(())
    }

    /// Evaluates the clients of the next page. Returns the coach's watch to store afterwards.
    async fn pass_page(
        &self,
        watch: &CoachWatch,
        rules: &Rulebook,
        tally: &mut Tally,
    ) -> Result<CoachWatch, StoreError> {
        let is_watched = rules.is_watched();
        if !is_watched && !watch.is_watched {
            // No client is in the due index because of this coach's rules.
            return Ok(watch.clone().with_pass_done(rules.as_of, false));
        }
        let page = self.clients.active_page(&rules.coach_id, watch.pass_after(), PAGE).await?;
        let work: Vec<_> = page.items.iter().map(|client| self.pass_one(client, rules)).collect();
        let tallies: Vec<_> = stream::iter(work).buffer_unordered(CONCURRENT).collect().await;
        *tally = tally.add(Tally::sum(tallies.into_iter().collect::<Result<_, _>>()?));
        Ok(match page.next {
            Some(after) => watch.clone().with_page_done(after, rules.as_of),
            None => watch.clone().with_pass_done(rules.as_of, is_watched),
        })
    }

    /// Evaluates one client. A client whose evaluation fails is marked as due, so the pass continues. If the mark fails
    /// too, the pass repeats this page.
    async fn pass_one(&self, client: &ClientId, rules: &Rulebook) -> Result<Tally, StoreError> {
        let outcome = self.evaluator.evaluate(client, rules).await;
        if outcome.is_err() {
            self.watches.mark_due(client, rules.as_of).await?;
        }
        Ok(Tally::of(&outcome, client.as_str()))
    }
}
