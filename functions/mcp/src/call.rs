//! The call of a tool: the service's answer as a result that a model reads.
//!
//! A refusal of the operation is a result with `isError`, which says what to do next. A result is whole or refused:
//! nothing is cut off without a word.

use chrono::{Days, NaiveDate};
use domain::api_key::Scope;
use domain::request_log::MAX_CLIENT_CHARS;
use domain::time::parse_date;
use domain::tool::{self, Effect, Repeat, Tool, WITHHELD};
use http::header::RETRY_AFTER;
use serde_json::{Map, Value, json};

use crate::arguments::{self, FreeDays, drawn_key};
use crate::fault::INVALID_PARAMS;
use crate::message::{CALL, Request, meta};
use crate::methods::is_of_scope;
use crate::service::{Caller, Service, ServiceAnswer, ServiceRequest, Unanswered};
use crate::text::visible;

/// Most bytes of a result's text.
const MAX_TEXT_BYTES: usize = 48 * 1024;
/// The marks of a result in its `_meta`.
const REQUEST_ID: &str = "partner-api/request_id";
const REPLAYED: &str = "partner-api/replayed";

const REPLAY: &str = "This is the stored answer to an earlier call. Nothing was done now.";
const CREDENTIALS_WITHHELD: &str = "The welcome mail was not sent. The coach can send it again from the application; the password and the \
     intake link are not shown here.";
const ASK_FOR_LESS: &str = "Ask for fewer days, a smaller limit or one calendar.";

/// A call whose arguments are right.
pub(crate) struct Call {
    tool: &'static Tool,
    request: ServiceRequest,
    free_days: Option<FreeDays>,
}

/// A call that is not made.
pub(crate) enum NotCalled {
    /// The message is wrong.
    Error { code: i32, message: String },
    /// An argument is wrong. The result says which.
    Result(Value),
}

impl Call {
    /// Reads a request of `tools/call` by a key of this scope.
    pub(crate) fn read(request: &Request<'_>, scope: Scope) -> Result<Self, NotCalled> {
        debug_assert_eq!(request.method, CALL);
        let invalid = |message: String| NotCalled::Error { code: INVALID_PARAMS, message };
        let name = request.params["name"].as_str().ok_or_else(|| invalid("name must be a string.".to_owned()))?;
        let tool = tool::find(name).filter(|tool| is_of_scope(tool, scope));
        let tool = tool.ok_or_else(|| invalid(format!("There is no tool {}.", visible(name))))?;
        runtime::note("tool", tool.name);
        let none = Value::Object(Map::new());
        let given = request.params.get("arguments").unwrap_or(&none);
        if !given.is_object() {
            return Err(invalid("arguments must be an object.".to_owned()));
        }
        let free_days = is_of_free_times(tool).then(|| arguments::free_days(given)).transpose();
        match arguments::request(tool, given).and_then(|request| Ok((request, free_days?))) {
            Ok((request, free_days)) => Ok(Self { tool, request, free_days }),
            Err(wrong) => {
                let field = wrong.field.map(|field| format!(" field: {field}.")).unwrap_or_default();
                Err(NotCalled::Result(error(&format!("{} [invalid_request]{field}", sentence(&wrong.message)))))
            }
        }
    }

    /// Makes the call.
    pub(crate) async fn make(&self, service: &Service, caller: Caller, client: Option<&str>) -> Called {
        let caller = caller.naming(self.tool.name, client);
        let first = service.send(&caller, &self.request).await;
        match first {
            // The cause of a stored refusal may be gone: nobody is locked out by it.
            Ok(answer) if self.tool.repeat == Repeat::ArgumentsKey && answer.is_refusal() && answer.is_replay() => {
                let request = ServiceRequest { idempotency_key: Some(drawn_key()), ..self.request.clone() };
                self.result(service.send(&caller, &request).await)
            }
            first => self.result(first),
        }
    }

    fn result(&self, answer: Result<ServiceAnswer, Unanswered>) -> Called {
        match answer {
            Err(Unanswered) => Called { result: self.unanswered(None), answer: None },
            Ok(answer) => {
                runtime::note("called_request_id", answer.request_id());
                let result = if answer.status.is_success() { self.success(&answer) } else { self.refusal(&answer) };
                Called { result, answer: Some(answer) }
            }
        }
    }

    fn success(&self, answer: &ServiceAnswer) -> Value {
        let mut body = answer.body.clone();
        let withheld = withhold(&mut body);
        if let Some(days) = self.free_days {
            cut(&mut body, days);
        }
        let text = visible(&body.to_string());
        if text.len() > MAX_TEXT_BYTES {
            let said = format!("The result has {} bytes, more than {MAX_TEXT_BYTES}. [result_too_large]", text.len());
            return error(&format!("{said} {ASK_FOR_LESS}"));
        }
        let mut content = vec![block(&text)];
        let mut marks = json!({ REQUEST_ID: answer.request_id() });
        if withheld.iter().any(|name| *name != "health_notes") {
            content.push(block(CREDENTIALS_WITHHELD));
        }
        if answer.is_replay() {
            content.push(block(REPLAY));
            marks[REPLAYED] = json!(true);
        }
        json!({ "content": content, "structuredContent": body, "isError": false, "_meta": marks })
    }

    fn refusal(&self, answer: &ServiceAnswer) -> Value {
        let status = answer.status.as_u16();
        let Some(code) = answer.body["code"].as_str() else { return self.unanswered(Some(status)) };
        let said = |name: &str| answer.body[name].as_str().map(|value| format!("{name}: {value}."));
        let mut parts = vec![sentence(answer.body["error"].as_str().unwrap_or_default()), format!("[{code}]")];
        parts.extend(["field", "bookingUrl", "mergedIntoId", "event_id"].into_iter().filter_map(said));
        let wait = answer.headers.get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok());
        parts.extend(wait.map(|seconds| format!("Wait {seconds} s.")));
        parts.extend(answer.status.is_server_error().then(|| self.advice().to_owned()));
        parts.extend(answer.is_replay().then(|| REPLAY.to_owned()));
        parts.push(format!("request_id: {}", answer.request_id()));
        error(&parts.join(" "))
    }

    /// The result of a call that the service itself did not answer.
    fn unanswered(&self, status: Option<u16>) -> Value {
        let status = status.map(|status| format!(" (status {status})")).unwrap_or_default();
        match self.tool.effect {
            Effect::Reads => error(&format!("The service did not answer{status}. [no_answer] Call the tool again.")),
            _ => error(&format!(
                "The service did not answer{status}: it is unknown whether this was done. [outcome_unknown] {}",
                self.advice()
            )),
        }
    }

    /// Advice after a call whose outcome is unknown.
    fn advice(&self) -> &'static str {
        match (self.tool.effect, self.tool.repeat) {
            (Effect::Reads, _) => "Call the tool again.",
            (_, Repeat::GivenKey) => {
                "Repeat the call with the same idempotency_key and arguments: it is done once, and the answer tells the outcome."
            }
            _ => "Repeat the call with the same arguments: it is done once, and the answer tells the outcome.",
        }
    }
}

/// A result, and the service's answer that it comes from.
pub(crate) struct Called {
    pub(crate) result: Value,
    /// `None`: the service did not answer.
    pub(crate) answer: Option<ServiceAnswer>,
}

/// The name and version of the client that a request names, if they are short and plain.
pub(crate) fn client(params: &Value) -> Option<String> {
    let info = meta(params, "clientInfo").unwrap_or(&params["clientInfo"]);
    let text = [info["name"].as_str()?, info["version"].as_str().unwrap_or_default()].join(" ").trim().to_owned();
    let is_plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    (is_plain && !text.is_empty() && text.len() <= MAX_CLIENT_CHARS).then_some(text)
}

fn is_of_free_times(tool: &Tool) -> bool {
    tool.argument("days").is_some()
}

/// A result with an error, which a model reads.
fn error(text: &str) -> Value {
    json!({ "content": [block(&visible(text))], "isError": true })
}

fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The text with a full stop at its end.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Removes the members that no tool returns. Returns those that had a value.
fn withhold(value: &mut Value) -> Vec<&'static str> {
    match value {
        Value::Array(items) => items.iter_mut().flat_map(withhold).collect(),
        Value::Object(members) => {
            let own = |name: &&str| members.remove(*name).is_some_and(|value| !value.is_null());
            let mut withheld: Vec<&str> = WITHHELD.into_iter().filter(own).collect();
            withheld.extend(members.values_mut().flat_map(withhold));
            withheld
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Leaves the free times of the days that a call asks for. The list of a calendar begins with today in its zone.
fn cut(body: &mut Value, FreeDays { from, days }: FreeDays) {
    let calendars = body["calendars"].as_array_mut().into_iter().flatten();
    for listed in calendars.filter_map(|calendar| calendar["days"].as_array_mut()) {
        let date = |day: &Value| day["date"].as_str().and_then(parse_date);
        let Some(first) = from.or_else(|| listed.first().and_then(date)) else { continue };
        let end = first.checked_add_days(Days::new(days.into())).unwrap_or(NaiveDate::MAX);
        listed.retain(|day| date(day).is_some_and(|date| (first..end).contains(&date)));
    }
}
