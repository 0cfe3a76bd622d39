//! `GET /v1/events`: the event feed, for keys of either scope that the coach allowed to read events. `GET
//! /v1/events/samples`: an example of an event.

mod access;
mod list;
mod sample;

use axum::Router;
use axum::routing::get;
use edge::{Door, EventReader};
use runtime::{BoxError, Environment};
use store::Db;
use store::event_feed::EventFeed;
use store::vault::Vault;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let (db, vault) = (Db::new(env), Vault::open(env).await?);
    let door = Door::<EventReader, _>::new(env, &db, EventFeed::new(env, &db, &vault)?)?;
    Ok(Router::new()
        .route("/v1/events", get(door.read(list::list)))
        .route("/v1/events/samples", get(door.read(sample::sample))))
}
