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
use edge::{CrmCaller, Door};
use runtime::{BoxError, Environment};
use store::Db;
use store::vault::Vault;

use crate::app::App;
use crate::cancel::Cancel;
use crate::create::Create;
use crate::reschedule::Reschedule;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let (db, vault) = (Db::new(env), Vault::open(env).await?);
    let door = Door::<CrmCaller, _>::new(env, &db, App::new(env, &db, &vault)?)?.writing(env, &db, &vault)?;
    let booking = get(door.read(read::read)).patch(door.write::<Reschedule>()).delete(door.write::<Cancel>());
    Ok(Router::new()
        .route("/v1/crm/calendars", get(door.read(calendars::calendars)))
        .route("/v1/crm/bookings", get(door.read(list::list)).post(door.write::<Create>()))
        .route("/v1/crm/bookings/availability", post(door.read(availability::availability)))
        .route("/v1/crm/bookings/{id}", booking))
}
