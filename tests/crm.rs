//! `/v1/crm`: contacts, opportunities, calendars, bookings and workflows.

pub(crate) mod bookings;
pub(crate) mod contacts;
mod opportunities;
mod permissions;
mod workflows;
