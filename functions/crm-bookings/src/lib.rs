//! `/v1/crm/calendars` and `/v1/crm/bookings`: calendars, availability and bookings. One file per operation.

mod app;
mod availability;
mod calendars;
mod cancel;
mod create;
mod list;
mod read;
mod render;
mod reschedule;

use axum::Router;
use axum::routing::{get, post};
use runtime::{BoxError, Environment};

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let router = Router::new()
        .route("/v1/crm/calendars", get(calendars::calendars))
        .route("/v1/crm/bookings", get(list::list).post(create::create))
        .route("/v1/crm/bookings/availability", post(availability::availability))
        .route("/v1/crm/bookings/{id}", get(read::read).patch(reschedule::reschedule).delete(cancel::cancel));
    Ok(router.with_state(App::new(env).await?))
}
