//! Effects on the world outside by way of AWS: the queues, the bus, mail; and how those that come at once are made at once. When to use
//! them is decided elsewhere.

pub mod bus;
pub mod gather;
pub mod mail;
pub mod queue;
pub mod sweep;
