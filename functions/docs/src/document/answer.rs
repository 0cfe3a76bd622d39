//! A response that is no refusal.

use domain::list::CrmPage;
use domain::openapi::{NamedSchema, referenced};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::components::Schemas;
use super::headers;
use super::links;
use super::prose::Prose;

/// A response, built step by step. `reference` describes it.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Reference to the schema of its JSON.
    schema: Option<Value>,
    schemas: Schemas,
    /// Values of examples that differ from those of the schema, by name.
    examples: Map<String, Value>,
    headers: Vec<String>,
    /// The response as JSON, without the rest.
    rendered: Map<String, Value>,
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
    pub(super) fn example(mut self, name: &str, given: Value) -> Self {
        self.examples.insert(name.to_owned(), given);
        self
    }

    /// Adds a text of a media type.
    pub(super) fn text(self, media_type: &str) -> Self {
        self.content(media_type, json!({ "type": "string" }))
    }

    /// Adds a body of a media type.
    pub(super) fn content(mut self, media_type: &str, schema: Value) -> Self {
        self.member("content")[media_type] = json!({ "schema": schema });
        self
    }

    fn member(&mut self, name: &str) -> &mut Value {
        self.rendered.entry(name).or_insert_with(|| json!({}))
    }

    pub(super) fn header(mut self, header: String) -> Self {
        self.headers.push(header);
        self
    }

    /// Adds a link to the next page of the list with this id and path.
    pub(super) fn link_to_next_page(mut self, id: &str, path: &str) -> Self {
        self.member("links")[id] = links::to_next_page(id, path);
        self
    }

    /// Renders the response as JSON. Its schemas go to the components.
    pub(super) fn render(mut self, prose: Prose, mut headers: Vec<String>, schemas: &mut Schemas) -> Value {
        let status = self.status.to_string();
        let about = prose.part(&status);
        let about = about.unwrap_or_else(|| panic!("reference: `{}` lacks `{status}`", prose.section.title));
        headers.append(&mut self.headers);
        self.rendered.insert("description".to_owned(), json!(about));
        self.rendered.insert("headers".to_owned(), headers::references(&headers));
        schemas.0.append(&mut self.schemas.0);
        if let Some(schema) = self.schema.take() {
            let example = |given: Option<&Value>| schemas.example("an answer", &schema, given);
            let named =
                self.examples.iter().map(|(name, given)| (name.clone(), json!({ "value": example(Some(given)) })));
            let body = match named.collect::<Map<_, _>>() {
                named if named.is_empty() => json!({ "schema": schema, "example": example(None) }),
                named => json!({ "schema": schema, "examples": named }),
            };
            self.member("content")["application/json"] = body;
            for (id, link) in links::of(&schema, schemas) {
                self.member("links")[&id] = link;
            }
        }
        Value::Object(self.rendered)
    }
}
