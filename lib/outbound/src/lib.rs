//! Effects on the world outside by way of AWS: the queues, the bus, mail. When to use them is decided elsewhere.

pub mod bus;
pub mod delivery;
pub mod mail;
pub mod queue;
pub mod sweep;
