//! DynamoDB, one module per entity. Each module owns its key strings and states its access patterns in its header.
//!
//! Every write states its condition, except deletions during an erasure. Expected outcomes (a taken e-mail, a full
//! plan, a lost race) are returned as values. Errors mean that the store did not answer, or that a stored item has an
//! unexpected form.

mod about_contact;
pub mod audit;
pub mod automation;
mod binary;
pub mod booking;
pub mod calendar;
pub mod claim;
pub mod client;
pub mod contact;
pub mod contact_ref;
mod db;
pub mod delivery;
mod doses;
pub mod endpoint;
pub mod endpoint_ref;
pub mod event_feed;
pub mod fact;
mod fact_order;
pub mod first_contents;
mod group;
mod holders;
pub mod key;
pub mod login_link;
mod metering;
pub mod operating;
pub mod opportunity;
pub mod outbox;
pub mod page;
pub mod pipeline;
pub mod programme;
pub mod record;
pub mod request_log;
pub mod sandbox_quota;
mod settings_limit;
pub mod shard;
pub mod stored_mail;
pub mod test_data;
pub mod unit;
mod updated;
pub mod vault;
pub mod watch;
pub mod welcome_mail;
mod window;
pub mod workflow;
pub mod workspace;

pub use db::{Db, Part, RefusedTransaction, StoreError, Write, retry};
pub use window::Counted;
