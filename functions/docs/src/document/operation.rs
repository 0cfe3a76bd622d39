//! An operation: the document renders it as JSON, the reference as a section.
//!
//! An operation names its route, its parameters and the types of its bodies. `reference` has the words. The parameters,
//! headers and refusals that follow from the route are added by rule.

use std::collections::BTreeMap;
use std::fmt::Display;

use domain::api_key::Permission;
use domain::cursor::CURSOR_RULE;
use domain::fields::Invalid;
use domain::id::InvalidUuid;
use domain::id_kind::IdKind;
use domain::idempotency::{KEY_PATTERN, MAX_KEY_CHARS};
use domain::list::PageSize;
use domain::name_filter::{MAX_NAME_FILTER_CHARS, MIN_NAME_FILTER_CHARS};
use domain::openapi::Body;
use edge::Problem;
use edge::problem::Fault;
use edge::routes::{Access, Idempotency, ROUTES, Route};
use serde_json::{Map, Value, json};

use super::access::{self, GATEWAY, may_come_from_gateway};
use super::answer::Answer;
use super::components::{Responses, Schemas};
use super::parameter::{Parameter, Place};
use super::problems;
use super::prose::Prose;
use super::response::{self, Example, JSON, Response};

/// Name of the header for the idempotency key.
pub(crate) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
/// Id of the operation that removes a workspace's test data.
pub(super) const WIPE: &str = "wipeTestData";

/// An operation, built step by step.
pub(crate) struct Operation {
    pub(crate) route: &'static Route,
    pub(super) id: &'static str,
    prose: Prose,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<RequestBody>,
    answers: Vec<Answer>,
    refusals: Vec<Problem>,
    replays: bool,
    has_pages: bool,
    is_in_sandbox: bool,
    schemas: Schemas,
}

/// The JSON body of a request.
pub(crate) struct RequestBody {
    pub(crate) is_required: bool,
    pub(crate) content: response::Body,
}

impl Operation {
    /// Creates the operation of a route, with everything that follows from the route.
    pub(super) fn new(method: &str, path: &str, id: &'static str) -> Self {
        let route = ROUTES.iter().find(|route| (route.method, route.path) == (method, path));
        let route = route.unwrap_or_else(|| panic!("ROUTES in lib/edge/src/routes.rs lacks {method} {path}"));
        let operation = Self {
            route,
            id,
            prose: Prose::of(id, access::name_of(route.access)),
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: access::refusals(route.access),
            replays: false,
            has_pages: false,
            is_in_sandbox: false,
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
        let operation = self.parameter(Parameter::new(Place::Path, name, schema).example(kind.example()));
        // A login link that does not work is answered with a page.
        let missing = (kind != IdKind::LoginToken).then(|| Problem::not_found(kind));
        operation.refuses(missing).refuses(kind.is_uuid().then(|| invalid("id", InvalidUuid)))
    }

    /// Takes an idempotency key, and replays recorded answers.
    fn idempotent(mut self, required: bool) -> Self {
        self.replays = true;
        // Each operation has an example of its own: a key stands for one request.
        let example = format!("{}-20261120-0017", self.id);
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": KEY_PATTERN });
        let header = Parameter::new(Place::Header, IDEMPOTENCY_KEY, schema).required(required).example(example);
        self.refuses([Problem::IdempotencyInProgress]).parameter(header)
    }

    /// Adds a path parameter.
    pub(super) fn in_path(self, name: &str, schema: Value) -> Self {
        self.parameter(Parameter::new(Place::Path, name, schema))
    }

    /// Adds an optional query parameter.
    pub(super) fn in_query(self, name: &str, schema: Value) -> Self {
        self.parameter(Parameter::new(Place::Query, name, schema))
    }

    /// Adds a filter: a query parameter that filters nothing if it is empty.
    pub(super) fn filter(self, name: &str, schema: Value) -> Self {
        let about = format!("{} Empty: no filter.", self.prose.part(name).unwrap_or_default());
        self.parameter(Parameter::new(Place::Query, name, or_empty(schema)).about(about))
    }

    /// Adds a query parameter for a size. Its values are never refused.
    pub(super) fn size(self, name: &str, items: &str, PageSize { default, max }: PageSize) -> Self {
        let about = format!(
            "{items}: 1 to {max}. Never refused: a greater value counts as {max}; a value that is not a positive \
             integer in plain digits counts as {default}."
        );
        let schema = json!({ "type": ["integer", "string"], "default": default });
        self.parameter(Parameter::new(Place::Query, name, schema).about(about))
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
    pub(super) fn parameter(mut self, mut parameter: Parameter) -> Self {
        parameter.about = parameter.about.or_else(|| self.prose.part(&parameter.name).map(str::to_owned));
        self.parameters.push(parameter);
        self
    }

    /// Sets the JSON body. Its schema is named after the operation. Examples are added by [`Operation::example`].
    pub(super) fn body(mut self, body: Body) -> Self {
        let name = self.id[..1].to_uppercase() + &self.id[1..];
        let schema = self.schemas.insert(&name, body.into_json());
        let content = response::Body { media_type: JSON, schema, examples: Vec::new() };
        self.body = Some(RequestBody { is_required: true, content });
        // The CRM answers every invalid body with one code, `invalid_request`.
        let is_crm = matches!(self.route.access, Access::Crm(_));
        let invalid_json = || Problem::InvalidJson("EOF while parsing an object at line 1 column 1".to_owned());
        self.refuses((!is_crm).then(invalid_json)).refuses([Problem::UnsupportedMediaType])
    }

    /// Sets a JSON body that callers may omit.
    pub(super) fn optional_body(self, body: Body) -> Self {
        let operation = self.body(body);
        let body = operation.body.map(|body| RequestBody { is_required: false, ..body });
        Self { body, ..operation }
    }

    /// Adds an example of the body.
    pub(super) fn example(mut self, name: &str, value: Value) -> Self {
        let body = self.body.as_mut().expect("the operation takes a body");
        body.content.examples.push(Example { name: name.to_owned(), value });
        self
    }

    pub(super) fn answers(mut self, answer: Answer) -> Self {
        let (id, path) = (self.id, self.route.path);
        self.answers.push(if self.has_pages { answer.link_to_next_page(id, path) } else { answer });
        self
    }

    /// Adds the refusal of a query parameter that the operation does not have.
    pub(super) fn refuses_unknown(self, name: &str) -> Self {
        let refusal = Problem::Invalid(Invalid::unknown_parameter(name, self.route.query));
        self.refuses([refusal])
    }

    /// Adds problems that the operation can answer with.
    pub(super) fn refuses(mut self, problems: impl IntoIterator<Item = Problem>) -> Self {
        self.refusals.extend(problems);
        self
    }

    /// Adds what a sandbox adds to every operation: a header, and of writes the refusal while test data is removed.
    pub(super) fn in_sandbox(self) -> Self {
        let Route { access, .. } = *self.route;
        // A repeated order to remove the data joins the first.
        let is_refused = self.route.writes() && access != Access::Public && self.id != WIPE;
        Self { is_in_sandbox: true, ..self.refuses(is_refused.then_some(Problem::TestDataWiping)) }
    }

    /// The title of the operation's tag.
    pub(crate) fn tag(&self) -> &'static str {
        &self.prose.tag.top.title
    }

    pub(crate) fn summary(&self) -> &'static str {
        &self.prose.section.title
    }

    /// The description, in Markdown.
    pub(crate) fn about(&self) -> &'static str {
        &self.prose.section.about
    }

    /// Returns true if a key opens the operation.
    pub(crate) fn is_for_keys(&self) -> bool {
        self.route.takes_key()
    }

    /// Moves the operation's schemas to those of the document.
    pub(super) fn move_schemas(&mut self, schemas: &mut Schemas) {
        let own = self.answers.iter_mut().map(|answer| &mut answer.schemas).chain([&mut self.schemas]);
        own.for_each(|own| schemas.0.append(&mut own.0));
    }

    /// Returns the responses, in the order of their statuses. `schemas` are those of the document.
    pub(crate) fn responses(&self, schemas: &Schemas) -> Vec<Response> {
        let (access, replays) = (self.route.access, self.replays);
        let answers = self
            .answers
            .iter()
            .map(|answer| answer.response(self.prose, access::headers(access, answer.status, replays), schemas));
        let mut by_status: BTreeMap<u16, Response> = answers.map(|answer| (answer.status, answer)).collect();
        let mut refusals: BTreeMap<u16, Vec<&Problem>> = BTreeMap::new();
        for refusal in &self.refusals {
            refusals.entry(refusal.code().status().as_u16()).or_default().push(refusal);
        }
        for (status, group) in refusals {
            by_status.insert(status, problems::response(status, &group, access, replays));
        }
        if self.is_in_sandbox {
            let responses = by_status.iter_mut();
            responses.for_each(|(status, one)| one.headers.push(access::header_of_sandbox(access, *status)));
        }
        for status in GATEWAY.into_iter().filter(|status| may_come_from_gateway(access, *status)) {
            by_status.entry(status).or_insert_with(|| problems::gateway_response(status));
        }
        by_status.into_values().collect()
    }

    /// Renders the operation as JSON. Shared responses go to the components.
    pub(super) fn to_json(&self, schemas: &Schemas, shared: &mut Responses) -> Value {
        let mut operation = json!({
            "operationId": self.id, "tags": [self.tag()], "summary": self.summary(),
            "security": access::security(self.route.access),
        });
        let permission = self.route.permission().map(Permission::as_str);
        let needed = permission.map(|name| format!("Needs the permission `{name}`."));
        if let Some(permission) = permission {
            operation["x-permission"] = json!(permission);
        }
        let about: Vec<&str> =
            [self.about(), needed.as_deref().unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect();
        if !about.is_empty() {
            operation["description"] = json!(about.join("\n\n"));
        }
        if !self.parameters.is_empty() {
            operation["parameters"] = self.parameters.iter().map(Parameter::to_json).collect();
        }
        if let Some(body) = &self.body {
            operation["requestBody"] =
                json!({ "required": body.is_required, "content": { JSON: body.content.to_json() } });
        }
        let response = |response: Response| {
            let json = response.to_json();
            let json = response.shared_as.as_ref().map_or(json.clone(), |name| shared.add(name, json));
            (response.status.to_string(), json)
        };
        operation["responses"] = self.responses(schemas).into_iter().map(response).collect::<Map<_, _>>().into();
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

/// The schema of a part of a name.
pub(super) fn name_filter() -> Value {
    json!({ "type": "string", "minLength": MIN_NAME_FILTER_CHARS, "maxLength": MAX_NAME_FILTER_CHARS })
}

pub(super) fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

/// Refusal of a field or parameter.
pub(super) fn invalid(field: &str, rule: impl Display) -> Problem {
    Problem::Invalid(Invalid::field(field, rule))
}
