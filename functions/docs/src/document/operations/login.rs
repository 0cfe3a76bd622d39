//! Login links, their page, and the keys that verify assertions.

use domain::login_link::LOGIN_LINK_LIFE;
use edge::Problem;
use serde_json::json;

use super::{Operation, Schemas, identifier, with_client_id};
use crate::document::examples::{jwks, login_link};
use crate::document::headers::{CACHE_CONTROL, LOCATION, always};
use crate::document::operation::Answer;

const TOKEN_EXAMPLE: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA";
const LINK_DEAD: &str = "The link is unknown, used, expired or revoked. The page does not say which.";
const FAULT: &str = "A fault of the service. The page shows a reference for support.";

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![create_link(schemas), show_page(), probe(), use_link(), list_keys(schemas)]
}

fn create_link(schemas: &mut Schemas) -> Operation {
    with_client_id(Operation::new(
        "POST",
        "/v1/clients/{clientId}/login-link",
        "createLoginLink",
        "Create a login link",
    ))
    .about(format!(
        "The URL is a credential: it signs in any person who opens it. The URL works once, within {} minutes. The service \
         does not store it. Use it with `send_welcome: false`. This operation has its own rate limit besides that of the \
         key.",
        LOGIN_LINK_LIFE.num_minutes()
    ))
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

fn show_page() -> Operation {
    page("GET", "showLogin", "Show the page of a login link")
        .about(
            "A page with a button. Opening the page changes nothing, because mail scanners open links before people \
             do.",
        )
        .answers(html(200, "The page."))
        .answers(html(410, LINK_DEAD))
        .answers(html(500, FAULT))
}

fn probe() -> Operation {
    page("HEAD", "probeLogin", "Check whether a login link works")
        .answers(Answer::new(200, "The link would work."))
        .answers(Answer::new(410, LINK_DEAD))
        .answers(Answer::new(500, FAULT))
}

fn use_link() -> Operation {
    page("POST", "useLogin", "Use a login link")
        .about(
            "The page's button sends this request. It works once: the service redirects the browser to the coach's \
             application, `/session#token=...`, with a signed assertion in the fragment. The assertion is valid for 60 \
             seconds.",
        )
        .answers(Answer::new(303, "The redirect to the application.").header(always(LOCATION)))
        .answers(html(410, LINK_DEAD))
        .answers(html(413, "The body is too large. The request needs none."))
        .answers(html(500, FAULT))
}

fn list_keys(schemas: &mut Schemas) -> Operation {
    Operation::new("GET", "/.well-known/jwks.json", "listVerificationKeys", "List the keys that verify sign-ins")
        .about("A JSON Web Key Set (RFC 7517). A new key is listed before it signs.")
        .answers(Answer::of(schemas, 200, "The keys.", "keys", &jwks()).header(always(CACHE_CONTROL)))
        .refuses([Problem::internal("", "")])
}
