//! Computed events.

mod costs;
mod crashes;
mod events;
mod passes;
mod timelines;
