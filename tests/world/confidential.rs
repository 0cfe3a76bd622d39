//! Texts that must not appear in the log: everything confidential that a world sends or receives.
//!
//! Each text is noted as it passes. When the world ends, the stack's log is searched for all of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aho_corasick::AhoCorasick;
use serde_json::Value;

/// Members of bodies whose text names a person or is a secret.
const FIELDS: [&str; 27] = [
    "credential",
    "description",
    "email",
    "external_id",
    "first_name",
    "full_name",
    "fullName",
    "goals",
    "health_notes",
    "html",
    "intake_url",
    "key",
    "last_name",
    "login_url",
    "name",
    "notes",
    "password",
    "phc",
    "phone",
    "secret",
    "subject",
    "temp_password",
    "text",
    "title",
    "to",
    "token",
    "url",
];
/// Headers that carry a credential or a value of the caller's choice.
const HEADERS: [&str; 4] = ["authorization", "x-api-key", "idempotency-key", "location"];
/// Names that tests give to automations and keys, but that the log uses as ordinary words.
const OUR_WORDS: [&str; 3] = ["automation", "calls", "settings"];
/// Shorter texts occur in ordinary words.
const SHORTEST: usize = 5;
/// Shortest secret in idempotency keys, links and mails. Shorter ones in tests may be plain words.
const SHORTEST_SECRET: usize = 16;
/// Longest prefix of a text that is searched for.
const LONGEST_CHARS: usize = 64;
/// Length of the log excerpt in a failure.
const EXCERPT: usize = 300;

/// Confidential texts of a world, each with the name of its field.
#[derive(Clone, Default)]
pub(crate) struct Confidential(Arc<Mutex<BTreeMap<String, String>>>);

impl Confidential {
    /// Notes the confidential members of a sent or received body.
    pub(crate) fn note_body(&self, body: &Value) {
        match body {
            // The envelope of a message to or from an assistant names tools and products.
            Value::Object(members) if members.contains_key("jsonrpc") => {
                for part in [&body["params"]["arguments"], &body["result"]["structuredContent"]] {
                    self.note_body(part);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        // Ids may be logged, and some tests use the id as a name.
                        Value::String(text) if members.iter().any(|(other, id)| is_id(other) && id == text) => {}
                        Value::String(text) if FIELDS.contains(&name.as_str()) => self.note_text(name, text),
                        other => self.note_body(other),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.note_body(item)),
            // A fact is serialised text in its envelope.
            Value::String(text) if text.starts_with('{') => {
                if let Ok(inner) = serde_json::from_str(text) {
                    self.note_body(&inner);
                }
            }
            _ => {}
        }
    }

    /// Notes a header's value.
    pub(crate) fn note_header(&self, name: &str, value: &str) {
        if HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            self.note_words(name, value);
        }
    }

    /// Notes the confidential parts of a URL: a link's token and query values.
    pub(crate) fn note_target(&self, target: &str) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path.contains("/login/") || path.contains("/intake/") {
            self.note_words("path", path);
        }
        for pair in query.split('&') {
            if let Some((name, value)) = pair.split_once('=')
                && FIELDS.contains(&name)
            {
                self.note_text(name, value);
            }
        }
    }

    fn note_text(&self, name: &str, text: &str) {
        if name != "url" && text.contains("://") || matches!(name, "text" | "html" | "subject") {
            self.note_words(name, text);
        } else if text.len() >= SHORTEST && !OUR_WORDS.contains(&text.to_lowercase().as_str()) {
            self.note(name, text);
            if text.contains('@') {
                self.note(name, &text.to_lowercase());
            }
        }
    }

    /// Notes the parts of a longer text that look like secrets.
    fn note_words(&self, name: &str, text: &str) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
        for word in text.split(|c| !is_part(c)) {
            let is_secret = word.len() >= SHORTEST_SECRET && word.contains(|c: char| c.is_ascii_digit());
            if is_secret {
                self.note(name, word);
            }
        }
    }

    fn note(&self, name: &str, text: &str) {
        let looked_for: String = text.chars().take(LONGEST_CHARS).collect();
        self.0.lock().unwrap().entry(looked_for).or_insert_with(|| name.to_owned());
    }

    /// Asserts that the log holds no noted text.
    pub(crate) fn assert_absent_from(&self, log: &str) {
        let noted = self.0.lock().unwrap();
        let texts: Vec<(&String, &String)> = noted.iter().collect();
        let search = AhoCorasick::new(texts.iter().map(|(text, _)| text)).unwrap();
        // A name may be part of a longer word, such as Second in Seconds.
        let is_word = |at: &aho_corasick::Match| {
            let is_letter = |c: char| c.is_alphanumeric();
            !log[..at.start()].ends_with(is_letter) && !log[at.end()..].starts_with(is_letter)
        };
        let found = search.find_overlapping_iter(log).find(is_word).map(|found| {
            let line = log[..found.start()].rfind('\n').map_or(0, |at| at + 1);
            let shown: String = log[line..].lines().next().unwrap_or_default().chars().take(EXCERPT).collect();
            (texts[found.pattern().as_usize()], shown)
        });
        if let Some(((text, name), line)) = found {
            panic!("the log holds what nobody may find in it, from {name}: {text}, in the line\n{line}");
        }
    }
}

/// Returns true for ids of the service and the application. An external id is text of the coach's systems.
fn is_id(name: &str) -> bool {
    name == "id" || name.ends_with("_id") && name != "external_id"
}
