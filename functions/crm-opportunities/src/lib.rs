//! `/v1/crm/opportunities` and `/v1/crm/opportunities/{id}`: a coach's opportunities in their pipeline, one file per
//! operation.

mod app;
mod create;
mod list;
mod read;
mod update;

use axum::Router;
use axum::routing::get;
use runtime::{BoxError, Environment};

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let router = Router::new()
        .route("/v1/crm/opportunities", get(list::list).post(create::create))
        .route("/v1/crm/opportunities/{id}", get(read::read).patch(update::update));
    Ok(router.with_state(App::new(env).await?))
}
