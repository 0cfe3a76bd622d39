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

use crate::world::{World, list};

/// The operations of a function's calls to AWS so far, newest first.
async fn operations(world: &World, function: &str) -> Vec<String> {
    let calls = world.calls(function).await.into_iter().flat_map(|call| list(call["calls"].clone()));
    calls.map(|call| call["operation"].as_str().unwrap().to_owned()).collect()
}
