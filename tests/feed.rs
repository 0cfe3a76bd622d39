//! The application's facts, and the changes that the service emits.

mod batches;
mod changes;
pub(crate) mod erasure;
mod facts;
mod junk;
mod order;
