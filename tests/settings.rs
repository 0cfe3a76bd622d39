//! `/settings`: sessions, keys and webhook endpoints.

mod idempotency;
mod keys;
mod sessions;
mod webhooks;
