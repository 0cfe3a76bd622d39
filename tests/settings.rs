//! `/settings`: sessions, keys, webhook endpoints and deliveries.

mod deliveries;
mod keys;
mod sessions;
mod webhooks;
