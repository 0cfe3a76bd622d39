//! `/v1/crm`: contacts, opportunities, calendars, bookings and workflows.

pub(crate) mod bookings;
pub(crate) mod contacts;
mod crashes;
mod fingerprints;
mod idempotency;
mod opportunities;
mod permissions;
mod workflows;
