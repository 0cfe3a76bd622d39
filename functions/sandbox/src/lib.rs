//! The routes of a sandbox: an integrator takes the place of the application and of time. Each key reaches its own
//! workspace alone. A live stack does not deploy the function.

mod app;
mod data;
mod evaluate;
mod events;
mod facts;
mod mail;
mod workspace;

use axum::Router;
use axum::routing::{get, patch, post};
use edge::{Door, KeyHolder};
use runtime::{BoxError, Environment};
use store::Db;
use store::vault::Vault;

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let (db, vault) = (Db::new(env), Vault::open(env).await?);
    let door = Door::<KeyHolder, _>::new(env, &db, App::new(env, &db, &vault)?)?.writing(env, &db, &vault)?;
    Ok(Router::new()
        .route("/v1/test/facts", post(door.steps::<facts::Store>()))
        .route("/v1/test/workspace", patch(door.steps::<workspace::Change>()))
        .route("/v1/test/evaluate", post(door.steps::<evaluate::Evaluate>()))
        .route("/v1/test/events", post(door.write::<events::Emit>()))
        .route("/v1/test/mail", get(door.read(mail::list)))
        .route("/v1/test/data", get(door.read(data::read)).delete(door.steps::<data::Remove>())))
}
