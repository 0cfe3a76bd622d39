//! `GET /v1/events`: the event feed, for keys of either scope that the coach allowed to read events. `GET
//! /v1/events/samples`: an example of an event.

mod list;
mod sample;

use axum::Router;
use axum::routing::get;
use domain::event::EventType;
use domain::event_access::EventAccess;
use edge::{Gate, Problem};
use runtime::{BoxError, Environment};
use store::Db;
use store::event_feed::EventFeed;
use store::vault::Vault;

#[derive(Clone)]
struct App {
    gate: Gate,
    feed: EventFeed,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let vault = Vault::open(env).await?;
    let app = App { gate: Gate::new(env, &db)?, feed: EventFeed::new(env, &db, &vault)? };
    let router = Router::new().route("/v1/events", get(list::list)).route("/v1/events/samples", get(sample::sample));
    Ok(router.with_state(app))
}

/// Refuses types that the key may not read.
fn check_allowed(access: &EventAccess, types: &[EventType]) -> Result<(), Problem> {
    match types.iter().find(|named| !access.types.contains(named)) {
        Some(forbidden) => Err(Problem::EventTypeNotAllowed(*forbidden)),
        None => Ok(()),
    }
}
