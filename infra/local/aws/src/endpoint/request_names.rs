//! The tables that a DynamoDB request names, and the permissions that it requires.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::access::{Permission, on_each};
use crate::account::arn;

/// The names in a request, parsed once.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct RequestNames {
    table_name: Option<String>,
    index_name: Option<String>,
    stream_arn: Option<String>,
    /// Items by their kind: `Put`, `ConditionCheck`, ..
    transact_items: Vec<HashMap<String, TransactItem>>,
    request_items: HashMap<String, IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TransactItem {
    table_name: Option<String>,
}

impl RequestNames {
    /// Parses the names in a request's body. A malformed body has none.
    pub(super) fn read(request: &[u8]) -> Self {
        serde_json::from_slice(request).unwrap_or_default()
    }

    /// Returns the tables in alphabetical order.
    pub(super) fn tables(&self) -> Vec<String> {
        let transacted =
            self.transact_items.iter().flat_map(HashMap::values).filter_map(|item| item.table_name.as_ref());
        let mut tables: Vec<String> =
            self.table_name.iter().chain(transacted).chain(self.request_items.keys()).cloned().collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    /// Returns the required permissions.
    ///
    /// A transaction requires the permissions of its items. A batch requires its own action on each table. A request to
    /// an index requires the index only. A request without names requires its action on `*`.
    pub(super) fn permissions(&self, operation: &str) -> Vec<Permission> {
        let table = |name: &String| {
            arn("dynamodb", &if name.starts_with("arn:") { name.clone() } else { format!("table/{name}") })
        };
        if operation.starts_with("Transact") {
            let items = self.transact_items.iter().flatten();
            let mut permissions: Vec<Permission> = items
                .filter_map(|(kind, item)| {
                    Some(Permission::new("dynamodb", &format!("{kind}Item"), table(item.table_name.as_ref()?)))
                })
                .collect();
            permissions.sort_unstable();
            permissions.dedup();
            return if permissions.is_empty() { on_each("dynamodb", operation, Vec::new()) } else { permissions };
        }
        let resources = match (&self.table_name, &self.index_name, &self.stream_arn) {
            (Some(name), Some(index), _) => vec![format!("{}/index/{index}", table(name))],
            (Some(name), None, _) => vec![table(name)],
            (None, _, Some(stream)) => vec![stream.clone()],
            (None, _, None) => self.request_items.keys().map(table).collect(),
        };
        on_each("dynamodb", operation, resources)
    }
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
            assert_eq!(RequestNames::read(request.as_bytes()).tables(), expected, "{request}");
        }
    }

    #[test]
    fn a_request_requires_the_permissions_of_the_authorization_reference() {
        let writes = r#"{"TransactItems": [{"Put": {"TableName": "b"}}, {"ConditionCheck": {"TableName": "a"}},
            {"Put": {"TableName": "b"}}, {"Update": {"TableName": "b"}}, {"Delete": {"TableName": "a"}}]}"#;
        let batch = r#"{"RequestItems": {"b": {"Keys": []}, "a": {"Keys": []}}}"#;
        for (operation, request, expected) in [
            ("PutItem", r#"{"TableName": "a", "Item": {}, "ReturnValues": "ALL_OLD"}"#, &["PutItem table/a"][..]),
            ("Query", r#"{"TableName": "a", "IndexName": "i"}"#, &["Query table/a/index/i"]),
            ("Query", r#"{"TableName": "a"}"#, &["Query table/a"]),
            ("BatchGetItem", batch, &["BatchGetItem table/a", "BatchGetItem table/b"]),
            ("BatchWriteItem", r#"{"RequestItems": {"a": [{"DeleteRequest": {}}]}}"#, &["BatchWriteItem table/a"]),
            (
                "TransactWriteItems",
                writes,
                &["ConditionCheckItem table/a", "DeleteItem table/a", "PutItem table/b", "UpdateItem table/b"],
            ),
            ("TransactGetItems", r#"{"TransactItems": [{"Get": {"TableName": "a"}}]}"#, &["GetItem table/a"]),
        ] {
            let permissions = RequestNames::read(request.as_bytes()).permissions(operation);
            let expected = expected.iter().map(|need| need.split_once(' ').unwrap());
            let expected = expected.map(|(action, name)| Permission::new("dynamodb", action, arn("dynamodb", name)));
            assert_eq!(permissions, expected.collect::<Vec<_>>(), "{operation} {request}");
        }
    }

    #[test]
    fn a_request_without_names_requires_everything() {
        for (operation, request) in
            [("ListTables", "{}"), ("PutItem", "no json"), ("TransactWriteItems", "no json"), ("BatchGetItem", "{}")]
        {
            let everything = [Permission::new("dynamodb", operation, "*")];
            assert_eq!(
                RequestNames::read(request.as_bytes()).permissions(operation),
                everything,
                "{operation} {request}"
            );
        }
    }
}
