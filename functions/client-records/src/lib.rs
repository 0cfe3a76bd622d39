//! `/v1/clients/{clientId}/...`: a client's compliance, check-ins and daily logs, as dates and figures only. One file
//! per operation.
//!
//! The client and its records are read while the key is checked, so a request waits for one round trip. The records are
//! used only if the key's coach owns the client.

mod app;
mod check_ins;
mod compliance;
mod daily_logs;

use axum::Router;
use axum::routing::get;
use edge::{Door, Partner};
use runtime::{BoxError, Environment};
use store::Db;

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let door = Door::<Partner, _>::new(env, &db, App::new(env, &db)?)?;
    Ok(Router::new()
        .route("/v1/clients/{clientId}/compliance", get(door.read_early(compliance::find, compliance::compliance)))
        .route("/v1/clients/{clientId}/check-ins", get(door.read_early(check_ins::find, check_ins::check_ins)))
        .route("/v1/clients/{clientId}/daily-logs", get(door.read_early(daily_logs::find, daily_logs::daily_logs))))
}
