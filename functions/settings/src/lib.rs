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
mod session;
mod webhooks;
mod workspace;

use axum::Router;
use axum::routing::{get, patch, post};
use runtime::{BoxError, Environment};

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let router = Router::new()
        .route("/settings/workspace", get(workspace::read))
        .route("/settings/audit", get(audit::list))
        .route("/settings/event-types", get(event_types::list))
        .route("/settings/keys", get(keys::list).post(keys::create))
        .route("/settings/keys/{id}/rotate", post(keys::rotate))
        .route("/settings/keys/{id}", patch(keys::change).delete(keys::revoke))
        .route("/settings/webhooks", get(webhooks::list).post(webhooks::create))
        .route("/settings/webhooks/{id}", get(webhooks::read).patch(webhooks::change).delete(webhooks::delete))
        .route("/settings/webhooks/{id}/rotate-secret", post(webhooks::rotate_secret))
        .route("/settings/webhooks/{id}/test", post(redelivery::test))
        .route("/settings/webhooks/{id}/recover", post(redelivery::recover))
        .route("/settings/webhooks/{id}/deliveries", get(deliveries::list))
        .route("/settings/webhooks/{id}/deliveries/{delivery_id}", get(deliveries::read))
        .route("/settings/webhooks/{id}/deliveries/{delivery_id}/retry", post(redelivery::retry))
        .route("/settings/webhooks/{id}/activity", get(activity::read))
        .route("/settings/deliveries", get(deliveries::list_all))
        .route("/settings/deliveries/activity", get(activity::read_all));
    Ok(router.with_state(App::new(env).await?))
}
