//! The portal: the page on which coaches manage keys and webhooks. An application frames the page, or opens it with a
//! session.
//!
//! The function serves the page, its script, style sheet and icons. It has no tables and no secrets: the page calls the
//! settings API of the same origin with the coach's session.

mod assets;
mod bundle;
mod origin;
mod vocabulary;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::mode::Mode;
use edge::{Inbound, Problem, Reply};
use runtime::{BoxError, Environment};

use crate::assets::Assets;
use crate::origin::Origin;

/// Variable with the origin of the application that frames the page.
const ORIGIN: &str = "SETTINGS_PAGE_ORIGIN";

#[derive(Clone)]
struct App(Arc<Assets>);

/// Builds the function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let origin: Origin = env.config().parse(ORIGIN)?;
    let assets = Assets::new(&origin, env.config().parse::<Mode>(Mode::SETTING)?)?;
    let router = Router::new()
        .route("/portal", get(async |State(app): State<App>, inbound: Inbound| app.0.page.answer(&inbound)))
        .route("/portal/assets/{file}", get(asset));
    Ok(router.with_state(App(Arc::new(assets))))
}

async fn asset(State(app): State<App>, inbound: Inbound) -> Response {
    match app.0.files.get(inbound.parameter(0)) {
        Some(file) => file.answer(&inbound),
        None => Reply::problem(&Problem::NotFound("file"), &inbound).into_response_for(&inbound),
    }
}
