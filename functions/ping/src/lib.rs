//! `GET /v1/ping`: confirms a key and names its workspace. `GET /v1/key`: says what a key may do. Neither changes
//! anything.

mod key;
mod ping;

use axum::Router;
use axum::routing::get;
use edge::{Door, KeyHolder, Partner};
use runtime::{BoxError, Environment};
use store::Db;
use store::workspace::Workspaces;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let workspaces = Workspaces::new(env, &db)?;
    let partners = Door::<Partner, _>::new(env, &db, workspaces.clone())?;
    let holders = Door::<KeyHolder, _>::new(env, &db, workspaces)?;
    Ok(Router::new().route("/v1/ping", get(partners.read(ping::ping))).route("/v1/key", get(holders.read(key::read))))
}
