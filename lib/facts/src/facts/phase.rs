//! Phases: a client enters another phase.

use std::future::ready;

use domain::automation::Automation;
use domain::client::PhaseAdvance;
use domain::event::{Event, EventType};
use domain::id::ClientId;
use domain::tz::Tz;
use domain::wall_clock::date_at;
use futures::future::try_join;
use store::client::StoredClient;
use store::unit::Unit;
use store::watch::WatchUpdate;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop, with_client};
use crate::facts::emission::{automations, emitted};

/// Emits once that a client entered a phase, and stores the phase unless the stored one is newer.
pub(crate) struct Advance<'a>(pub(crate) &'a ClientId, pub(crate) &'a PhaseAdvance);

impl FactCommand for Advance<'_> {
    type Snapshot = (StoredClient, Tz, Vec<Automation>);
    type Rest = ();

    async fn read(&self, app: &FactStore, fact: Context<'_>) -> Result<Self::Snapshot, Stop> {
        let (stored, ()) = with_client(app, self.0, ready(Ok(()))).await?;
        let automations = automations(app, &stored.client, &[EventType::PhaseAdvanced], fact.backfill);
        let (zone, automations) = try_join(app.workspaces.zone(&stored.client.coach_id), automations).await?;
        Ok((stored, zone, automations))
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, (stored, zone, automations): Self::Snapshot) -> Decision<()> {
        let (client, advance) = (&stored.client, self.1);
        let started_on = date_at(zone, advance.advanced_at);
        let (phase, changed) =
            app.clients.set_phase(&stored, &advance.to_phase, started_on, fact.occurred_at, fact.now);
        let event = Event::phase_advanced(client, advance);
        let change = WatchUpdate::between(client, &changed);
        let unit = Unit::new()
            .write([app.records.mark_emitted(self.0, event.id.as_str(), fact.now), phase])
            .write(change.map(|change| app.watches.change(self.0, change, fact.due_mark())))
            .events(emitted(event, &automations, fact));
        Decision::Commit(unit, ())
    }
}
