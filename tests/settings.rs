//! `/settings`: sessions, the workspace, keys, webhook endpoints and the audit trail.

mod audit;
mod event_types;
mod keys;
mod sessions;
mod webhooks;
mod workspace;
