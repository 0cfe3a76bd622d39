//! The pass over all active clients of a coach whose rules have changed: who matches already is no news, and each is due when it could
//! come to match what is new. It remembers how far it has come, so that a pass over many clients survives the end of its call.

use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt};
use runtime::error_chain;
use store::StoreError;
use store::sweep::{Because, Rulebook};
use tokio::time::Instant;

use crate::App;
use crate::shard::{CONCURRENT, Tally};

/// Clients of one page, which the coach's rules are read once for.
const PAGE: u32 = 200;

impl App {
    pub(crate) async fn pass(&self, coach: &CoachId, until: Instant) -> Tally {
        let mut tally = Tally::default();
        if let Err(error) = self.pass_pages(coach, until, &mut tally).await {
            tracing::error!(coach_id = %coach, error = error_chain(&error), "a coach's clients could not be passed over");
            tally.failed += 1;
        }
        tally
    }

    async fn pass_pages(&self, coach: &CoachId, until: Instant, tally: &mut Tally) -> Result<(), StoreError> {
        let mut watch = self.sweeper.pass_of(coach, self.now()).await?;
        while let Some(at) = watch {
            let rules = self.sweeper.rulebook(coach, self.now()).await?;
            let (clients, after) = self.sweeper.pass_page(&at, PAGE).await?;
            let changed_at = at.rules_known_at().unwrap_or(rules.as_of());
            *tally = tally.add(self.pass_page(&clients, &rules, changed_at).await?);
            let is_last = after.is_none();
            watch = self.sweeper.pass_on(at, &rules, after).await?.filter(|_| !is_last);
            if watch.is_some() && Instant::now() >= until {
                tally.is_cut = true;
                break;
            }
        }
        Ok(())
    }

    async fn pass_page(
        &self,
        clients: &[ClientId],
        rules: &Rulebook,
        changed_at: Timestamp,
    ) -> Result<Tally, StoreError> {
        let work: Vec<_> = clients.iter().map(|client| self.pass_one(client, rules, changed_at)).collect();
        let tallies: Vec<_> = stream::iter(work).buffer_unordered(CONCURRENT).collect().await;
        Ok(Tally::sum(tallies.into_iter().collect::<Result<_, _>>()?))
    }

    /// A client that cannot be judged does not keep the pass from the others. It is left due; where that cannot be done either, the pass
    /// comes to this page again.
    async fn pass_one(&self, client: &ClientId, rules: &Rulebook, changed_at: Timestamp) -> Result<Tally, StoreError> {
        let judged = self.judged(self.sweeper.judge(client, rules, Because::RulesChanged(changed_at))).await;
        if judged.is_err() {
            self.sweeper.leave_due(client, rules.as_of()).await?;
        }
        Ok(Tally::of(&judged, client.as_str()))
    }
}
