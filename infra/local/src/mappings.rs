//! Event source mappings: they invoke functions with messages of queues and records of streams.

mod sqs;
mod stream;

use serde_json::Value;

pub use sqs::SqsMapping;
pub use stream::StreamMapping;

/// The items that a function reports as failed.
#[derive(Debug, PartialEq, Eq)]
enum Failures {
    /// The items with these identifiers failed. An empty list is complete success.
    Items(Vec<String>),
    /// The response is malformed, so Lambda treats the whole batch as failed.
    Everything,
}

/// Parses a partial batch response by Lambda's rules: a missing, null or empty list is success.
fn failures(answer: &Value) -> Failures {
    let items = match answer.get("batchItemFailures") {
        None | Some(Value::Null) => return Failures::Items(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Failures::Everything,
    };
    let identifiers = items.iter().map(|item| item["itemIdentifier"].as_str().filter(|id| !id.is_empty()));
    match identifiers.map(|id| id.map(str::to_owned)).collect() {
        Some(identifiers) => Failures::Items(identifiers),
        None => Failures::Everything,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[rstest::rstest]
    #[case(json!(null), Failures::Items(vec![]))]
    #[case(json!({}), Failures::Items(vec![]))]
    #[case(json!({"batchItemFailures": []}), Failures::Items(vec![]))]
    #[case(json!({"batchItemFailures": null}), Failures::Items(vec![]))]
    #[case(json!({"batchItemFailures": [{"itemIdentifier": "a"}]}), Failures::Items(vec!["a".to_owned()]))]
    #[case(json!({"batchItemFailures": [{"itemIdentifier": ""}]}), Failures::Everything)]
    #[case(json!({"batchItemFailures": [{"id": "a"}]}), Failures::Everything)]
    #[case(json!({"batchItemFailures": "a"}), Failures::Everything)]
    fn partial_batch_responses_are_read_as_lambda_does(#[case] answer: Value, #[case] wanted: Failures) {
        assert_eq!(failures(&answer), wanted);
    }
}
