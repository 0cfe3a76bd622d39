//! Tests of the webhook client through its public surface, against scripted receivers on this machine.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not see as tests")]

mod behaviour;
mod certificates;
mod connections;
#[path = "../../../../tests/world/tcp_receiver.rs"]
mod tcp_receiver;
mod world;
