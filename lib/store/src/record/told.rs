//! What is told on and not kept: a client's step to another phase, and that a message came. A mark sees to it that each is told once.

use domain::automation::{Automation, told};
use domain::client::Client;
use domain::event::{Event, EventType};
use domain::fact::PhaseAdvance;
use domain::id::{ClientId, MessageId};
use domain::time::Timestamp;
use domain::wall_clock::date_at;
use futures::future::try_join;

use super::{Recorded, Records, known};
use crate::db::{StoreError, Write, retry};
use crate::fact::FactContext;
use crate::watch::WatchUpdate;

impl Records {
    /// Tells of a step to another phase, and notes the phase unless what is stored is newer.
    pub async fn advance_phase(
        &self,
        client_id: &ClientId,
        advance: &PhaseAdvance,
        fact: FactContext<'_>,
    ) -> Result<Recorded, StoreError> {
        let FactContext { occurred_at, backfill, now, .. } = fact;
        retry("the client", || async {
            let stored = match known(self.clients.standing(client_id).await?) {
                Ok(stored) => stored,
                Err(outcome) => return Ok(Some(outcome)),
            };
            let client = &stored.client;
            let automations = self.automations(client, EventType::PhaseAdvanced, backfill);
            let (zone, automations) = try_join(self.clients.time_zone_of(client), automations).await?;
            let started_on = date_at(zone, advance.advanced_at);
            let (phase, changed) = self.clients.set_phase(&stored, &advance.to_phase, started_on, occurred_at);
            let event = Event::phase_advanced(client, advance);
            let mut writes = vec![self.mark(client_id, event.id.as_str(), now), phase];
            let change = WatchUpdate::between(client, &changed);
            writes.extend(change.map(|change| self.watches.change(client_id, change, fact.marked())));
            writes.extend(self.tell(backfill, event, &automations, now));
            self.apply(fact, &stored, writes).await
        })
        .await
    }

    /// Tells that a message came.
    pub async fn receive_message(
        &self,
        client_id: &ClientId,
        message: &MessageId,
        received_at: Timestamp,
        fact: FactContext<'_>,
    ) -> Result<Recorded, StoreError> {
        let FactContext { backfill, now, .. } = fact;
        retry("the client", || async {
            let stored = match known(self.clients.standing(client_id).await?) {
                Ok(stored) => stored,
                Err(outcome) => return Ok(Some(outcome)),
            };
            let automations = self.automations(&stored.client, EventType::MessageReceived, backfill).await?;
            let event = Event::message_received(&stored.client, message, received_at);
            let mut writes =
                vec![self.mark(client_id, &format!("MESSAGE#{message}"), now), self.clients.still_there(client_id)];
            writes.extend(self.tell(backfill, event, &automations, now));
            self.apply(fact, &stored, writes).await
        })
        .await
    }

    /// The automations that wait for the event. A backfill sets none off.
    async fn automations(
        &self,
        client: &Client,
        event: EventType,
        backfill: bool,
    ) -> Result<Vec<Automation>, StoreError> {
        if backfill { Ok(Vec::new()) } else { self.clients.automations_on(client, &[event]).await }
    }

    fn tell(
        &self,
        backfill: bool,
        event: Event,
        automations: &[Automation],
        now: Timestamp,
    ) -> impl Iterator<Item = Write> {
        let events = if backfill { Vec::new() } else { told(event, automations) };
        self.outbox.put_events(events, now)
    }
}
