//! Effects on the world outside by way of AWS: the queues, the bus, mail. When to use them is decided elsewhere.
//!
//! Requests wait on the heap: the SDK's future of one is five kilobytes, and is moved with every future around it.

pub mod bus;
pub mod delivery;
pub mod mail;
pub mod queue;
pub mod sweep;
