//! `/settings`: sessions, keys and webhook endpoints.

mod keys;
mod sessions;
mod webhooks;
