//! Login links for clients: minted for partners, opened by clients, used once. The application gets an assertion, which
//! it verifies with the published keys.

mod app;
mod keys;
mod mint;
mod open;
mod show;
mod verify;

use axum::Router;
use axum::routing::{get, post};
use edge::{Door, Partner};
use runtime::{BoxError, Environment};
use store::Db;

use crate::app::App;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let app = App::new(env, &db).await?;
    let door = Door::<Partner, _>::new(env, &db, app.clone())?;
    let router = Router::new()
        .route("/v1/clients/{clientId}/login-link", post(door.read_early(mint::find, mint::mint)))
        .route("/login/{token}", get(show::show).post(verify::verify))
        .route("/.well-known/jwks.json", get(keys::keys));
    Ok(router.with_state(app))
}
