//! Login links for clients: minted for partners, opened by clients, used once. The application gets an assertion, which
//! it verifies with the published keys.

mod keys;
mod mint;
mod open;
mod show;
mod verify;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use domain::assertion::AssertionSigner;
use edge::Gate;
use runtime::{BoxError, Clock, Environment};
use store::Db;
use store::client::ClientLookup;
use store::login_link::LoginLinks;
use store::vault::assertion_signer;
use store::workspace::Workspaces;

#[derive(Clone)]
struct App {
    gate: Gate,
    clients: ClientLookup,
    workspaces: Workspaces,
    links: LoginLinks,
    signer: Arc<AssertionSigner>,
    issuer: Arc<str>,
    clock: Arc<dyn Clock>,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let clients = ClientLookup::new(env, &db)?;
    let app = App {
        gate: Gate::new(env, &db)?,
        workspaces: Workspaces::new(env, &db)?,
        links: LoginLinks::new(env, &db, &clients)?,
        clients,
        signer: assertion_signer(env).await?,
        issuer: env.config().get("ASSERTION_ISSUER")?.into(),
        clock: env.clock(),
    };
    let router = Router::new()
        .route("/v1/clients/{clientId}/login-link", post(mint::mint))
        .route("/login/{token}", get(show::show).post(verify::verify))
        .route("/.well-known/jwks.json", get(keys::keys));
    Ok(router.with_state(app))
}
