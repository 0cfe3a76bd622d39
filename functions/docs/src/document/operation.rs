//! One operation of the document.

use domain::list::PageSize;
use domain::openapi::Body;
use domain::rate_limit::Limit;
use edge::Problem;
use edge::problem::Fault;
use edge::routes::{Access, ROUTES};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::examples::used_up;
use super::headers::{
    self, AUTHENTICATE, PAYLOAD_MISMATCH, RATE_LIMIT, RATE_LIMIT_POLICY, REPLAY, REQUEST_ID, RETRY_AFTER, Sent, always,
    at_times, idempotency_key,
};
use super::problems;
use super::schemas::Schemas;

/// Names of the security schemes.
pub(super) const BEARER_KEY: &str = "apiKey";
pub(super) const KEY_HEADER: &str = "apiKeyHeader";
pub(super) const CRM_BEARER_KEY: &str = "crmKey";
pub(super) const CRM_KEY_HEADER: &str = "crmKeyHeader";
pub(super) const COACH_SESSION: &str = "coachSession";

/// Statuses of answers that are recorded and may be replayed.
const RECORDED: [u16; 5] = [200, 201, 400, 404, 409];

/// An operation.
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

/// An answer that is no refusal.
pub(super) struct Answer {
    status: u16,
    about: &'static str,
    /// Bodies by media type.
    content: Value,
    sent: Vec<Sent>,
    links: Map<String, Value>,
}

impl Operation {
    /// The operation of a route, with the refusals of its credential. The summary is a few words.
    pub(super) fn new(method: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> Self {
        let route = ROUTES.iter().find(|route| (route.method, route.path) == (method, path));
        let access = route.map_or(Access::Public, |route| route.access);
        Self {
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
        }
    }

    /// Writes to the CRM, once per idempotency key.
    pub(super) fn once(self) -> Self {
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

    /// Adds what else there is to know, in Markdown.
    pub(super) fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// A parameter in the path.
    pub(super) fn in_path(mut self, name: &str, schema: Value, about: &str, example: &str) -> Self {
        self.parameters.push(json!({
            "name": name, "in": "path", "required": true, "description": about, "schema": schema, "example": example,
        }));
        self
    }

    /// A parameter in the query. None is required.
    pub(super) fn in_query(mut self, name: &str, schema: Value, about: impl Into<String>) -> Self {
        let about = about.into();
        self.parameters.push(json!({ "name": name, "in": "query", "description": about, "schema": schema }));
        self
    }

    /// A size in the query, which is never refused.
    pub(super) fn size(self, name: &str, what: &str, page: PageSize) -> Self {
        let PageSize { default, max } = page;
        let about = format!(
            "{what}: 1 to {max}. Never refused: a greater value counts as {max}; a value that is not a positive integer in \
             plain digits counts as {default}."
        );
        self.in_query(name, json!({ "type": ["integer", "string"], "default": default }), about)
    }

    /// Any parameter.
    pub(super) fn parameter(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// A body of JSON, whose schema has a name. Its examples follow.
    pub(super) fn body(mut self, schemas: &mut Schemas, name: &str, body: Body) -> Self {
        let schema = schemas.insert(name, body.into_json());
        self.body =
            Some(json!({ "required": true, "content": { "application/json": { "schema": schema, "examples": {} } } }));
        // The CRM has one code for all that is wrong with a body.
        if !self.path.starts_with("/v1/crm/") {
            self.refusals.push(Problem::InvalidJson("EOF while parsing an object at line 1 column 1".to_owned()));
        }
        self.refuses([Problem::UnsupportedMediaType])
    }

    /// A body that may be left out.
    pub(super) fn optional_body(self, schemas: &mut Schemas, name: &str, body: Body) -> Self {
        let mut operation = self.body(schemas, name, body);
        operation.body.as_mut().expect("the operation has a body")["required"] = json!(false);
        operation
    }

    /// An example of the body.
    pub(super) fn example(mut self, name: &str, value: Value) -> Self {
        let body = self.body.as_mut().expect("the operation has a body");
        body["content"]["application/json"]["examples"][name] = json!({ "value": value });
        self
    }

    pub(super) fn answers(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    /// Problems that it can end in.
    pub(super) fn refuses(mut self, problems: impl IntoIterator<Item = Problem>) -> Self {
        self.refusals.extend(problems);
        self
    }

    /// Answers are recorded under an idempotency key and replayed.
    pub(super) fn replays(mut self) -> Self {
        self.replays = true;
        self
    }

    /// The operation as JSON, in the group of that name.
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
            let mut sent = standing(access, answer.status);
            sent.extend(recorded(replays, access, answer.status));
            responses.insert(answer.status.to_string(), answer.render(sent));
        }
        for (status, group) in problems::by_status(self.refusals) {
            let mut sent = standing(access, status);
            sent.extend(recorded(replays, access, status));
            let is_short =
                |refusal: &Problem| matches!(refusal, Problem::IdempotencyInProgress | Problem::RecoveryRunning { .. });
            if group.iter().any(is_short) {
                sent.push(at_times(RETRY_AFTER));
            }
            responses.insert(status.to_string(), problems::response(status, &group, access, &sent));
        }
        for (status, about) in problems::GATEWAY.into_iter().filter(|(one, _)| problems::may_be_gateways(access, *one))
        {
            let response = || problems::gateway_response(about);
            responses.entry(status.to_string()).or_insert_with(response);
        }
        operation["responses"] = Value::Object(responses);
        operation
    }
}

/// The beginning of the names of refusals that callers with this credential alone meet.
pub(super) fn name_of(access: Access) -> &'static str {
    match access {
        Access::Partner => "Partner",
        Access::Crm(_) => "Crm",
        Access::Session => "Coach",
        Access::Public => "Anyone",
    }
}

/// Refusals that callers with this credential meet on any route.
fn refusals_of(access: Access) -> Vec<Problem> {
    let unknown_key = || Problem::Unauthenticated("This API key is unknown, revoked or expired.");
    let own = match access {
        Access::Public => return Vec::new(),
        Access::Partner => vec![
            unknown_key(),
            Problem::NotEntitled,
            Problem::WrongScope { needed: "partner" },
            used_up(Limit::Requests),
        ],
        Access::Crm(permission) => vec![
            unknown_key(),
            Problem::WrongScope { needed: "crm" },
            Problem::CrmNotEntitled,
            Problem::GymNotEnabled,
            Problem::CrmNotConfigured,
            Problem::PermissionMissing(permission),
            used_up(Limit::Requests),
        ],
        Access::Session => {
            vec![Problem::NoSession, used_up(Limit::SettingsRequests), Problem::WorkspaceUnknown]
        }
    };
    own.into_iter().chain([Problem::BodyTooLarge, Problem::internal("", "")]).collect()
}

/// Headers that go with a status whatever the operation.
fn standing(access: Access, status: u16) -> Vec<Sent> {
    // The gateway's own answers have none of ours. Nor is there a count to tell where it is the count that failed.
    let ours = if problems::may_be_gateways(access, status) { at_times } else { always };
    let mut sent = vec![ours(REQUEST_ID)];
    match (access, status) {
        (_, 401) => sent.push(always(AUTHENTICATE)),
        (Access::Partner | Access::Crm(_) | Access::Session, _) => {
            sent.extend([ours(RATE_LIMIT), ours(RATE_LIMIT_POLICY)]);
        }
        (Access::Public, _) => {}
    }
    if matches!(status, 429 | 503) {
        sent.push(ours(RETRY_AFTER));
    }
    sent
}

fn recorded(replays: bool, access: Access, status: u16) -> Vec<Sent> {
    match access {
        _ if !replays || !RECORDED.contains(&status) => Vec::new(),
        // Another payload is a conflict.
        Access::Crm(_) => vec![at_times(REPLAY)],
        _ => vec![at_times(REPLAY), at_times(PAYLOAD_MISMATCH)],
    }
}

impl Answer {
    /// An answer without a body.
    pub(super) fn new(status: u16, about: &'static str) -> Self {
        Self { status, about, content: json!({}), sent: Vec::new(), links: Map::new() }
    }

    /// An answer of JSON, with an example.
    pub(super) fn of<T: ToSchema + Serialize>(
        schemas: &mut Schemas,
        status: u16,
        about: &'static str,
        name: &str,
        example: &T,
    ) -> Self {
        Self::new(status, about).content("application/json", schemas.of::<T>()).example(name, example)
    }

    /// A body of this media type.
    pub(super) fn content(mut self, media_type: &str, schema: Value) -> Self {
        self.content[media_type] = json!({ "schema": schema });
        self
    }

    /// An example of the JSON.
    pub(super) fn example(mut self, name: &str, example: &impl Serialize) -> Self {
        self.content["application/json"]["examples"][name] = json!({ "value": example });
        self
    }

    pub(super) fn sends(mut self, sent: Sent) -> Self {
        self.sent.push(sent);
        self
    }

    /// Links to other operations: their parameters, as runtime expressions.
    pub(super) fn link(mut self, operation_ids: &[&str], parameters: Value) -> Self {
        for id in operation_ids {
            self.links.insert((*id).to_owned(), json!({ "operationId": id, "parameters": parameters }));
        }
        self
    }

    /// As [`Answer::link`], with members of the other operations' bodies. `requestBody` has a meaning for a whole body
    /// alone, and generators of clients refuse it with members: they stand in an extension.
    pub(super) fn link_with_body(self, operation_ids: &[&str], parameters: Value, body: Value) -> Self {
        let mut answer = self.link(operation_ids, parameters);
        for id in operation_ids {
            answer.links[*id]["x-request-body"] = body.clone();
        }
        answer
    }

    fn render(mut self, mut sent: Vec<Sent>) -> Value {
        sent.append(&mut self.sent);
        let mut response = json!({ "description": self.about, "headers": headers::references(&sent) });
        if self.content != json!({}) {
            response["content"] = self.content;
        }
        if !self.links.is_empty() {
            response["links"] = Value::Object(self.links);
        }
        response
    }
}
