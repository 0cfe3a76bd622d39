//! Storing of the application's facts, whichever way they come.
//!
//! [`FactStore::store`] stores one fact, or does the next part of its work. The caller decides what becomes of a fact
//! that waits, is refused, or is not done.

mod command;
mod envelope;
mod erase;
mod fact_store;
mod facts;
mod feed_queue;
mod outcome;
mod progress;

pub use envelope::Envelope;
pub use fact_store::FactStore;
pub use facts::{client_of, coach_of};
pub use feed_queue::FeedQueue;
pub use outcome::{Next, Outcome};
pub use progress::Progress;
