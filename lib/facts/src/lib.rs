//! Storing of the application's facts, whichever way they come.
//!
//! [`FactStore::store`] stores one fact, or does the next part of its work. The caller decides what becomes of a fact
//! that waits, is refused, or is not done.

mod command;
mod erase;
mod fact_store;
mod facts;
mod outcome;

pub use fact_store::FactStore;
pub use facts::{Progress, coach_of};
pub use outcome::{Next, Outcome};
