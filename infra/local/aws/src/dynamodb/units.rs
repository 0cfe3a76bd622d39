//! What a request names and what its answer says it used.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::calls::Units;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Request {
    table_name: Option<String>,
    #[serde(default)]
    transact_items: Vec<HashMap<String, TransactItem>>,
    #[serde(default)]
    request_items: HashMap<String, IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TransactItem {
    table_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    consumed_capacity: Option<OneOrMany>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Capacity),
    Many(Vec<Capacity>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Capacity {
    #[serde(default)]
    capacity_units: f64,
    read_capacity_units: Option<f64>,
    write_capacity_units: Option<f64>,
}

/// The tables that a request names, in alphabetical order.
pub(super) fn tables(request: &[u8]) -> Vec<String> {
    let Ok(request) = serde_json::from_slice::<Request>(request) else { return Vec::new() };
    let transacted =
        request.transact_items.into_iter().flat_map(HashMap::into_values).filter_map(|item| item.table_name);
    let mut tables: Vec<String> =
        request.table_name.into_iter().chain(transacted).chain(request.request_items.into_keys()).collect();
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// The units that an answer reports. A report that does not tell reads from writes counts by the operation.
pub(super) fn consumed(operation: &str, answer: &[u8]) -> Units {
    let reported = match serde_json::from_slice::<Answer>(answer).ok().and_then(|answer| answer.consumed_capacity) {
        None => return Units::default(),
        Some(OneOrMany::One(one)) => vec![one],
        Some(OneOrMany::Many(many)) => many,
    };
    let reads = matches!(operation, "GetItem" | "Query" | "Scan" | "BatchGetItem" | "TransactGetItems");
    reported.iter().fold(Units::default(), |sum, capacity| {
        let (read, write) = match (capacity.read_capacity_units, capacity.write_capacity_units) {
            (None, None) if reads => (capacity.capacity_units, 0.0),
            (None, None) => (0.0, capacity.capacity_units),
            (read, write) => (read.unwrap_or_default(), write.unwrap_or_default()),
        };
        Units { read: sum.read + read, write: sum.write + write }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_request_names_its_tables_once() {
        for (request, expected) in [
            (r#"{"TableName": "a", "Key": {}}"#, vec!["a"]),
            (r#"{"RequestItems": {"b": {"Keys": []}, "a": {"Keys": []}}}"#, vec!["a", "b"]),
            (
                r#"{"TransactItems": [{"Put": {"TableName": "b"}}, {"Update": {"TableName": "a"}}, {"Put": {"TableName": "b"}}]}"#,
                vec!["a", "b"],
            ),
            ("not json", vec![]),
        ] {
            assert_eq!(tables(request.as_bytes()), expected, "{request}");
        }
    }

    #[test]
    fn units_count_as_the_operation_unless_the_report_tells_them_apart() {
        for (operation, answer, read, write) in [
            ("GetItem", r#"{"ConsumedCapacity": {"TableName": "a", "CapacityUnits": 0.5}}"#, 0.5, 0.0),
            ("UpdateItem", r#"{"ConsumedCapacity": {"TableName": "a", "CapacityUnits": 2}}"#, 0.0, 2.0),
            ("TransactWriteItems", r#"{"ConsumedCapacity": [{"CapacityUnits": 4}, {"CapacityUnits": 2}]}"#, 0.0, 6.0),
            (
                "UpdateItem",
                r#"{"ConsumedCapacity": {"CapacityUnits": 3, "ReadCapacityUnits": 1, "WriteCapacityUnits": 2}}"#,
                1.0,
                2.0,
            ),
            ("GetItem", "{}", 0.0, 0.0),
        ] {
            assert_eq!(consumed(operation, answer.as_bytes()), Units { read, write }, "{operation} {answer}");
        }
    }
}
