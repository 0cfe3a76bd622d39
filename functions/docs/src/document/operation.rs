//! An operation of the document, and its rendering as JSON.
//!
//! An operation names its route, its parameters and the types of its bodies. `reference` has the words. The parameters,
//! headers and refusals that follow from the route are added by rule.

use std::fmt::Display;

use domain::cursor::CURSOR_RULE;
use domain::fields::Invalid;
use domain::id::InvalidUuid;
use domain::id_kind::IdKind;
use domain::idempotency::{KEY_PATTERN, MAX_KEY_CHARS};
use domain::list::PageSize;
use domain::openapi::Body;
use edge::Problem;
use edge::problem::Fault;
use edge::routes::{Access, Idempotency, ROUTES, Route};
use serde_json::{Map, Value, json};

use super::access::{self, GATEWAY, may_come_from_gateway};
use super::answer::Answer;
use super::components::{Responses, Schemas};
use super::problems;
use super::prose::Prose;

/// An operation, built step by step.
pub(super) struct Operation {
    pub(super) route: &'static Route,
    id: &'static str,
    prose: Prose,
    /// The operation as JSON, without its responses.
    rendered: Value,
    answers: Vec<Answer>,
    refusals: Vec<Problem>,
    replays: bool,
    has_pages: bool,
    schemas: Schemas,
}

impl Operation {
    /// Creates the operation of a route, with everything that follows from the route.
    pub(super) fn new(method: &str, path: &str, id: &'static str) -> Self {
        let route = ROUTES.iter().find(|route| (route.method, route.path) == (method, path));
        let route = route.unwrap_or_else(|| panic!("ROUTES in lib/edge/src/routes.rs lacks {method} {path}"));
        let prose = Prose::of(id, access::name_of(route.access));
        let mut about = prose.section.about.clone();
        let mut rendered = json!({
            "operationId": id, "tags": [prose.tag.top.title], "summary": prose.section.title,
            "security": access::security(route.access),
        });
        if let Some(permission) = route.permission() {
            rendered["x-permission"] = json!(permission.as_str());
            about += &format!("\n\nNeeds the permission `{}`.", permission.as_str());
        }
        if !about.is_empty() {
            rendered["description"] = json!(about);
        }
        let operation = Self {
            route,
            id,
            prose,
            rendered,
            answers: Vec::new(),
            refusals: access::refusals(route.access),
            replays: false,
            has_pages: false,
            schemas: Schemas::default(),
        };
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let operation = names.zip(route.ids).fold(operation, |operation, (name, kind)| operation.with_id(name, *kind));
        match route.idempotency() {
            Idempotency::Required => operation.idempotent(true).refuses([
                Problem::IdempotencyKeyRequired,
                Problem::IdempotencyKeyInvalid,
                Problem::IdempotencyPayloadMismatch,
                Problem::PersonErased,
                Problem::Unconfirmed(Fault { doing: "", source: "".into() }),
            ]),
            Idempotency::Optional => operation
                .idempotent(false)
                .refuses([Problem::IdempotencyKeyInvalid, Problem::IdempotencyPayloadMismatch]),
            Idempotency::HeaderOrEmail => {
                operation.idempotent(false).refuses([Problem::IdempotencyKeyInvalid, Problem::PersonErased])
            }
            Idempotency::None => operation,
        }
    }

    fn with_id(self, name: &str, kind: IdKind) -> Self {
        let schema = if kind.is_uuid() { uuid() } else { json!({ "type": "string", "minLength": 1 }) };
        let operation = self.parameter(json!({
            "name": name, "in": "path", "required": true, "schema": schema, "example": kind.example(),
        }));
        // A login link that does not work is answered with a page.
        let missing = (kind != IdKind::LoginToken).then(|| Problem::not_found(kind));
        operation.refuses(missing).refuses(kind.is_uuid().then(|| invalid("id", InvalidUuid)))
    }

    /// Takes an idempotency key, and replays recorded answers.
    fn idempotent(mut self, required: bool) -> Self {
        self.replays = true;
        // Each operation has an example of its own: a key stands for one request.
        let example = format!("{}-20261120-0017", self.id);
        self.refuses([Problem::IdempotencyInProgress]).parameter(json!({
            "name": "Idempotency-Key", "in": "header", "required": required, "example": example,
            "schema": { "type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": KEY_PATTERN },
        }))
    }

    /// Adds a path parameter.
    pub(super) fn in_path(self, name: &str, schema: Value) -> Self {
        self.parameter(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    }

    /// Adds an optional query parameter.
    pub(super) fn in_query(self, name: &str, schema: Value) -> Self {
        self.parameter(json!({ "name": name, "in": "query", "schema": schema }))
    }

    /// Adds a filter: a query parameter that filters nothing if it is empty.
    pub(super) fn filter(self, name: &str, schema: Value) -> Self {
        let about = format!("{} Empty: no filter.", self.prose.part(name).unwrap_or_default());
        self.parameter(json!({ "name": name, "in": "query", "schema": or_empty(schema), "description": about }))
    }

    /// Adds a query parameter for a size. Its values are never refused.
    pub(super) fn size(self, name: &str, items: &str, PageSize { default, max }: PageSize) -> Self {
        let about = format!(
            "{items}: 1 to {max}. Never refused: a greater value counts as {max}; a value that is not a positive \
             integer in plain digits counts as {default}."
        );
        let schema = json!({ "type": ["integer", "string"], "default": default });
        self.parameter(json!({ "name": name, "in": "query", "schema": schema, "description": about }))
    }

    /// Adds the parameter for the next page, and a link to the next page.
    pub(super) fn cursor(self) -> Self {
        self.cursor_of(json!({ "type": "string", "format": "cursor" })).refuses([invalid("cursor", CURSOR_RULE)])
    }

    /// Adds the parameter for the next page with a schema of its own, and a link to the next page.
    pub(super) fn cursor_of(mut self, schema: Value) -> Self {
        self.has_pages = true;
        self.in_query("cursor", schema)
    }

    /// Adds a parameter of any kind. `reference` describes it, unless it has a description.
    pub(super) fn parameter(mut self, mut parameter: Value) -> Self {
        let about = parameter["name"].as_str().and_then(|name| self.prose.part(name));
        if let (None, Some(about)) = (parameter.get("description"), about) {
            parameter["description"] = json!(about);
        }
        match &mut self.rendered["parameters"] {
            Value::Array(parameters) => parameters.push(parameter),
            none => *none = json!([parameter]),
        }
        self
    }

    /// Sets the JSON body. Its schema is named after the operation. Examples are added by [`Operation::example`].
    pub(super) fn body(mut self, body: Body) -> Self {
        let name = self.id[..1].to_uppercase() + &self.id[1..];
        let schema = self.schemas.insert(&name, body.into_json());
        let content = json!({ "application/json": { "schema": schema, "examples": {} } });
        self.rendered["requestBody"] = json!({ "required": true, "content": content });
        // The CRM answers every invalid body with one code, `invalid_request`.
        let is_crm = matches!(self.route.access, Access::Crm(_));
        let invalid_json = || Problem::InvalidJson("EOF while parsing an object at line 1 column 1".to_owned());
        self.refuses((!is_crm).then(invalid_json)).refuses([Problem::UnsupportedMediaType])
    }

    /// Sets a JSON body that callers may omit.
    pub(super) fn optional_body(self, body: Body) -> Self {
        let mut operation = self.body(body);
        operation.rendered["requestBody"]["required"] = json!(false);
        operation
    }

    /// Adds an example of the body.
    pub(super) fn example(mut self, name: &str, value: Value) -> Self {
        let content = &mut self.rendered["requestBody"]["content"]["application/json"];
        content["examples"][name] = json!({ "value": value });
        self
    }

    pub(super) fn answers(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    /// Adds problems that the operation can answer with.
    pub(super) fn refuses(mut self, problems: impl IntoIterator<Item = Problem>) -> Self {
        self.refusals.extend(problems);
        self
    }

    /// Renders the operation as JSON. Its schemas and refusals go to the components.
    pub(super) fn render(self, schemas: &mut Schemas, responses: &mut Responses) -> Value {
        let (access, replays, mut operation) = (self.route.access, self.replays, self.rendered);
        schemas.0.extend(self.schemas.0);
        let mut by_status = Map::new();
        for answer in self.answers {
            let headers = access::headers(access, answer.status, replays);
            let answer = if self.has_pages { answer.link_to_next_page(self.id, self.route.path) } else { answer };
            by_status.insert(answer.status.to_string(), answer.render(self.prose, headers, schemas));
        }
        let mut refusals = self.refusals;
        refusals.sort_by_key(|refusal| refusal.code().status());
        for group in refusals.chunk_by(|one, other| one.code().status() == other.code().status()) {
            let status = group[0].code().status().as_u16();
            let (name, response) = problems::response(status, group, access, replays);
            by_status.insert(status.to_string(), responses.add(&name, response));
        }
        for status in GATEWAY.into_iter().filter(|status| may_come_from_gateway(access, *status)) {
            let response = || responses.add("Gateway", problems::gateway_response(status));
            by_status.entry(status.to_string()).or_insert_with(response);
        }
        operation["responses"] = Value::Object(by_status);
        operation
    }
}

/// The schema of a query parameter that may be empty.
pub(super) fn or_empty(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "string", "maxLength": 0 }] })
}

pub(super) fn matching(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

pub(super) fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

/// Refusal of a field or parameter.
pub(super) fn invalid(field: &str, rule: impl Display) -> Problem {
    Problem::Invalid(Invalid::field(field, rule))
}
