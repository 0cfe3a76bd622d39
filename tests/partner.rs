//! `/v1`: clients, their records and login links.

mod authentication;
pub(crate) mod clients;
mod costs;
mod login_pages;
mod permissions;
mod ping;
mod rate_limit;
mod requests;
