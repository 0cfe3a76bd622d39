//! `/v1/clients` and `/v1/clients/{clientId}`: a coach's clients, one file per operation.

mod app;
mod create;
mod list;
mod read;
mod update;
mod welcome;

use axum::Router;
use axum::routing::get;
use runtime::{BoxError, Environment};

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let router = Router::new()
        .route("/v1/clients", get(list::list).post(create::create))
        .route("/v1/clients/{clientId}", get(read::read).patch(update::update));
    Ok(router.with_state(App::new(env).await?))
}
