//! `/v1/crm/calendars` and `/v1/crm/bookings`: calendars, availability and bookings. One file per operation.

mod availability;
mod calendars;
mod cancel;
mod create;
mod list;
mod render;
mod reschedule;

use axum::Router;
use axum::routing::{get, patch, post};
use edge::Gate;
use edge::crm::Writer;
use runtime::{BoxError, Environment};
use store::Db;
use store::booking::Bookings;
use store::calendar::Calendars;
use store::contact::Contacts;
use store::outbox::Outbox;
use store::vault::Vault;

#[derive(Clone)]
struct App {
    gate: Gate,
    writer: Writer,
    calendars: Calendars,
    bookings: Bookings,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let vault = Vault::open(env).await?;
    let calendars = Calendars::new(env, &db)?;
    let contacts = Contacts::new(env, &db)?;
    let outbox = Outbox::new(env, &db, &vault)?;
    let app = App {
        gate: Gate::new(env, &db)?,
        writer: Writer::new(env, &db, &vault)?,
        bookings: Bookings::new(env, &db, &calendars, &contacts, &outbox)?,
        calendars,
    };
    let router = Router::new()
        .route("/v1/crm/calendars", get(calendars::calendars))
        .route("/v1/crm/bookings", get(list::list).post(create::create))
        .route("/v1/crm/bookings/availability", post(availability::availability))
        .route("/v1/crm/bookings/{id}", patch(reschedule::reschedule).delete(cancel::cancel));
    Ok(router.with_state(app))
}
