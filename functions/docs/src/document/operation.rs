//! An operation of the document, and its rendering as JSON.
//!
//! The route table of `edge` names the credential of each operation. Headers and refusals of that credential follow.

use domain::idempotency::{RETENTION, SECRET_RETENTION};
use domain::list::PageSize;
use domain::openapi::Body;
use domain::rate_limit::Limit;
use edge::Problem;
use edge::problem::Fault;
use edge::routes::{Access, ROUTES};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::examples::rate_limited;
use super::headers::{
    self, AUTHENTICATE, PAYLOAD_MISMATCH, RATE_LIMIT, RATE_LIMIT_POLICY, REPLAY, REQUEST_ID, RETRY_AFTER,
    ResponseHeader, always, idempotency_key, sometimes,
};
use super::problems;
use super::schemas::Schemas;

/// Names of the security schemes.
pub(super) const BEARER_KEY: &str = "apiKey";
pub(super) const KEY_HEADER: &str = "apiKeyHeader";
pub(super) const CRM_BEARER_KEY: &str = "crmKey";
pub(super) const CRM_KEY_HEADER: &str = "crmKeyHeader";
pub(super) const COACH_SESSION: &str = "coachSession";

/// Statuses of responses that are recorded and replayed.
const RECORDED: [u16; 6] = [200, 201, 202, 400, 404, 409];

/// An operation, built step by step.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    summary: &'static str,
    about: String,
    access: Access,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Vec<Answer>,
    refusals: Vec<Problem>,
    replays: bool,
}

/// A response that is no refusal.
pub(super) struct Answer {
    status: u16,
    about: &'static str,
    /// Bodies by media type.
    content: Value,
    headers: Vec<ResponseHeader>,
    links: Map<String, Value>,
}

impl Operation {
    /// Creates the operation of a route, with the refusals of its credential. `summary` is a few words.
    pub(super) fn new(method: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> Self {
        let route = ROUTES.iter().find(|route| (route.method, route.path) == (method, path));
        let access = route.map_or(Access::Public, |route| route.access);
        let operation = Self {
            method,
            path,
            id,
            summary,
            about: String::new(),
            access,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: refusals_of(access),
            replays: false,
        };
        let is_order_of_a_coach = method == "POST" && access == Access::Session;
        if is_order_of_a_coach { operation.idempotent_for_coaches() } else { operation }
    }

    /// Accepts an idempotency key, as every POST of the settings does.
    fn idempotent_for_coaches(self) -> Self {
        self.parameter(idempotency_key(
            false,
            format!(
                "One key for each action of the coach. The service does the same request under the same key once and \
                 replays its answer for {} hours. It replays a key or secret in the answer for {} minutes.",
                RETENTION.num_hours(),
                SECRET_RETENTION.num_minutes(),
            ),
        ))
        .replays()
        .refuses([
            Problem::IdempotencyKeyInvalid,
            Problem::IdempotencyInProgress,
            Problem::IdempotencyPayloadMismatch,
        ])
    }

    /// Requires an idempotency key, as every write of the CRM does.
    pub(super) fn idempotent(self) -> Self {
        self.parameter(idempotency_key(
            true,
            "One key for each task. The service does the same request under the same key once and replays its answer.",
        ))
        .replays()
        .refuses([
            Problem::IdempotencyKeyRequired,
            Problem::IdempotencyInProgress,
            Problem::IdempotencyPayloadMismatch,
            Problem::Unconfirmed(Fault { doing: "", source: "".into() }),
        ])
    }

    /// Sets the description, in Markdown.
    pub(super) fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// Adds a path parameter.
    pub(super) fn in_path(mut self, name: &str, schema: Value, about: &str, example: &str) -> Self {
        self.parameters.push(json!({
            "name": name, "in": "path", "required": true, "description": about, "schema": schema, "example": example,
        }));
        self
    }

    /// Adds an optional query parameter.
    pub(super) fn in_query(mut self, name: &str, schema: Value, about: impl Into<String>) -> Self {
        let about = about.into();
        self.parameters.push(json!({ "name": name, "in": "query", "description": about, "schema": schema }));
        self
    }

    /// Adds a filter: a query parameter that filters nothing if it is empty.
    pub(super) fn filter(self, name: &str, schema: Value, about: &str) -> Self {
        let schema = json!({ "anyOf": [schema, { "type": "string", "maxLength": 0 }] });
        self.in_query(name, schema, format!("{about} Empty: no filter."))
    }

    /// Adds a query parameter for a size. Its values are never refused.
    pub(super) fn size(self, name: &str, items: &str, page: PageSize) -> Self {
        let PageSize { default, max } = page;
        let about = format!(
            "{items}: 1 to {max}. Never refused: a greater value counts as {max}; a value that is not a positive \
             integer in plain digits counts as {default}."
        );
        self.in_query(name, json!({ "type": ["integer", "string"], "default": default }), about)
    }

    /// Adds a parameter of any kind.
    pub(super) fn parameter(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Sets the JSON body. `name` is the name of its schema. Examples are added by [`Operation::example`].
    pub(super) fn body(mut self, schemas: &mut Schemas, name: &str, body: Body) -> Self {
        let schema = schemas.insert(name, body.into_json());
        self.body =
            Some(json!({ "required": true, "content": { "application/json": { "schema": schema, "examples": {} } } }));
        // The CRM answers every invalid body with one code, `invalid_request`.
        if !self.path.starts_with("/v1/crm/") {
            self.refusals.push(Problem::InvalidJson("EOF while parsing an object at line 1 column 1".to_owned()));
        }
        self.refuses([Problem::UnsupportedMediaType])
    }

    /// Sets a JSON body that callers may omit.
    pub(super) fn optional_body(self, schemas: &mut Schemas, name: &str, body: Body) -> Self {
        let mut operation = self.body(schemas, name, body);
        operation.body.as_mut().expect("the operation has a body")["required"] = json!(false);
        operation
    }

    /// Adds an example of the body.
    pub(super) fn example(mut self, name: &str, value: Value) -> Self {
        let body = self.body.as_mut().expect("the operation has a body");
        body["content"]["application/json"]["examples"][name] = json!({ "value": value });
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

    /// Marks responses as recorded under an idempotency key and replayed.
    pub(super) fn replays(mut self) -> Self {
        self.replays = true;
        self
    }

    /// Renders the operation as JSON. `tag` is the name of its group.
    pub(super) fn render(self, tag: &str) -> Value {
        let security = match self.access {
            Access::Partner => json!([{ BEARER_KEY: [] }, { KEY_HEADER: [] }]),
            Access::Crm(permission) => {
                let needed = [permission.as_str()];
                json!([{ CRM_BEARER_KEY: needed }, { CRM_KEY_HEADER: needed }])
            }
            Access::Session => json!([{ COACH_SESSION: [] }]),
            Access::Public => json!([]),
        };
        let mut operation = json!({
            "operationId": self.id, "tags": [tag], "summary": self.summary, "security": security,
        });
        let mut about = self.about;
        if let Access::Crm(permission) = self.access {
            operation["x-permission"] = json!(permission.as_str());
            about.push_str(&format!("\n\nNeeds the permission `{}`.", permission.as_str()));
        }
        if !about.is_empty() {
            operation["description"] = json!(about.trim_start());
        }
        if !self.parameters.is_empty() {
            operation["parameters"] = json!(self.parameters);
        }
        if let Some(body) = self.body {
            operation["requestBody"] = body;
        }
        let (access, replays) = (self.access, self.replays);
        let mut responses = Map::new();
        for answer in self.answers {
            let mut headers = common_headers(access, answer.status);
            headers.extend(replay_headers(replays, access, answer.status));
            responses.insert(answer.status.to_string(), answer.render(headers));
        }
        for (status, group) in problems::by_status(self.refusals) {
            let mut headers = common_headers(access, status);
            headers.extend(replay_headers(replays, access, status));
            let has_retry_after =
                |refusal: &Problem| matches!(refusal, Problem::IdempotencyInProgress | Problem::RecoveryRunning { .. });
            if group.iter().any(has_retry_after) {
                headers.push(sometimes(RETRY_AFTER));
            }
            responses.insert(status.to_string(), problems::response(status, &group, access, &headers));
        }
        for (status, about) in
            problems::GATEWAY.into_iter().filter(|(status, _)| problems::may_come_from_gateway(access, *status))
        {
            let response = || problems::gateway_response(about);
            responses.entry(status.to_string()).or_insert_with(response);
        }
        operation["responses"] = Value::Object(responses);
        operation
    }
}

/// First part of the names of shared responses, by credential.
pub(super) fn name_of(access: Access) -> &'static str {
    match access {
        Access::Partner => "Partner",
        Access::Crm(_) => "Crm",
        Access::Session => "Coach",
        Access::Public => "Anyone",
    }
}

/// Refusals that any route with this credential can answer with.
fn refusals_of(access: Access) -> Vec<Problem> {
    let unknown_key = || Problem::Unauthenticated("This API key is unknown, revoked or expired.");
    let own = match access {
        Access::Public => return Vec::new(),
        Access::Partner => vec![
            unknown_key(),
            Problem::NotEntitled,
            Problem::WrongScope { needed: "partner" },
            rate_limited(Limit::Requests),
        ],
        Access::Crm(permission) => vec![
            unknown_key(),
            Problem::WrongScope { needed: "crm" },
            Problem::CrmNotEntitled,
            Problem::GymNotEnabled,
            Problem::CrmNotConfigured,
            Problem::PermissionMissing(permission),
            rate_limited(Limit::Requests),
        ],
        Access::Session => {
            vec![
                Problem::NoSession,
                Problem::SessionWithoutCoach,
                rate_limited(Limit::SettingsRequests),
                Problem::WorkspaceUnknown,
            ]
        }
    };
    own.into_iter().chain([Problem::BodyTooLarge, Problem::internal("", "")]).collect()
}

/// Headers that depend on the credential and the status only.
fn common_headers(access: Access, status: u16) -> Vec<ResponseHeader> {
    // The gateway's own answers lack our headers. The count is unknown if the write that counts has failed.
    let unless_gateway = if problems::may_come_from_gateway(access, status) { sometimes } else { always };
    let mut headers = vec![unless_gateway(REQUEST_ID)];
    match (access, status) {
        (_, 401) => headers.push(always(AUTHENTICATE)),
        // A session without a coach is not counted.
        (Access::Session, 403) => {}
        (Access::Partner | Access::Crm(_) | Access::Session, _) => {
            headers.extend([unless_gateway(RATE_LIMIT), unless_gateway(RATE_LIMIT_POLICY)]);
        }
        (Access::Public, _) => {}
    }
    if matches!(status, 429 | 503) {
        headers.push(unless_gateway(RETRY_AFTER));
    }
    headers
}

/// Headers of a response that may be a replay.
fn replay_headers(replays: bool, access: Access, status: u16) -> Vec<ResponseHeader> {
    match access {
        _ if !replays || !RECORDED.contains(&status) => Vec::new(),
        // The CRM and the settings answer another payload with 409.
        Access::Crm(_) | Access::Session => vec![sometimes(REPLAY)],
        _ => vec![sometimes(REPLAY), sometimes(PAYLOAD_MISMATCH)],
    }
}

impl Answer {
    /// Creates an answer without a body.
    pub(super) fn new(status: u16, about: &'static str) -> Self {
        Self { status, about, content: json!({}), headers: Vec::new(), links: Map::new() }
    }

    /// Creates an answer of JSON, with an example.
    pub(super) fn of<T: ToSchema + Serialize>(
        schemas: &mut Schemas,
        status: u16,
        about: &'static str,
        name: &str,
        example: &T,
    ) -> Self {
        Self::new(status, about).content("application/json", schemas.of::<T>()).example(name, example)
    }

    /// Adds a body of a media type.
    pub(super) fn content(mut self, media_type: &str, schema: Value) -> Self {
        self.content[media_type] = json!({ "schema": schema });
        self
    }

    /// Adds an example of the JSON.
    pub(super) fn example(mut self, name: &str, example: &impl Serialize) -> Self {
        self.content["application/json"]["examples"][name] = json!({ "value": example });
        self
    }

    pub(super) fn header(mut self, header: ResponseHeader) -> Self {
        self.headers.push(header);
        self
    }

    /// Adds links to other operations. `parameters` are runtime expressions.
    pub(super) fn link(mut self, operation_ids: &[&str], parameters: Value) -> Self {
        for id in operation_ids {
            self.links.insert((*id).to_owned(), json!({ "operationId": id, "parameters": parameters }));
        }
        self
    }

    /// Adds links as [`Answer::link`] does, with members of the other operations' bodies. The members stand in an
    /// extension, because `requestBody` of a link can only be a whole body.
    pub(super) fn link_with_body(self, operation_ids: &[&str], parameters: Value, body: Value) -> Self {
        let mut answer = self.link(operation_ids, parameters);
        for id in operation_ids {
            answer.links[*id]["x-request-body"] = body.clone();
        }
        answer
    }

    fn render(mut self, mut headers: Vec<ResponseHeader>) -> Value {
        headers.append(&mut self.headers);
        let mut response = json!({ "description": self.about, "headers": headers::references(&headers) });
        if self.content != json!({}) {
            response["content"] = self.content;
        }
        if !self.links.is_empty() {
            response["links"] = Value::Object(self.links);
        }
        response
    }
}
