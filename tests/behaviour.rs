//! The service's behaviour, rule by rule, through its public surface: a stack of its own for each test.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not see as tests")]

mod crm;
mod docs;
mod feed;
mod operations;
mod partner;
mod settings;
mod sweep;
mod tidy;
mod webhooks;
mod world;
