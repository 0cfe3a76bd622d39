//! Tools: operations of the API as an assistant calls them over the Model Context Protocol.
//!
//! A tool names one operation. Its arguments have the names of the operation's parameters and members, and their limits
//! come from the same constants and schemas. Schemas are flat and short, because a model reads all of them before its
//! first call. `functions/docs` compares each tool with the operation in the OpenAPI document.

mod crm;
mod definition;
mod partner;
mod schema;

use std::sync::LazyLock;

pub use definition::{
    Argument, ArgumentPlace, Effect, IDEMPOTENCY_KEY, MAX_ARGUMENT_CHARS, Need, Repeat, TOOL_DAILY_LOGS,
    TOOL_FREE_DAYS, TOOL_PAGE, Tool,
};
pub use schema::WITHHELD;

/// All tools, in the order in which they are listed.
pub static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| partner::tools().into_iter().chain(crm::tools()).collect());

/// Returns the tool of that name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_plain_and_unique() {
        let names: BTreeSet<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), TOOLS.len());
        let is_plain = |name: &str| name.len() <= 40 && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
        assert!(names.into_iter().all(is_plain));
    }

    #[test]
    fn schemas_are_flat_and_results_are_open() {
        for tool in TOOLS.iter() {
            let listed = tool.describe();
            assert_eq!(listed["inputSchema"]["additionalProperties"], false, "{}", tool.name);
            for (name, argument) in listed["inputSchema"]["properties"].as_object().unwrap() {
                assert!(argument["type"].is_string() || argument["type"].is_array(), "{} {name}", tool.name);
                for nested in ["oneOf", "anyOf", "$ref", "properties", "pattern"] {
                    assert!(argument.get(nested).is_none(), "{} {name} has {nested}", tool.name);
                }
            }
            let (result, text) = (&listed["outputSchema"], listed["outputSchema"].to_string());
            assert_eq!(result["type"], "object", "{}", tool.name);
            let members = result["properties"].as_object().unwrap();
            assert!(!members.is_empty() && WITHHELD.iter().all(|name| !members.contains_key(*name)), "{}", tool.name);
            for closed in ["additionalProperties", "format", "pattern", "$ref"] {
                assert!(!text.contains(closed), "{}: {text}", tool.name);
            }
        }
    }

    #[test]
    fn a_write_says_how_its_repeats_are_recognised() {
        for tool in TOOLS.iter() {
            let has_key = tool.argument(IDEMPOTENCY_KEY).is_some();
            assert_eq!(has_key, tool.repeat == Repeat::GivenKey, "{}", tool.name);
            assert!(tool.effect != Effect::Reads || tool.repeat == Repeat::NoKey, "{}", tool.name);
        }
    }
}
