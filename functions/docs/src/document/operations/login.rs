//! Login links: minted, shown, used; and the keys behind the assertions.

use edge::Problem;
use serde_json::json;

use super::{Operation, Schemas, identifier, of_client};
use crate::document::examples::{jwks, login_link};
use crate::document::headers::{CACHE_CONTROL, LOCATION, always};
use crate::document::operation::Answer;

const TOKEN_EXAMPLE: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA";
const DEAD: &str = "The link is unknown, used, expired or revoked. The page does not say which.";
const FAULT: &str = "A fault of the service. The page shows a reference for support.";

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![mint(schemas), show(), show_head(), verify(), keys(schemas)]
}

fn mint(schemas: &mut Schemas) -> Operation {
    of_client(Operation::new("POST", "/v1/clients/{clientId}/login-link", "createLoginLink", "Create a login link"))
        .about(
            "The URL is a credential: it signs in any person who opens it. The URL works once, within 15 minutes. The \
             service does not store it. Use it with `send_welcome: false`. This operation has its own rate limit \
             besides that of the key.",
        )
        .answers(Answer::of(schemas, 200, "The link.", "link", &login_link()))
        .refuses([Problem::NoLoginEmail, Problem::ClientInactive])
}

fn page(method: &'static str, id: &'static str, summary: &'static str) -> Operation {
    let operation = Operation::new(method, "/login/{token}", id, summary);
    operation.in_path("token", identifier(), "The link's token.", TOKEN_EXAMPLE)
}

fn html(status: u16, about: &'static str) -> Answer {
    Answer::new(status, about).content("text/html", json!({ "type": "string" }))
}

fn show() -> Operation {
    page("GET", "showLogin", "Show the page of a login link")
        .about(
            "A page with a button. Opening the page changes nothing, because mail scanners open links before people \
             do.",
        )
        .answers(html(200, "The page."))
        .answers(html(410, DEAD))
        .answers(html(500, FAULT))
}

fn show_head() -> Operation {
    page("HEAD", "probeLogin", "Check whether a login link works")
        .answers(Answer::new(200, "The link would work."))
        .answers(Answer::new(410, DEAD))
        .answers(Answer::new(500, FAULT))
}

fn verify() -> Operation {
    page("POST", "useLogin", "Use a login link")
        .about(
            "The page's button sends this request. It works once: the service redirects the browser to the coach's \
             application, `/session#token=...`, with a signed assertion in the fragment. The assertion is valid for 60 \
             seconds.",
        )
        .answers(Answer::new(303, "The redirect to the application.").sends(always(LOCATION)))
        .answers(html(410, DEAD))
        .answers(html(413, "The body is too large. The request needs none."))
        .answers(html(500, FAULT))
}

fn keys(schemas: &mut Schemas) -> Operation {
    Operation::new("GET", "/.well-known/jwks.json", "listVerificationKeys", "List the keys that verify sign-ins")
        .about("A JSON Web Key Set (RFC 7517). A new key is listed before it signs.")
        .answers(Answer::of(schemas, 200, "The keys.", "keys", &jwks()).sends(always(CACHE_CONTROL)))
        .refuses([Problem::internal("", "")])
}
