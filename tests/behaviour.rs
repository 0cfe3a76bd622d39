//! The service's behaviour, rule by rule, through its public surface: a stack of its own for each test.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not see as tests")]

mod application;
mod authentication;
mod automations;
mod caps;
mod clients;
mod compliance;
mod costs;
mod create_client;
mod docs;
mod endpoint_states;
mod endpoints;
mod erasure;
mod erasure_races;
mod faults;
mod feed;
mod history;
mod idempotency;
mod idempotency_crashes;
mod idempotency_takeovers;
mod isolation;
mod judged_check_ins;
mod keys;
mod leads;
mod login_links;
mod login_pages;
mod ping;
mod privacy;
mod privacy_raw;
mod rate_limit;
mod receivers;
mod record_costs;
mod records;
mod redelivery;
mod requests;
mod settings;
mod simulation;
mod tidy;
mod webhooks;
mod world;
