//! The service's behaviour, rule by rule, through its public surface: a stack of its own for each test.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not see as tests")]

mod authentication;
mod caps;
mod clients;
mod costs;
mod create_client;
mod endpoints;
mod faults;
mod feed;
mod idempotency;
mod keys;
mod leads;
mod ping;
mod privacy;
mod rate_limit;
mod requests;
mod settings;
mod tidy;
mod webhooks;
mod world;
