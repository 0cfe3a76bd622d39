//! The OpenAPI 3.1 document.
//!
//! Schemas of answers derive from the handlers' types, and examples are values of these types. Schemas of request
//! bodies stand beside their parsers. Refusals derive from `edge::Problem`. So the document cannot differ from the
//! code.
//!
//! utoipa derives the schemas. Everything else is written as JSON, because utoipa cannot express webhooks, required
//! headers, refused members and limits from constants.

mod crm_examples;
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
use share::SharedResponses;

/// Version of the interface, which its owner sets. Additions do not raise it.
pub(crate) const VERSION: &str = "1.2.0";

/// Builds the document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let mut shared = SharedResponses::default();
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
    "A coach's own systems create and manage clients, keep contacts and bookings, and receive signed events.";

const DESCRIPTION: &str = "\
The key determines the coach: no request names one. Ignore unknown members of an answer: new members arrive without \
notice. Branch on the status and on `code`, never on the text in `error`.

An unknown path is 404 `unknown_path`. An unknown method of a path is 405 `method_not_allowed` with `Allow`. Errors \
are `application/problem+json` (RFC 9457) if `Accept` names it.

Guides: [getting started](/docs/guides/getting-started), [the CRM](/docs/guides/crm), \
[idempotency](/docs/guides/idempotency), [errors](/docs/guides/errors), [limits](/docs/guides/limits), \
[events](/docs/guides/events), [verify webhooks](/docs/guides/verifying).";

/// Renders the operations group by group. Shared responses shrink to texts at once, because all responses as values
/// would take many megabytes.
fn paths(schemas: &mut Schemas, shared: &mut SharedResponses) -> Value {
    let mut paths = json!({});
    for group in operations::GROUPS {
        for operation in (group.operations)(schemas) {
            let (path, method) = (operation.path, operation.method.to_lowercase());
            let mut rendered = operation.render(group.tag);
            shared.extract(&mut rendered);
            paths[path][method] = rendered;
        }
    }
    paths
}

fn security_schemes() -> Value {
    json!({
        operation::BEARER_KEY: {
            "type": "http", "scheme": "bearer",
            "description": "A partner key: `Authorization: Bearer svc_live_...`. The coach creates it under Settings, \
                            Private Integrations.",
        },
        operation::KEY_HEADER: {
            "type": "apiKey", "in": "header", "name": "X-Api-Key",
            "description": "The same key in the header `X-Api-Key`. Send one of the two headers.",
        },
        operation::CRM_BEARER_KEY: {
            "type": "http", "scheme": "bearer",
            "description": "A CRM key with the permission that the operation needs: `Authorization: Bearer \
                            crm_live_...`. Partner keys do not open the CRM, and CRM keys open nothing else.",
        },
        operation::CRM_KEY_HEADER: {
            "type": "apiKey", "in": "header", "name": "X-Api-Key",
            "description": "The same CRM key in the header `X-Api-Key`. Send one of the two headers.",
        },
        operation::COACH_SESSION: {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "The application's token of a signed-in coach. API keys do not open the settings.",
        },
    })
}

#[cfg(test)]
mod tests;
