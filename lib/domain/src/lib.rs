//! Types and pure decisions of the Partner API. No AWS, no HTTP, no clock, no environment: whatever is a rule is here, and can
//! be tested without any of them. Time and randomness are arguments.

pub mod account;
pub mod address;
pub mod api_key;
pub mod check_in;
pub mod client;
pub mod client_draft;
pub mod compliance;
pub mod contact;
pub mod daily_log;
pub mod delivery;
pub mod dose;
pub mod email;
pub mod endpoint;
pub mod event;
pub mod fact;
pub mod fields;
pub mod id;
pub mod idempotency;
pub mod intake;
pub mod list;
pub mod outgoing;
pub mod phone;
pub mod rate_limit;
pub mod receiver_url;
pub mod retry;
pub mod seal;
pub mod signature;
pub mod time;
pub mod welcome;
pub mod workspace;
