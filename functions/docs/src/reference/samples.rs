//! Samples: an operation's request in each language of `LANGUAGES`. `tests/guides/samples.py` runs them.

use edge::routes::Access;
use serde_json::Value;

use super::rows::plain;
use crate::document::operation::{IDEMPOTENCY_KEY, Operation};
use crate::document::parameter::{Parameter, Place};
use crate::document::response::{JSON, Response};
use crate::site::EXAMPLE_BASE;

/// A request, from the examples of an operation.
struct Request<'d> {
    method: &'static str,
    url: String,
    /// Variable of the environment with the credential.
    credential: Option<&'static str>,
    /// Headers besides that of the credential.
    headers: Vec<(&'d str, String)>,
    body: Option<&'d Value>,
}

/// Renders the samples of an operation. An operation that answers with pages and files only has none: browsers send
/// its requests.
pub(super) fn of(operation: &Operation, responses: &[Response]) -> Option<[String; 4]> {
    answers_json(responses).then(|| {
        let request = Request::of(operation);
        [request.in_shell(), request.in_python(), request.in_node(), request.in_php()]
    })
}

/// Returns true if the operation answers with JSON.
pub(super) fn answers_json(responses: &[Response]) -> bool {
    let is_json = |response: &Response| response.bodies.iter().any(|body| body.media_type == JSON);
    responses.iter().any(|response| response.is_success() && is_json(response))
}

/// The value of a parameter in samples.
pub(super) fn example(parameter: &Parameter) -> String {
    parameter.example.as_ref().map(plain).unwrap_or_default()
}

impl<'d> Request<'d> {
    fn of(operation: &'d Operation) -> Self {
        let sent = |place: Place| {
            let is_sent =
                move |one: &&Parameter| one.place == place && (one.is_required || one.name == IDEMPOTENCY_KEY);
            let named = |parameter: &'d Parameter| (parameter.name.as_str(), example(parameter));
            operation.parameters.iter().filter(is_sent).map(named)
        };
        let path = sent(Place::Path)
            .fold(operation.route.path.to_owned(), |path, (name, value)| path.replace(&format!("{{{name}}}"), &value));
        let query: Vec<String> = sent(Place::Query).map(|(name, value)| format!("{name}={value}")).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let body = operation.body.as_ref().and_then(|body| body.content.examples.first());
        let media_type = body.map(|_| ("Content-Type", JSON.to_owned()));
        Self {
            method: operation.route.method,
            url: format!("{EXAMPLE_BASE}{path}{query}"),
            credential: match operation.route.access {
                Access::Public => None,
                Access::Session => Some("SESSION"),
                Access::Partner(_)
                | Access::Crm(_)
                | Access::Events
                | Access::AnyKey
                | Access::Sandbox
                | Access::Assistant => Some("KEY"),
            },
            headers: media_type.into_iter().chain(sent(Place::Header)).collect(),
            body: body.map(|example| &example.value),
        }
    }

    fn in_shell(&self) -> String {
        let mut lines = vec![match self.method {
            "GET" => format!("curl -sSi \"{}\"", self.url),
            method => format!("curl -sSi -X {method} \"{}\"", self.url),
        }];
        lines.extend(self.credential.map(|name| format!("-H \"Authorization: Bearer ${name}\"")));
        lines.extend(self.headers.iter().map(|(name, value)| match *name {
            IDEMPOTENCY_KEY => format!("-H \"{name}: $(uuidgen)\""),
            _ => format!("-H \"{name}: {value}\""),
        }));
        lines.extend(self.body.map(|body| {
            let body = format!("{body:#}").replace('\'', "'\\''");
            format!("-d '{}'", body.replace('\n', "\n     "))
        }));
        lines.join(" \\\n     ") + "\n"
    }

    fn in_python(&self) -> String {
        let credential = self.credential.map(|name| format!("\"Authorization\": f\"Bearer {{os.environ['{name}']}}\""));
        let headers = self.headers.iter().map(|(name, value)| match *name {
            IDEMPOTENCY_KEY => format!("\"{name}\": str(uuid.uuid4())"),
            _ => format!("\"{name}\": \"{value}\""),
        });
        let headers: Vec<String> = credential.into_iter().chain(headers).collect();
        let mut arguments = format!("    \"{}\",\n", self.url);
        if !headers.is_empty() {
            arguments += &format!("    headers={{\n{}    }},\n", on_lines(&headers, "        "));
        }
        if let Some(body) = self.body {
            arguments += &format!("    json={},\n", PYTHON.literal(body, 1));
        }
        let method = self.method.to_lowercase();
        let needs_key = self.headers.iter().any(|(name, _)| *name == IDEMPOTENCY_KEY);
        let modules = [("import os\n", self.credential.is_some()), ("import uuid\n", needs_key)];
        let own: String = modules.into_iter().filter(|(_, is_needed)| *is_needed).map(|(import, _)| import).collect();
        let gap = if own.is_empty() { "" } else { "\n" };
        format!(
            "# pip install requests\n{own}{gap}import requests\n\nanswer = requests.{method}(\n{arguments})\n\
             print(answer.status_code, answer.text)\n"
        )
    }

    fn in_node(&self) -> String {
        let credential = self.credential.map(|name| format!("Authorization: `Bearer ${{process.env.{name}}}`"));
        let headers = self.headers.iter().map(|(name, value)| match *name {
            IDEMPOTENCY_KEY => format!("\"{name}\": crypto.randomUUID()"),
            _ => format!("\"{name}\": \"{value}\""),
        });
        let headers: Vec<String> = credential.into_iter().chain(headers).collect();
        let mut options = String::new();
        if self.method != "GET" {
            options += &format!("  method: \"{}\",\n", self.method);
        }
        if !headers.is_empty() {
            options += &format!("  headers: {{\n{}  }},\n", on_lines(&headers, "    "));
        }
        if let Some(body) = self.body {
            // JSON is JavaScript.
            options += &format!("  body: JSON.stringify({}),\n", format!("{body:#}").replace('\n', "\n  "));
        }
        let options = if options.is_empty() { options } else { format!(", {{\n{options}}}") };
        format!(
            "const answer = await fetch(\"{}\"{options});\nconsole.log(answer.status, await answer.text());\n",
            self.url
        )
    }

    fn in_php(&self) -> String {
        let credential = self.credential.map(|name| format!("'Authorization: Bearer ' . getenv('{name}')"));
        let headers = self.headers.iter().map(|(name, value)| match *name {
            IDEMPOTENCY_KEY => format!("'{name}: ' . bin2hex(random_bytes(16))"),
            _ => format!("'{name}: {value}'"),
        });
        let headers: Vec<String> = credential.into_iter().chain(headers).collect();
        let mut options = "    CURLOPT_RETURNTRANSFER => true,\n".to_owned();
        if self.method != "GET" {
            options += &format!("    CURLOPT_CUSTOMREQUEST => '{}',\n", self.method);
        }
        if !headers.is_empty() {
            options += &format!("    CURLOPT_HTTPHEADER => [\n{}    ],\n", on_lines(&headers, "        "));
        }
        if let Some(body) = self.body {
            options += &format!("    CURLOPT_POSTFIELDS => json_encode({}),\n", PHP.literal(body, 1));
        }
        format!(
            "<?php\n$request = curl_init('{}');\ncurl_setopt_array($request, [\n{options}]);\n\
             $body = curl_exec($request);\necho curl_getinfo($request, CURLINFO_RESPONSE_CODE), ' ', $body, \"\\n\";\n",
            self.url
        )
    }
}

/// Items of a list, each on a line.
fn on_lines(items: &[String], indent: &str) -> String {
    items.iter().map(|item| format!("{indent}{item},\n")).collect()
}

/// How a language writes values.
struct Literals {
    truths: [&'static str; 2],
    null: &'static str,
    object: [&'static str; 2],
    /// Stands between a name and its value.
    arrow: &'static str,
    quoted: fn(&str) -> String,
}

const PYTHON: Literals = Literals {
    truths: ["False", "True"],
    null: "None",
    object: ["{", "}"],
    arrow: ": ",
    // A text in JSON is one in Python, too.
    quoted: |text| Value::from(text).to_string(),
};
const PHP: Literals =
    Literals { truths: ["false", "true"], null: "null", object: ["[", "]"], arrow: " => ", quoted: quoted_in_php };

impl Literals {
    fn literal(&self, value: &Value, depth: usize) -> String {
        match value {
            Value::Null => self.null.to_owned(),
            Value::Bool(truth) => self.truths[usize::from(*truth)].to_owned(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => (self.quoted)(text),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.literal(item, depth)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(members) => {
                let [open, close] = self.object;
                let (outer, inner) = ("    ".repeat(depth), "    ".repeat(depth + 1));
                let member = |(name, value): (&String, &Value)| {
                    format!("{inner}{}{}{},\n", (self.quoted)(name), self.arrow, self.literal(value, depth + 1))
                };
                format!("{open}\n{}{outer}{close}", members.iter().map(member).collect::<String>())
            }
        }
    }
}

fn quoted_in_php(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
