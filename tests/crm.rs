//! `/v1/crm`: contacts, opportunities, calendars, bookings and workflows.

pub(crate) mod bookings;
pub(crate) mod contacts;
pub(crate) mod events;
pub(crate) mod lists;
mod opportunities;
mod permissions;
mod reads;
mod updates;
mod workflows;
