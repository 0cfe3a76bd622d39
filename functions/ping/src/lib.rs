//! Answers about a key: `GET /v1/ping` confirms it and names its workspace, `GET /v1/key` says what it may do,
//! `GET /v1/requests` what was asked with it.

mod key;
mod ping;
mod requests;

use axum::Router;
use axum::routing::get;
use domain::mode::Mode;
use edge::{Door, KeyHolder, Partner};
use runtime::{BoxError, Environment};
use store::Db;
use store::request_log::Requests;
use store::workspace::Workspaces;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let workspaces = Workspaces::new(env, &db)?;
    let partners = Door::<Partner, _>::new(env, &db, workspaces.clone())?;
    let holders = Door::<KeyHolder, key::App>::new(env, &db, (workspaces, env.config().parse(Mode::SETTING)?))?;
    let logs = Door::<KeyHolder, _>::new(env, &db, Requests::new(env, &db)?)?;
    Ok(Router::new()
        .route("/v1/ping", get(partners.read(ping::ping)))
        .route("/v1/key", get(holders.read(key::read)))
        .route("/v1/requests", get(logs.read(requests::list))))
}
