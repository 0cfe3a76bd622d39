//! The page about the tools of assistants, from the table of tools.

use domain::tool::{Argument, Effect, Need, TOOLS, Tool};
use edge::routes::{Access, ROUTES};

use super::context::Context;
use super::markdown::link_to;
use super::table;
use crate::site::REFERENCE;

const ABOUT: &str = "The tools of `POST /mcp`, over the Model Context Protocol, with the operation that each calls. \
                     [Connect an assistant](/docs/guides/assistants) says how. A key's list has the tools that the key may \
                     use. Arguments have the names of the operation's parameters and members; those that a call needs \
                     are **bold**. Lists take `cursor` and `limit`, too.";

/// The arguments of a list, which would stand in half of the rows.
const OF_LISTS: [&str; 2] = ["cursor", "limit"];

pub(super) fn markdown(context: Context<'_>) -> String {
    let groups = [
        ("For any key", tools(|access| matches!(access, Access::AnyKey | Access::Events))),
        ("For partner keys", tools(|access| matches!(access, Access::Partner(_)))),
        ("For CRM keys", tools(|access| matches!(access, Access::Crm(_)))),
    ];
    let section = |(title, tools): (&str, Vec<&Tool>)| {
        let rows = tools.into_iter().map(|tool| row(tool, context));
        format!("\n## {title}\n{}", table::render(["Tool", "What it does", "Arguments"], rows))
    };
    format!("# Tools for assistants\n\n{ABOUT}\n{}", groups.map(section).concat())
}

/// The tools whose operations ask for such a credential.
fn tools(is_wanted: fn(Access) -> bool) -> Vec<&'static Tool> {
    let access = |tool: &Tool| {
        let route = ROUTES.iter().find(|route| (route.method, route.path) == (tool.method, tool.path));
        route.map(|route| route.access)
    };
    TOOLS.iter().filter(|tool| access(tool).is_some_and(is_wanted)).collect()
}

fn row(tool: &Tool, context: Context<'_>) -> [String; 3] {
    let mark = match tool.effect {
        Effect::Reads => "",
        Effect::Creates => " It writes.",
        Effect::Changes => " It is marked as destructive.",
    };
    let argument = |argument: &Argument| match argument.need {
        Need::Nobody => format!("`{}`", argument.name),
        Need::Operation | Need::Tool => format!("**`{}`**", argument.name),
    };
    let is_list = tool.argument(OF_LISTS[0]).is_some();
    let shown = tool.arguments.iter().filter(|argument| !is_list || !OF_LISTS.contains(&argument.name));
    let arguments: Vec<String> = shown.map(argument).collect();
    let route = format!("{} {}", tool.method, tool.path);
    let operation = context.document.operations.iter().find(|operation| operation.route.to_string() == route);
    let link = operation.map_or_else(|| format!("[{route}]({REFERENCE})"), link_to);
    [format!("`{}`", tool.name), format!("{}{mark} Operation: {link}.", tool.about), arguments.join(", ")]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use domain::mode::Mode;
    use domain::tool::{ArgumentPlace, WITHHELD};
    use serde_json::{Value, json};

    use super::*;
    use crate::document::document;

    /// Follows a reference of the document, and joins the parts of `allOf`.
    fn resolved(document: &Value, schema: &Value) -> Value {
        let target = schema["$ref"].as_str().and_then(|to| document.pointer(&to[1..])).unwrap_or(schema).clone();
        let parts = target["allOf"].as_array().cloned().unwrap_or_default();
        parts.iter().map(|part| resolved(document, part)).fold(target, |mut whole, part| {
            for (name, member) in part["properties"].as_object().into_iter().flatten() {
                whole["properties"][name] = member.clone();
            }
            whole
        })
    }

    /// The type of a schema without null. A filter may be empty instead.
    fn type_of(schema: &Value) -> &Value {
        match (&schema["type"], &schema["anyOf"]) {
            (Value::Array(types), _) => &types[0],
            (Value::Null, Value::Array(choices)) => type_of(&choices[0]),
            (kind, _) => kind,
        }
    }

    #[test]
    fn each_tool_fits_its_operation() {
        let document = document(Mode::Live);
        for tool in TOOLS.iter() {
            let operation = &document["paths"][tool.path][tool.method.to_lowercase()];
            assert!(operation.is_object(), "{} has no operation", tool.name);
            let body = resolved(&document, &operation["requestBody"]["content"]["application/json"]["schema"]);
            let parameter = |place: &str, name: &str| {
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                parameters.into_iter().find(|one| one["in"] == place && one["name"] == name).cloned()
            };
            for argument in &tool.arguments {
                let (name, told) = (argument.name, &argument.schema);
                let asked = match argument.place {
                    ArgumentPlace::Path => parameter("path", &name.replace("client_id", "clientId")),
                    ArgumentPlace::Query | ArgumentPlace::Size(_) => parameter("query", name),
                    ArgumentPlace::Body => body["properties"].get(name).map(|schema| json!({ "schema": schema })),
                    ArgumentPlace::Key => parameter("header", "Idempotency-Key"),
                    ArgumentPlace::Answer => continue,
                };
                let asked = asked.unwrap_or_else(|| panic!("{} has no {name}", tool.path));
                let asked = resolved(&document, &asked["schema"]);
                // A yes or no in a query is a text to the API.
                if told["type"] != "boolean" {
                    assert_eq!(type_of(told), type_of(&asked), "{} {name}", tool.name);
                }
                for limit in ["maxLength", "enum", "const", "format"] {
                    let is_stated = told.get(limit).is_some() && asked.get(limit).is_some();
                    assert!(
                        !is_stated || limit == "enum" || told[limit] == asked[limit],
                        "{} {name}: {limit}",
                        tool.name
                    );
                }
            }
            for name in body["required"].as_array().into_iter().flatten() {
                let is_given =
                    tool.arguments.iter().any(|argument| name == argument.name && argument.need != Need::Nobody);
                assert!(is_given, "{} does not require {name}", tool.name);
            }
        }
    }

    #[test]
    fn each_result_has_the_outermost_members_of_the_answer() {
        let document = document(Mode::Live);
        for tool in TOOLS.iter() {
            let responses = &document["paths"][tool.path][tool.method.to_lowercase()]["responses"];
            let success = responses.as_object().unwrap().iter().find(|(status, _)| status.starts_with('2')).unwrap().1;
            let success = resolved(&document, success);
            let content = success["content"].as_object().unwrap().values().next().unwrap();
            let schema = resolved(&document, &content["schema"]);
            let names = |schema: &Value| -> BTreeSet<String> {
                schema["properties"].as_object().unwrap().keys().cloned().collect()
            };
            let withheld = WITHHELD.map(str::to_owned);
            let answered: BTreeSet<String> =
                names(&schema).into_iter().filter(|name| !withheld.contains(name)).collect();
            assert_eq!(names(&tool.describe()["outputSchema"]), answered, "{}", tool.name);
        }
    }
}
