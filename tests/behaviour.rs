//! The service's behaviour, rule by rule, through its public surface: a stack of its own for each test.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not see as tests")]

mod application;
mod authentication;
mod caps;
mod clients;
mod compliance;
mod costs;
mod create_client;
mod docs;
mod endpoints;
mod erasure;
mod erasure_races;
mod faults;
mod feed;
mod history;
mod idempotency;
mod idempotency_crashes;
mod idempotency_takeovers;
mod keys;
mod leads;
mod login_links;
mod login_pages;
mod ping;
mod privacy;
mod privacy_raw;
mod rate_limit;
mod record_costs;
mod records;
mod requests;
mod settings;
mod tidy;
mod webhooks;
mod world;
