//! The consumed capacity in a response.

use serde::Deserialize;

use crate::calls::Units;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CapacityReport {
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

/// Returns the units in a response. Units that are neither read nor write units count by the operation.
pub(super) fn consumed(operation: &str, answer: &[u8]) -> Units {
    let reported =
        match serde_json::from_slice::<CapacityReport>(answer).ok().and_then(|answer| answer.consumed_capacity) {
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
    fn units_count_by_the_operation_unless_the_report_separates_them() {
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
