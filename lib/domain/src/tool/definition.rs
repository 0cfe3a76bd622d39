//! The definition of a tool, and the builder of the catalog.

use serde_json::{Map, Value, json};

use super::schema;
use crate::idempotency::MAX_KEY_CHARS;
use crate::list::PageSize;
use crate::openapi::{Body, NamedSchema};

/// Page size of the lists of tools: an answer is read by a model, which pays for each record.
pub const TOOL_PAGE: PageSize = PageSize { default: 20, max: 50 };
/// Most dates of a daily log in the result of a tool.
pub const TOOL_DAILY_LOGS: PageSize = PageSize { default: 90, max: 90 };
/// Days of free times in the result of a tool.
pub const TOOL_FREE_DAYS: PageSize = PageSize { default: 7, max: 14 };
/// Most characters of an argument that no rule of the operation limits.
pub const MAX_ARGUMENT_CHARS: usize = 1_000;
/// The argument with the caller's idempotency key.
pub const IDEMPOTENCY_KEY: &str = "idempotency_key";

/// An operation of the API as a tool.
pub struct Tool {
    pub name: &'static str,
    /// The name for a person.
    pub title: &'static str,
    /// The description for a model.
    pub about: &'static str,
    pub method: &'static str,
    /// The template of the operation's path.
    pub path: &'static str,
    pub effect: Effect,
    pub repeat: Repeat,
    pub arguments: Vec<Argument>,
    /// Members of the body and query parameters that the caller does not choose.
    pub constants: Vec<(&'static str, ArgumentPlace, Value)>,
    /// The schema of a result: the outermost members.
    result: Value,
}

/// An argument of a tool.
pub struct Argument {
    pub name: &'static str,
    pub place: ArgumentPlace,
    pub need: Need,
    pub schema: Value,
}

/// The party that requires an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Nobody,
    /// The operation, which refuses a request without it.
    Operation,
    /// The tool. The operation takes the request without it, or cannot be asked.
    Tool,
}

/// The place of an argument in the operation's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentPlace {
    Path,
    Query,
    /// A query parameter with a number, which falls back to the default and is capped.
    Size(PageSize),
    Body,
    /// The header `Idempotency-Key`.
    Key,
    /// Nowhere: the argument selects from the operation's answer.
    Answer,
}

/// The effect of a tool on the records of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Reads,
    Creates,
    /// Changes or ends something that exists.
    Changes,
}

/// The way in which a repeat of a write is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The tool reads, or its operation takes no idempotency key: a repeat leads to the same state.
    NoKey,
    /// By the argument [`IDEMPOTENCY_KEY`].
    GivenKey,
    /// By the operation's own rules, under a key that is drawn for each call.
    DrawnKey,
    /// By a key that derives from the arguments.
    ArgumentsKey,
}

impl Argument {
    /// Returns true if only the tool requires the argument.
    pub fn is_required_by_tool(&self) -> bool {
        self.need == Need::Tool
    }
}

impl Tool {
    /// Returns the argument of that name.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// Renders the tool for `tools/list`.
    pub fn describe(&self) -> Value {
        let properties: Map<String, Value> =
            self.arguments.iter().map(|argument| (argument.name.to_owned(), argument.schema.clone())).collect();
        let required: Vec<&str> = self
            .arguments
            .iter()
            .filter(|argument| argument.need != Need::Nobody)
            .map(|argument| argument.name)
            .collect();
        let mut input = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            input["required"] = json!(required);
        }
        let annotations = match self.effect {
            Effect::Reads => json!({ "readOnlyHint": true, "openWorldHint": false }),
            effect => json!({
                "destructiveHint": effect == Effect::Changes, "idempotentHint": true, "openWorldHint": false,
            }),
        };
        json!({
            "name": self.name, "title": self.title, "description": self.about, "inputSchema": input,
            "outputSchema": self.result, "annotations": annotations,
        })
    }

    pub(super) fn new(
        name: &'static str,
        title: &'static str,
        effect: Effect,
        (method, path): (&'static str, &'static str),
        about: &'static str,
    ) -> Self {
        let (repeat, arguments, constants) = (Repeat::NoKey, Vec::new(), Vec::new());
        Self { name, title, about, method, path, effect, repeat, arguments, constants, result: Value::Null }
    }

    pub(super) fn reads(name: &'static str, title: &'static str, path: &'static str, about: &'static str) -> Self {
        Self::new(name, title, Effect::Reads, ("GET", path), about)
    }

    pub(super) fn with(mut self, name: &'static str, place: ArgumentPlace, need: Need, schema: Value) -> Self {
        self.arguments.push(Argument { name, place, need, schema });
        self
    }

    /// Adds the id in the path.
    pub(super) fn id(self, name: &'static str) -> Self {
        self.with(name, ArgumentPlace::Path, Need::Tool, json!({ "type": "string" }))
    }

    /// Adds a query parameter.
    pub(super) fn query(self, name: &'static str, schema: Value) -> Self {
        self.with(name, ArgumentPlace::Query, Need::Nobody, schema)
    }

    /// Adds a query parameter with a number.
    pub(super) fn size(self, name: &'static str, size: PageSize) -> Self {
        self.with(name, ArgumentPlace::Size(size), Need::Nobody, schema::size(size))
    }

    /// Adds the parameters of a page.
    pub(super) fn page(self) -> Self {
        self.query("cursor", schema::text()).size("limit", TOOL_PAGE)
    }

    /// Adds members of the operation's body, all that it requires included.
    pub(super) fn body(self, body: Body, names: &[&'static str]) -> Self {
        let body = body.into_json();
        names.iter().fold(self, |tool, name| {
            let is_required = body["required"].as_array().is_some_and(|required| required.contains(&json!(name)));
            let need = if is_required { Need::Operation } else { Need::Nobody };
            tool.with(name, ArgumentPlace::Body, need, schema::compact(&body["properties"][name]))
        })
    }

    /// Requires an argument that the operation does not require.
    pub(super) fn requires(mut self, name: &str) -> Self {
        self.arguments.iter_mut().filter(|argument| argument.name == name).for_each(|one| one.need = Need::Tool);
        self
    }

    /// Allows null, which removes what is there.
    pub(super) fn nullable(mut self, name: &str) -> Self {
        let of_name = self.arguments.iter_mut().filter(|argument| argument.name == name);
        of_name.for_each(|argument| argument.schema["type"] = json!([argument.schema["type"], "null"]));
        self
    }

    /// Describes an argument.
    pub(super) fn says(mut self, name: &str, about: &str) -> Self {
        let of_name = self.arguments.iter_mut().filter(|argument| argument.name == name);
        of_name.for_each(|argument| argument.schema["description"] = json!(about));
        self
    }

    /// Sets what the caller does not choose.
    pub(super) fn constant(mut self, name: &'static str, place: ArgumentPlace, value: impl Into<Value>) -> Self {
        self.constants.push((name, place, value.into()));
        self
    }

    /// Recognises repeats by the caller's key.
    pub(super) fn given_key(mut self) -> Self {
        self.repeat = Repeat::GivenKey;
        let schema = json!({ "type": "string", "maxLength": MAX_KEY_CHARS });
        self.with(IDEMPOTENCY_KEY, ArgumentPlace::Key, Need::Tool, schema)
            .says(IDEMPOTENCY_KEY, "New for each thing to do; the same when you repeat the call")
    }

    pub(super) fn repeat(self, repeat: Repeat) -> Self {
        Self { repeat, ..self }
    }

    /// Sets the type of the operation's answer.
    pub(super) fn answers<T: utoipa::ToSchema>(self) -> Self {
        Self { result: schema::outermost(&NamedSchema::of::<T>().inlined()), ..self }
    }

    /// Sets the answer: one record under its name.
    pub(super) fn answers_record(self, name: &str) -> Self {
        let result = json!({ "type": "object", "properties": { name: { "type": "object" } }, "required": [name] });
        Self { result, ..self }
    }
}
