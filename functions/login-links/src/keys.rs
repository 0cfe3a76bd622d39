//! `GET /.well-known/jwks.json`: the keys that verify assertions. The set holds all keys of the secret, so verifiers
//! know a new key before it signs.

use axum::extract::State;
use axum::response::Response;
use edge::{Inbound, Reply};

use crate::App;

/// Cache time of the key set. A new key is published for longer before it signs.
const MAX_AGE_S: u32 = 300;

pub(crate) async fn keys(State(app): State<App>, inbound: Inbound) -> Response {
    let kept = format!("public, max-age={MAX_AGE_S}");
    let set = Reply::ok(app.signer.jwk_set()).map(|set| set.header("cache-control", kept));
    set.unwrap_or_else(|problem| Reply::problem(&problem, &inbound)).into_response_for(&inbound)
}
