//! The application's facts, and the changes that go back to it.

mod batches;
mod changes;
pub(crate) mod erasure;
mod facts;
mod junk;
mod order;
