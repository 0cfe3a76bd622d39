//! Messages of clients. They emit an event and leave no record.

use std::future::ready;

use domain::automation::Automation;
use domain::event::{Event, EventType};
use domain::id::{ClientId, MessageId};
use domain::time::Timestamp;
use store::client::StoredClient;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop, with_client};
use crate::facts::emission::{automations, emitted};

/// Emits once that a message arrived.
pub(crate) struct Receive<'a> {
    pub(crate) client: &'a ClientId,
    pub(crate) message: &'a MessageId,
    pub(crate) received_at: Timestamp,
}

impl FactCommand for Receive<'_> {
    type Snapshot = (StoredClient, Vec<Automation>);
    type Rest = ();

    async fn read(&self, app: &FactStore, fact: Context<'_>) -> Result<Self::Snapshot, Stop> {
        let (stored, ()) = with_client(app, self.client, ready(Ok(()))).await?;
        let automations = automations(app, &stored.client, &[EventType::MessageReceived], fact.backfill).await?;
        Ok((stored, automations))
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, (stored, automations): Self::Snapshot) -> Decision<()> {
        let event = Event::message_received(&stored.client, self.message, self.received_at);
        let mark = app.records.mark_emitted(self.client, &format!("MESSAGE#{}", self.message), fact.now);
        let writes = [mark, app.clients.check_not_erased(self.client)];
        Decision::Commit(Unit::new().write(writes).events(emitted(event, &automations, fact)), ())
    }
}
