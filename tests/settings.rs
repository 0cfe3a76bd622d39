//! `/settings`: sessions, the workspace, keys, webhook endpoints, deliveries and the audit trail.

mod audit;
pub(crate) mod deliveries;
mod event_types;
mod keys;
mod sessions;
pub(crate) mod webhooks;
mod workspace;

use crate::world::{Caller, World};

/// A world with the coach `ada`, and a caller with her session.
async fn start_with_session() -> (World, Caller) {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    (world, settings)
}
