//! `/settings`: sessions, the workspace, keys, webhook endpoints, deliveries and the audit trail.

mod audit;
mod deliveries;
mod event_types;
mod keys;
mod sessions;
pub(crate) mod webhooks;
mod workspace;
