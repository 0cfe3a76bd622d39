//! Effects on the world outside: the queues, the bus, mail, and webhooks. When to use them is decided elsewhere.

pub mod bus;
pub mod mail;
pub mod queue;
pub mod resolve;
pub mod sweep;
pub mod webhook;
mod webhook_error;
