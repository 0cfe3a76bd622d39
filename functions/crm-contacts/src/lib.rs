//! `/v1/crm/contacts` and `/v1/crm/contacts/{id}`: a coach's contacts, one file per operation.

mod app;
mod create;
mod list;
mod read;
mod update;

use axum::Router;
use axum::routing::get;
use edge::{CrmCaller, Door};
use runtime::{BoxError, Environment};
use store::Db;
use store::vault::Vault;

use crate::app::App;
use crate::create::Create;
use crate::update::Update;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let (db, vault) = (Db::new(env), Vault::open(env).await?);
    let door = Door::<CrmCaller, _>::new(env, &db, App::new(env, &db)?)?.writing(env, &db, &vault)?;
    Ok(Router::new()
        .route("/v1/crm/contacts", get(door.read(list::list)).post(door.write::<Create>()))
        .route("/v1/crm/contacts/{id}", get(door.read(read::read)).patch(door.write::<Update>())))
}
