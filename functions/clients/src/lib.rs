//! `/v1/clients` and `/v1/clients/{clientId}`: a coach's clients, one file per operation.

mod app;
mod create;
mod list;
mod read;
mod update;
mod welcome;

use axum::Router;
use axum::routing::get;
use edge::{Door, Partner};
use runtime::{BoxError, Environment};
use store::Db;
use store::vault::Vault;

use crate::app::App;
use crate::create::Create;
use crate::update::Update;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let (db, vault) = (Db::new(env), Vault::open(env).await?);
    let door = Door::<Partner, _>::new(env, &db, App::new(env, &db, &vault)?)?.writing(env, &db, &vault)?;
    let client = get(door.read_early(read::find, read::read)).patch(door.write_early::<Update>());
    Ok(Router::new()
        .route("/v1/clients", get(door.read_early(list::find, list::list)).post(door.write::<Create>()))
        .route("/v1/clients/{clientId}", client))
}
