//! The OpenAPI 3.1 document: what is answered from the types that the handlers answer with, request bodies from what
//! stands beside their parsers, refusals from the problems of `edge`.
//!
//! utoipa gives the schemas. The rest is put together as JSON: its types have no place for webhooks, or for a header
//! that is always there.

mod crm_examples;
mod events;
mod examples;
mod headers;
mod operation;
mod operations;
mod problems;
mod schemas;
mod share;
mod webhooks;

use serde_json::{Value, json};

use schemas::Schemas;
use share::Shared;

/// Version of the API's description.
pub const VERSION: &str = "1.2.0";

/// The document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let mut shared = Shared::default();
    let paths = paths(&mut schemas, &mut shared);
    let webhooks = webhooks::all(&mut schemas);
    schemas.insert("Error", problems::error_schema());
    schemas.insert("Problem", problems::problem_schema());
    schemas.insert("GatewayError", problems::gateway_schema());
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Partner API", "version": VERSION, "summary": SUMMARY, "description": DESCRIPTION },
        "servers": [{ "url": "/" }],
        "externalDocs": { "url": "/docs", "description": "Reference and guides" },
        "tags": operations::tags(),
        "paths": paths,
        "webhooks": webhooks,
        "components": { "securitySchemes": security_schemes(), "headers": headers::components() },
    });
    shared.finish(&mut document);
    schemas.finish(&mut document);
    document
}

const SUMMARY: &str =
    "A coach's own systems create and manage clients, keep contacts and bookings, and learn what happens.";

const DESCRIPTION: &str = "\
The coach is taken from the key; no request names one. Additions to answers are not announced: ignore members that you do not know. \
Branch on the status and on `code`, never on the text in `error`.

A path that does not exist is 404 `unknown_path`, and another method on one that does is 405 `method_not_allowed` with `Allow`. Errors \
come as `application/problem+json` (RFC 9457) where `Accept` names it.

Guides: [getting started](/docs/guides/getting-started), [the CRM](/docs/guides/crm), [idempotency](/docs/guides/idempotency), \
[errors](/docs/guides/errors), [limits](/docs/guides/limits), [events](/docs/guides/events), [verifying them](/docs/guides/verifying).";

/// Part after part: what an operation has in common with others is let go of before the next is made.
fn paths(schemas: &mut Schemas, shared: &mut Shared) -> Value {
    let mut paths = json!({});
    for part in operations::PARTS {
        for operation in (part.operations)(schemas) {
            let (path, method) = (operation.path, operation.method.to_lowercase());
            let mut rendered = operation.render(part.tag);
            shared.take(&mut rendered);
            paths[path][method] = rendered;
        }
    }
    paths
}

fn security_schemes() -> Value {
    json!({
        operation::BEARER_KEY: {
            "type": "http", "scheme": "bearer",
            "description": "A partner key, from the coach's settings (Private Integrations): `Authorization: Bearer svc_live_...`.",
        },
        operation::KEY_HEADER: {
            "type": "apiKey", "in": "header", "name": "X-Api-Key",
            "description": "The same key in a header of its own. Send one of the two.",
        },
        operation::CRM_BEARER_KEY: {
            "type": "http", "scheme": "bearer",
            "description": "A CRM key, with the permission that the operation names: `Authorization: Bearer crm_live_...`. Partner keys \
                            do not open the CRM, nor CRM keys the rest.",
        },
        operation::CRM_KEY_HEADER: {
            "type": "apiKey", "in": "header", "name": "X-Api-Key",
            "description": "The same CRM key in a header of its own. Send one of the two.",
        },
        operation::COACH_SESSION: {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "The application's token of a signed-in coach. API keys do not open the settings.",
        },
    })
}

#[cfg(test)]
mod tests;
