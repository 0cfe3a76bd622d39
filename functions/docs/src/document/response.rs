//! A response of an operation.

use edge::Code;
use serde_json::{Map, Value, json};

use super::headers;

/// The media type of most bodies.
pub(crate) const JSON: &str = "application/json";
/// Member of a response that lists its codes.
pub(super) const CODES: &str = "x-codes";

/// A response: the answer to a request that did its work, or all refusals of one status.
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The meaning of an answer, in Markdown. Empty for refusals, whose causes have theirs.
    pub(crate) about: String,
    pub(crate) causes: Vec<Cause>,
    /// Components of its headers.
    pub(super) headers: Vec<String>,
    pub(crate) bodies: Vec<Body>,
    pub(super) links: Map<String, Value>,
    /// The name under which operations share the response.
    pub(super) shared_as: Option<String>,
}

/// A reason for a refusal.
pub(crate) struct Cause {
    /// Absent in the gateway's own answers.
    pub(crate) code: Option<Code>,
    pub(crate) meaning: &'static str,
    /// True if any operation with the same credential can refuse for the reason.
    pub(crate) is_shared: bool,
}

/// A body of a media type.
pub(crate) struct Body {
    pub(crate) media_type: &'static str,
    pub(crate) schema: Value,
    pub(crate) examples: Vec<Example>,
}

/// An example of a body.
pub(crate) struct Example {
    /// Empty for the only example of a body.
    pub(crate) name: String,
    pub(crate) value: Value,
}

impl Response {
    /// Returns the names of the headers.
    pub(crate) fn header_names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|component| headers::name_of(component))
    }

    /// Returns true for the answer to a request that did its work.
    pub(crate) fn is_success(&self) -> bool {
        self.status < 400
    }

    pub(super) fn to_json(&self) -> Value {
        let mut response = json!({ "description": self.description(), "headers": headers::references(&self.headers) });
        let codes: Vec<&str> = self.causes.iter().filter_map(|cause| cause.code).map(Code::as_str).collect();
        if !codes.is_empty() {
            response[CODES] = json!(codes);
        }
        let bodies = self.bodies.iter().map(|body| (body.media_type.to_owned(), body.to_json()));
        let bodies: Map<String, Value> = bodies.collect();
        if !bodies.is_empty() {
            response["content"] = bodies.into();
        }
        if !self.links.is_empty() {
            response["links"] = json!(self.links);
        }
        response
    }

    /// Several causes are a list.
    fn description(&self) -> String {
        match &self.causes[..] {
            [] => self.about.clone(),
            [only] => only.meaning.to_owned(),
            causes => {
                let line = |Cause { code, meaning, .. }: &Cause| match code {
                    Some(code) => format!("- `{}`: {meaning}", code.as_str()),
                    None => format!("- Without `code`: {meaning}"),
                };
                causes.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl Body {
    pub(super) fn to_json(&self) -> Value {
        let mut body = json!({ "schema": self.schema });
        match &self.examples[..] {
            [] => {}
            [only] if only.name.is_empty() => body["example"] = only.value.clone(),
            examples => {
                let named = examples.iter().map(|one| (one.name.clone(), json!({ "value": one.value })));
                body["examples"] = named.collect::<Map<_, _>>().into();
            }
        }
        body
    }
}
