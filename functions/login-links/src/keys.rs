//! `GET /.well-known/jwks.json`: the keys that verify assertions. All of the secret's keys are there, so that a new one
//! is known before it signs.

use axum::extract::State;
use axum::response::Response;
use edge::{Inbound, Reply};

use crate::App;

/// How long a verifier may keep the set. A new key is published for longer than that before it signs.
const MAX_AGE_S: u32 = 300;

pub(crate) async fn keys(State(app): State<App>, inbound: Inbound) -> Response {
    let kept = format!("public, max-age={MAX_AGE_S}");
    let set = Reply::ok(app.signer.jwk_set()).map(|set| set.header("cache-control", kept));
    set.unwrap_or_else(|problem| Reply::problem(&problem, &inbound)).into_response_for(&inbound)
}
