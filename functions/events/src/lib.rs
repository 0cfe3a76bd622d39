//! `GET /v1/events`: the event feed, for keys of either scope that the coach allowed to read events. `GET
//! /v1/events/samples`: an example of an event.

mod app;
mod list;
mod sample;

use axum::Router;
use axum::routing::get;
use runtime::{BoxError, Environment};

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let router = Router::new().route("/v1/events", get(list::list)).route("/v1/events/samples", get(sample::sample));
    Ok(router.with_state(App::new(env).await?))
}
