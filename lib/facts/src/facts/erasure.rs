//! Erasures of clients.

use domain::id::ClientId;
use store::StoreError;
use store::client::ClientState;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};
use crate::erase;
use crate::outcome::Outcome;

/// Erases a client everywhere, in parts and passes. The tombstone, and not the fact's mark, keeps the client erased, so
/// the fact is never marked.
pub(crate) struct Erase<'a> {
    pub(crate) client: &'a ClientId,
    /// The progress of the erasure.
    pub(crate) after: Option<&'a str>,
}

impl FactCommand for Erase<'_> {
    type Snapshot = ();
    type Rest = ();

    async fn read(&self, _: &FactStore, _: Context<'_>) -> Result<(), Stop> {
        Ok(())
    }

    fn decide(&self, _: &FactStore, _: Context<'_>, (): ()) -> Decision<()> {
        Decision::Follow(())
    }

    async fn after(&self, app: &FactStore, fact: Context<'_>, (): ()) -> Result<Outcome, StoreError> {
        // A client whose tombstone is gone may be another one by now.
        if !fact.is_first && !matches!(app.clients.state(self.client).await?, ClientState::Erased) {
            return Ok(Outcome::Stored);
        }
        erase::client(app, self.client, fact.occurred_at, fact.now, self.after).await
    }
}
