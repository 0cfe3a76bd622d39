//! Events: which facts and calls emit one, with which content.

pub(crate) mod automations;
mod check_in_events;
mod events;
