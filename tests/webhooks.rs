//! Events and deliveries, from the outbox to the receiver.

mod attempts;
pub(crate) mod automations;
mod batches;
mod check_in_events;
pub(crate) mod deliveries;
pub(crate) mod endpoint_states;
mod events;
mod isolation;
mod receivers;
mod relay_batches;
pub(crate) mod simulation;
