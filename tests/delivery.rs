//! Deliveries of events, from the outbox to the receiver. The tests that wait longest are here: tests start in
//! alphabetical order, and others run beside them.

mod attempts;
mod batches;
mod breaker;
pub(crate) mod deliveries;
pub(crate) mod endpoint_states;
mod isolation;
mod orders;
mod receivers;
mod relay_batches;
pub(crate) mod simulation;
