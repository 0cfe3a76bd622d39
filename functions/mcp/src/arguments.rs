//! The arguments of a tool, and the request of its operation that they become.
//!
//! The operation checks its own rules, so rules and messages are stated once. The checks here are those that it cannot
//! make: unknown arguments, ids of a path, types of query parameters, and the requirements of the tool itself.

use chrono::NaiveDate;
use domain::fields::{Fields, Invalid};
use domain::idempotency::{IdempotencyKey, MAX_KEY_CHARS};
use domain::list::PageSize;
use domain::time::{DATE_RULE, parse_date};
use domain::tool::{Argument, ArgumentPlace, MAX_ARGUMENT_CHARS, Repeat, TOOL_FREE_DAYS, Tool};
use http::{HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::service::ServiceRequest;

/// The characters that a part of a path is encoded without.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The days that a result shows of the free times that the operation lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FreeDays {
    /// `None`: from today in the calendar's zone.
    pub(crate) from: Option<NaiveDate>,
    pub(crate) days: u32,
}

/// Returns the request for a call of a tool.
pub(crate) fn request(tool: &Tool, arguments: &Value) -> Result<ServiceRequest, Invalid> {
    let fields = Fields::body(arguments)?;
    let names: Vec<&str> = tool.arguments.iter().map(|argument| argument.name).collect();
    fields.only(&names)?;
    let mut target = Target { path: tool.path.to_owned(), query: Vec::new() };
    let (mut body, mut key) = (Map::new(), None);
    for argument in &tool.arguments {
        if argument.is_required_by_tool() && !fields.has(argument.name) {
            return Err(fields.refuse(argument.name, "is required"));
        }
        match argument.place {
            ArgumentPlace::Path => target.fill(&text(fields, argument)?.unwrap_or_default()),
            ArgumentPlace::Query => target.add(argument, text(fields, argument)?),
            ArgumentPlace::Size(size) => target.add(argument, Some(amount(fields, argument.name, size).to_string())),
            ArgumentPlace::Body => {
                let given = arguments.get(argument.name).map(|value| (argument.name.to_owned(), value.clone()));
                body.extend(given);
            }
            ArgumentPlace::Key => key = text(fields, argument)?.map(|key| given_key(argument, &key)).transpose()?,
            ArgumentPlace::Answer => {}
        }
    }
    for (name, place, value) in &tool.constants {
        match place {
            ArgumentPlace::Body => drop(body.insert((*name).to_owned(), value.clone())),
            _ => target.query.push((name, value.as_str().unwrap_or_default().to_owned())),
        }
    }
    let has_body = !body.is_empty() || tool.arguments.iter().any(|argument| argument.place == ArgumentPlace::Body);
    let key = match tool.repeat {
        Repeat::NoKey => None,
        Repeat::GivenKey => key,
        Repeat::DrawnKey => Some(drawn_key()),
        Repeat::ArgumentsKey => Some(key_of(&Sha256::digest(arguments.to_string()))),
    };
    Ok(ServiceRequest {
        method: Method::from_bytes(tool.method.as_bytes()).map_err(|error| Invalid::whole(error.to_string()))?,
        target: target.into_text(),
        idempotency_key: key,
        body: has_body.then_some(Value::Object(body)),
    })
}

/// Returns the days of free times that a call asks for.
pub(crate) fn free_days(arguments: &Value) -> Result<FreeDays, Invalid> {
    let fields = Fields::body(arguments)?;
    let from = fields.parsed("from", MAX_ARGUMENT_CHARS, |text| parse_date(text).ok_or(DATE_RULE))?;
    Ok(FreeDays { from, days: amount(fields, "days", TOOL_FREE_DAYS) })
}

/// Draws an idempotency key.
pub(crate) fn drawn_key() -> HeaderValue {
    key_of(&runtime::random_bytes::<16>())
}

fn key_of(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_str(&format!("mcp-{}", hex::encode(bytes))).expect("hexadecimal digits are a header")
}

/// Reads an argument that becomes a text. Null counts as omitted.
fn text(fields: Fields<'_>, argument: &Argument) -> Result<Option<String>, Invalid> {
    let name = argument.name;
    if argument.schema["type"] == "boolean" {
        return Ok(fields.boolean(name)?.map(|is_set| is_set.to_string()));
    }
    let Some(value) = fields.value(name) else { return Ok(None) };
    let text = value.as_str().ok_or_else(|| fields.refuse(name, "must be a string"))?;
    if text.is_empty() && argument.is_required_by_tool() {
        return Err(fields.refuse(name, "must not be empty"));
    }
    if text.chars().count() > MAX_ARGUMENT_CHARS {
        return Err(fields.refuse(name, format_args!("must be at most {MAX_ARGUMENT_CHARS} characters")));
    }
    Ok(Some(text.to_owned()))
}

/// Reads a number as the API reads a query parameter: anything but a positive integer is the default.
fn amount(fields: Fields<'_>, name: &str, size: PageSize) -> u32 {
    let given = fields.value(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    size.parse(given.as_deref())
}

/// Reads the caller's idempotency key.
fn given_key(argument: &Argument, text: &str) -> Result<HeaderValue, Invalid> {
    let rule =
        || Invalid::field(argument.name, format_args!("must be 1 to {MAX_KEY_CHARS} printable ASCII characters"));
    IdempotencyKey::check(text.as_bytes()).map_err(|_| rule())?;
    HeaderValue::from_str(text).map_err(|_| rule())
}

/// The path and the query of a request.
struct Target<'a> {
    path: String,
    query: Vec<(&'a str, String)>,
}

impl<'a> Target<'a> {
    /// Puts an id into the path.
    fn fill(&mut self, id: &str) {
        let (Some(start), Some(end)) = (self.path.find('{'), self.path.find('}')) else { return };
        let id = utf8_percent_encode(id, UNRESERVED).to_string();
        // A path of dots alone would name another route.
        let id = if id.bytes().all(|byte| byte == b'.') { id.replace('.', "%2E") } else { id };
        self.path.replace_range(start..=end, &id);
    }

    fn add(&mut self, argument: &'a Argument, text: Option<String>) {
        self.query.extend(text.map(|text| (argument.name, text)));
    }

    fn into_text(self) -> String {
        if self.query.is_empty() {
            return self.path;
        }
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(self.query).finish();
        format!("{}?{query}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(tool: &str, arguments: Value) -> Result<ServiceRequest, String> {
        request(domain::tool::find(tool).unwrap(), &arguments).map_err(|invalid| invalid.message)
    }

    #[test]
    fn arguments_become_path_query_body_and_key() {
        for (tool, arguments, method, target, body) in [
            ("whoami", json!({}), "GET", "/v1/key", None),
            (
                "find_clients",
                json!({ "name": "Ada & Co", "active": true, "limit": 900, "cursor": null }),
                "GET",
                "/v1/clients?name=Ada+%26+Co&active=true&limit=50",
                None,
            ),
            ("get_client", json!({ "client_id": "a/../b?c" }), "GET", "/v1/clients/a%2F..%2Fb%3Fc", None),
            ("get_client", json!({ "client_id": ".." }), "GET", "/v1/clients/%2E%2E", None),
            (
                "list_client_daily_logs",
                json!({ "client_id": "c1", "limit": 1.5 }),
                "GET",
                "/v1/clients/c1/daily-logs?limit=90",
                None,
            ),
            ("list_events", json!({ "limit": "5" }), "GET", "/v1/events?limit=5&order=desc", None),
            (
                "update_client",
                json!({ "client_id": "c1", "is_active": false, "external_id": null }),
                "PATCH",
                "/v1/clients/c1",
                Some(json!({ "is_active": false, "external_id": null })),
            ),
            ("update_contact", json!({ "id": "1" }), "PATCH", "/v1/crm/contacts/1", Some(json!({}))),
            ("cancel_booking", json!({ "id": "1", "leadId": "2" }), "DELETE", "/v1/crm/bookings/1?leadId=2", None),
            (
                "find_free_times",
                json!({ "leadId": 1, "calendarId": "c", "from": "2026-12-01", "days": 3 }),
                "POST",
                "/v1/crm/bookings/availability",
                Some(json!({ "leadId": 1, "calendarId": "c" })),
            ),
        ] {
            let request = sent(tool, arguments).unwrap();
            assert_eq!((request.method.as_str(), request.target.as_str()), (method, target), "{tool}");
            assert_eq!(request.body, body, "{tool}");
        }
    }

    #[test]
    fn each_write_has_the_key_that_its_repeats_are_recognised_by() {
        let booking = json!({ "leadId": "1", "calendarId": "2", "date": "d", "time": "t", "idempotency_key": "once" });
        assert_eq!(sent("create_booking", booking.clone()).unwrap().idempotency_key.unwrap(), "once");
        assert!(!sent("create_booking", booking).unwrap().body.unwrap().to_string().contains("once"));
        let client = |email: &str| sent("create_client", json!({ "email": email })).unwrap();
        assert_eq!(client("a@example.com"), client("a@example.com"));
        assert_ne!(client("a@example.com").idempotency_key, client("b@example.com").idempotency_key);
        assert_eq!(client("a@example.com").body.unwrap()["send_welcome"], true);
        let contact = || sent("create_contact", json!({ "name": "A", "email": "a@example.com" })).unwrap();
        assert_ne!(contact().idempotency_key, contact().idempotency_key);
        assert_eq!(sent("update_client", json!({ "client_id": "c1" })).unwrap().idempotency_key, None);
    }

    #[test]
    fn a_wrong_argument_is_named_with_its_rule() {
        for (tool, arguments, message) in [
            ("get_client", json!({}), "client_id is required"),
            ("get_client", json!({ "client_id": null }), "client_id is required"),
            ("get_client", json!({ "client_id": "" }), "client_id must not be empty"),
            ("get_client", json!({ "client_id": 5 }), "client_id must be a string"),
            ("find_clients", json!({ "active": "yes" }), "active must be a boolean"),
            ("find_clients", json!({ "email": ["a"] }), "email must be a string"),
            ("find_clients", json!({ "cursor": "x".repeat(1_001) }), "cursor must be at most 1000 characters"),
            ("whoami", json!({ "a": 1 }), "a is not a field of this request; it takes none"),
            ("create_booking", json!({}), "idempotency_key is required"),
            (
                "create_booking",
                json!({ "idempotency_key": "é" }),
                "idempotency_key must be 1 to 255 printable ASCII characters",
            ),
            ("find_free_times", json!({ "leadId": "1" }), "calendarId is required"),
        ] {
            assert_eq!(sent(tool, arguments).unwrap_err(), message, "{tool}");
        }
        let message = |arguments| free_days(&arguments).unwrap_err().message;
        assert!(message(json!({ "from": "tomorrow" })).starts_with("from must be"));
        assert_eq!(free_days(&json!({ "days": 99 })).unwrap(), FreeDays { from: None, days: 14 });
        assert_eq!(free_days(&json!({ "days": -1 })).unwrap().days, 7);
    }
}
