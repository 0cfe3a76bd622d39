//! Events of facts: for subscribed endpoints, and for the coach's automations.

use domain::automation::{Automation, emitted_events};
use domain::client::Client;
use domain::event::{Event, EventType};
use store::StoreError;

use crate::FactStore;
use crate::command::Context;

/// Reads the coach's automations on events; none if nothing is emitted.
pub(super) async fn automations(
    app: &FactStore,
    client: &Client,
    events: &[EventType],
    is_silent: bool,
) -> Result<Vec<Automation>, StoreError> {
    if is_silent { Ok(Vec::new()) } else { app.workspaces.automations_on(&client.coach_id, events).await }
}

/// The event of a fact, for subscribed endpoints and for automations; none in a backfill.
pub(super) fn emitted(event: Event, automations: &[Automation], fact: Context<'_>) -> Vec<Event> {
    if fact.backfill { Vec::new() } else { emitted_events(event, automations).into_iter().collect() }
}
