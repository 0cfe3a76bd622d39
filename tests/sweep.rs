//! Computed events.

mod backfills;
mod costs;
mod crashes;
mod events;
mod passes;
mod timelines;
