//! Facts that emit an event and leave no record: a client enters another phase, a message arrives. A mark makes each
//! emit once.

use std::future::ready;

use domain::automation::{Automation, emitted_events};
use domain::client::{Client, PhaseAdvance};
use domain::event::{Event, EventType};
use domain::id::{ClientId, MessageId};
use domain::time::Timestamp;
use domain::wall_clock::date_at;
use futures::future::try_join;

use super::Records;
use crate::db::StoreError;
use crate::fact::{FactContext, Halt};
use crate::unit::Unit;
use crate::watch::WatchUpdate;

impl Records {
    /// Emits that a client entered another phase, and stores the phase unless the stored one is newer.
    pub async fn advance_phase(
        &self,
        client_id: &ClientId,
        advance: &PhaseAdvance,
        fact: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        let (stored, ()) = self.with_client(client_id, ready(Ok(()))).await?;
        let client = &stored.client;
        let automations = self.automations(client, &[EventType::PhaseAdvanced], fact.backfill);
        let (zone, automations) = try_join(self.clients.workspaces.zone(&client.coach_id), automations).await?;
        let started_on = date_at(zone, advance.advanced_at);
        let (phase, changed) = self.clients.set_phase(&stored, &advance.to_phase, started_on, fact);
        let event = Event::phase_advanced(client, advance);
        let change = WatchUpdate::between(client, &changed);
        Ok(Unit::new()
            .write([self.mark(client_id, event.id.as_str(), fact.now), phase])
            .write(change.map(|change| self.watches.change(client_id, change, fact.due_mark())))
            .events(emitted(event, &automations, fact)))
    }

    /// Emits that a message arrived.
    pub async fn receive_message(
        &self,
        client_id: &ClientId,
        message: &MessageId,
        received_at: Timestamp,
        fact: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        let (stored, ()) = self.with_client(client_id, ready(Ok(()))).await?;
        let automations = self.automations(&stored.client, &[EventType::MessageReceived], fact.backfill).await?;
        let event = Event::message_received(&stored.client, message, received_at);
        let mark = self.mark(client_id, &format!("MESSAGE#{message}"), fact.now);
        let writes = [mark, self.clients.lookup.check_not_erased(client_id)];
        Ok(Unit::new().write(writes).events(emitted(event, &automations, fact)))
    }

    /// Reads the automations on the events; none if nothing is emitted.
    pub(super) async fn automations(
        &self,
        client: &Client,
        events: &[EventType],
        is_silent: bool,
    ) -> Result<Vec<Automation>, StoreError> {
        if is_silent { Ok(Vec::new()) } else { self.clients.workspaces.automations_on(&client.coach_id, events).await }
    }
}

/// The event of a fact, for subscribed endpoints and for automations; none in a backfill.
fn emitted(event: Event, automations: &[Automation], fact: FactContext<'_>) -> Vec<Event> {
    if fact.backfill { Vec::new() } else { emitted_events(event, automations).into_iter().collect() }
}
