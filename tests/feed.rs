//! The application's facts, and the changes that the service emits.

mod batches;
mod changes;
pub(crate) mod erasure;
mod facts;
mod junk;
mod order;

use serde_json::{Value, json};

use crate::world::{Fact, World};

/// Publishes a fact, after which a function stalls once it has made `spared_calls` calls. Returns false if all work
/// ends without the stall.
pub(crate) async fn stalls(world: &World, function: &str, spared_calls: impl Into<Value>, fact: Fact) -> bool {
    let spared_calls: Value = spared_calls.into();
    world.faults(json!({ "function": function, "spared_calls": spared_calls, "stalled_calls": 1 })).await;
    world.publish([fact]).await;
    tokio::select! {
        () = world.until_stalled() => true,
        () = world.settle() => false,
    }
}
