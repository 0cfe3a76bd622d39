//! Computed events.

mod backfills;
mod costs;
mod crashes;
mod events;
mod histories;
mod model;
mod passes;
mod timelines;
