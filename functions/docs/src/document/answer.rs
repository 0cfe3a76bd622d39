//! The builder of a response that is no refusal.

use domain::list::CrmPage;
use domain::openapi::{NamedSchema, referenced};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::components::Schemas;
use super::links;
use super::prose::Prose;
use super::response::{Body, Example, JSON, Response};

/// A response, built step by step. `reference` describes it.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Reference to the schema of its JSON.
    schema: Option<Value>,
    pub(super) schemas: Schemas,
    /// Values of examples that differ from those of the schema, by name.
    examples: Vec<(&'static str, Value)>,
    /// Bodies of other media types, and their schemas.
    others: Vec<(&'static str, Value)>,
    headers: Vec<String>,
    /// Id and path of the list whose pages the answer has.
    list: Option<(&'static str, &'static str)>,
}

impl Answer {
    /// Creates an answer without a body.
    pub(super) fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// Creates an answer of JSON.
    pub(super) fn of<T: ToSchema>(status: u16) -> Self {
        let mut answer = Self::new(status);
        answer.schema = Some(answer.schemas.add(NamedSchema::of::<T>()));
        answer
    }

    /// Creates an answer with one record, under the record's name.
    pub(super) fn with_record<T: ToSchema>(status: u16) -> Self {
        let mut answer = Self::of::<T>(status);
        let member = T::name().to_lowercase();
        let object = json!({ "type": "object", "required": [member], "properties": { member: answer.schema } });
        answer.schema = Some(answer.schemas.insert(&format!("{}Result", T::name()), object));
        answer
    }

    /// Creates the answer of a CRM list.
    pub(super) fn page_of<T: ToSchema>() -> Self {
        let mut answer = Self::of::<T>(200);
        let NamedSchema { name: own, mut schemas } = NamedSchema::of::<CrmPage<T>>();
        let mut page = schemas.remove(&own).unwrap_or_default();
        page["properties"]["data"]["items"] = json!(answer.schema);
        answer.schema = Some(answer.schemas.insert(&format!("{}Page", T::name()), page));
        answer
    }

    /// Adds another form of the items of a list.
    pub(super) fn or_item<T: ToSchema>(mut self) -> Self {
        let other = self.schemas.add(NamedSchema::of::<T>());
        let page = self.schema.as_ref().and_then(Value::as_object).and_then(referenced);
        let page = page.and_then(|name| self.schemas.0.get_mut(name)).expect("the answer is a page");
        let items = &mut page["properties"]["data"]["items"];
        *items = json!({ "anyOf": [items.take(), other] });
        self
    }

    /// Adds an example, with the values that differ from those of the schema.
    pub(super) fn example(mut self, name: &'static str, given: Value) -> Self {
        self.examples.push((name, given));
        self
    }

    /// Adds a text of a media type.
    pub(super) fn text(self, media_type: &'static str) -> Self {
        self.content(media_type, json!({ "type": "string" }))
    }

    /// Adds a body of a media type.
    pub(super) fn content(mut self, media_type: &'static str, schema: Value) -> Self {
        self.others.push((media_type, schema));
        self
    }

    pub(super) fn header(mut self, header: String) -> Self {
        self.headers.push(header);
        self
    }

    /// Adds a link to the next page of the list with this id and path.
    pub(super) fn link_to_next_page(self, id: &'static str, path: &'static str) -> Self {
        Self { list: Some((id, path)), ..self }
    }

    /// Returns the response. Its headers are those that follow from the route, and its own.
    pub(super) fn response(&self, prose: Prose, mut headers: Vec<String>, schemas: &Schemas) -> Response {
        let status = self.status.to_string();
        let about = prose.part(&status);
        let about = about.unwrap_or_else(|| panic!("reference: `{}` lacks `{status}`", prose.section.title));
        headers.extend(self.headers.iter().cloned());
        let mut links: Map<String, Value> =
            self.list.iter().map(|(id, path)| ((*id).to_owned(), links::to_next_page(id, path))).collect();
        let other = |(media_type, schema): &(&'static str, Value)| Body {
            media_type,
            schema: schema.clone(),
            examples: Vec::new(),
        };
        let mut bodies: Vec<Body> = self.others.iter().map(other).collect();
        if let Some(schema) = &self.schema {
            let example = |name: &str, given: Option<&Value>| Example {
                name: name.to_owned(),
                value: schemas.example("an answer", schema, given),
            };
            let mut examples: Vec<_> = self.examples.iter().map(|(name, given)| example(name, Some(given))).collect();
            if examples.is_empty() {
                examples.push(example("", None));
            }
            bodies.push(Body { media_type: JSON, schema: schema.clone(), examples });
            links.extend(links::of(schema, schemas));
        }
        Response {
            status: self.status,
            about: about.to_owned(),
            causes: Vec::new(),
            headers,
            bodies,
            links,
            shared_as: None,
        }
    }
}
