//! Behaviour tests of the service through its public surface. Each test has a stack of its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not see as tests")]

mod assistants;
mod crm;
mod delivery;
mod docs;
mod event_feed;
mod feed;
mod idempotency;
mod operate;
mod operations;
mod partner;
mod portal;
mod request_log;
mod sandbox;
mod settings;
mod sweep;
mod tidy;
mod webhooks;
mod world;
