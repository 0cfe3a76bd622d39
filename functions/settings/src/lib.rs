//! The API behind the coach's Private Integrations page: keys, webhook endpoints, delivery log, audit trail.
//!
//! Callers are signed-in coaches. The gateway's authorizer has verified their token; the coach is one of its claims.

mod activity;
mod app;
mod audit;
mod deliveries;
mod event_types;
mod keys;
mod receiver;
mod redelivery;
mod requests;
mod webhooks;
mod workspace;

use axum::Router;
use axum::routing::{get, patch, post};
use edge::{Door, Session};
use runtime::{BoxError, Environment};
use store::Db;
use store::vault::Vault;

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let (db, vault) = (Db::new(env), Vault::open(env).await?);
    let door = Door::<Session, _>::new(env, &db, App::new(env, &db, &vault)?)?.writing(env, &db, &vault)?;
    let webhook =
        get(door.read(webhooks::read)).patch(door.write::<webhooks::Change>()).delete(door.write::<webhooks::Delete>());
    let retry = post(door.write::<redelivery::Retry>());
    Ok(Router::new()
        .route("/settings/workspace", get(door.read(workspace::read)))
        .route("/settings/audit", get(door.read(audit::list)))
        .route("/settings/requests", get(door.read(requests::list)))
        .route("/settings/requests/summary", get(door.read(requests::summary)))
        .route("/settings/event-types", get(door.read(event_types::list)))
        .route("/settings/keys", get(door.read(keys::list)).post(door.write::<keys::Create>()))
        .route("/settings/keys/{id}/rotate", post(door.write::<keys::Rotate>()))
        .route("/settings/keys/{id}", patch(door.write::<keys::Change>()).delete(door.write::<keys::Revoke>()))
        .route("/settings/webhooks", get(door.read(webhooks::list)).post(door.write::<webhooks::Create>()))
        .route("/settings/webhooks/{id}", webhook)
        .route("/settings/webhooks/{id}/rotate-secret", post(door.write::<webhooks::RotateSecret>()))
        .route("/settings/webhooks/{id}/test", post(door.write::<redelivery::Test>()))
        .route("/settings/webhooks/{id}/recover", post(door.write::<redelivery::Recover>()))
        .route("/settings/webhooks/{id}/deliveries", get(door.read(deliveries::list)))
        .route("/settings/webhooks/{id}/deliveries/{delivery_id}", get(door.read(deliveries::read)))
        .route("/settings/webhooks/{id}/deliveries/{delivery_id}/retry", retry)
        .route("/settings/webhooks/{id}/activity", get(door.read(activity::read)))
        .route("/settings/deliveries", get(door.read(deliveries::list_all)))
        .route("/settings/deliveries/activity", get(door.read(activity::read_all))))
}
