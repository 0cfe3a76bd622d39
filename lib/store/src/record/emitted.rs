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

use super::{RecordOutcome, Records};
use crate::db::{StoreError, Write};
use crate::fact::FactContext;
use crate::watch::WatchUpdate;

impl Records {
    /// Emits that a client entered another phase, and stores the phase unless the stored one is newer.
    pub async fn advance_phase(
        &self,
        client_id: &ClientId,
        advance: &PhaseAdvance,
        fact: FactContext<'_>,
    ) -> Result<RecordOutcome, StoreError> {
        let FactContext { occurred_at, backfill, now, .. } = fact;
        self.apply(
            "the client",
            client_id,
            fact,
            || ready(Ok(())),
            |stored, ()| async move {
                let client = &stored.client;
                let automations = self.automations(client, &[EventType::PhaseAdvanced], backfill);
                let (zone, automations) = try_join(self.clients.workspaces.zone(&client.coach_id), automations).await?;
                let started_on = date_at(zone, advance.advanced_at);
                let (phase, changed) = self.clients.set_phase(&stored, &advance.to_phase, started_on, occurred_at);
                let event = Event::phase_advanced(client, advance);
                let mut writes = vec![self.mark(client_id, event.id.as_str(), now), phase];
                let change = WatchUpdate::between(client, &changed);
                writes.extend(change.map(|change| self.watches.change(client_id, change, fact.due_mark())));
                writes.extend(self.emit(backfill, event, &automations, now));
                Ok(Some(writes))
            },
        )
        .await
    }

    /// Emits that a message arrived.
    pub async fn receive_message(
        &self,
        client_id: &ClientId,
        message: &MessageId,
        received_at: Timestamp,
        fact: FactContext<'_>,
    ) -> Result<RecordOutcome, StoreError> {
        let FactContext { backfill, now, .. } = fact;
        self.apply(
            "the client",
            client_id,
            fact,
            || ready(Ok(())),
            |stored, ()| async move {
                let client = &stored.client;
                let automations = self.automations(client, &[EventType::MessageReceived], backfill).await?;
                let event = Event::message_received(client, message, received_at);
                let mark = self.mark(client_id, &format!("MESSAGE#{message}"), now);
                let mut writes = vec![mark, self.clients.lookup.check_not_erased(client_id)];
                writes.extend(self.emit(backfill, event, &automations, now));
                Ok(Some(writes))
            },
        )
        .await
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

    fn emit(
        &self,
        backfill: bool,
        event: Event,
        automations: &[Automation],
        now: Timestamp,
    ) -> impl Iterator<Item = Write> {
        let events = if backfill { Vec::new() } else { emitted_events(event, automations) };
        self.outbox.put_events(events, now)
    }
}
