//! `/v1`: clients, their records and login links.

mod authentication;
pub(crate) mod clients;
mod costs;
pub(crate) mod login_pages;
mod own_key;
mod permissions;
mod rate_limit;
mod requests;

use crate::world::{Caller, World};

/// A world with the coach `ada`, and a caller with a partner key of hers.
pub(crate) async fn start_with_key() -> (World, Caller) {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    (world, key)
}
