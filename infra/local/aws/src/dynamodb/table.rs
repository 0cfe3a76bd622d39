//! Creation of tables from their template properties.

use serde_json::{Map, Value, json};

use super::{CallError, DynamoDb};
use crate::error::{SetupError, StoreError};

/// The properties that `CreateTable` accepts. Others have no local effect.
const CREATE_TABLE_FIELDS: [&str; 7] = [
    "TableName",
    "AttributeDefinitions",
    "KeySchema",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
    "BillingMode",
    "ProvisionedThroughput",
];

impl DynamoDb {
    /// Creates the table from the resolved `Properties` of an `AWS::DynamoDB::Table` unless it exists.
    ///
    /// A new stream or TTL is added to an existing table. Changed keys or indexes are an error.
    ///
    /// The table's stream always stores both images. They show whether a write changed anything; AWS has no record of a
    /// write that did not. [`DynamoDb::stream_read`] returns the images of the template's view type.
    pub async fn ensure_table(&self, properties: &Value) -> Result<(), SetupError> {
        let table = properties["TableName"]
            .as_str()
            .ok_or_else(|| SetupError::new("a table of the template has no TableName"))?;
        let in_table = |error: CallError| SetupError::new(format!("table {table}: {}", StoreError::from(error)));
        let view = properties["StreamSpecification"]["StreamViewType"].as_str();
        let stream = json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });
        match self.call("DescribeTable", &json!({ "TableName": table })).await {
            Ok(existing) => {
                if schema(&existing["Table"]) != schema(properties) {
                    return Err(SetupError::new(format!(
                        "table {table} has other keys or indexes in the data directory than in the template: \
                         start with another --data-dir, or remove this one"
                    )));
                }
                if view.is_some() && existing["Table"]["StreamSpecification"]["StreamEnabled"] != true {
                    let update = json!({ "TableName": table, "StreamSpecification": stream });
                    self.call("UpdateTable", &update).await.map_err(in_table)?;
                }
            }
            Err(CallError::NotFound) => {
                let mut request = create_table(properties);
                if view.is_some() {
                    request.insert("StreamSpecification".to_owned(), stream);
                }
                self.call("CreateTable", &Value::Object(request)).await.map_err(in_table)?;
            }
            Err(error) => return Err(in_table(error)),
        }
        if let Some(view) = view {
            self.streams.set_view(table, view);
        }
        self.ensure_ttl(table, &properties["TimeToLiveSpecification"]).await.map_err(in_table)
    }

    async fn ensure_ttl(&self, table: &str, wanted: &Value) -> Result<(), CallError> {
        let wanted = wanted["AttributeName"].as_str().filter(|_| is_true(&wanted["Enabled"]));
        let described = self.call("DescribeTimeToLive", &json!({ "TableName": table })).await?;
        let described = &described["TimeToLiveDescription"];
        let current = described["AttributeName"].as_str().filter(|_| described["TimeToLiveStatus"] == "ENABLED");
        if current == wanted {
            return Ok(());
        }
        for (attribute, enabled) in [(current, false), (wanted, true)] {
            if let Some(attribute) = attribute {
                let specification = json!({ "AttributeName": attribute, "Enabled": enabled });
                let request = json!({ "TableName": table, "TimeToLiveSpecification": specification });
                self.call("UpdateTimeToLive", &request).await?;
            }
        }
        Ok(())
    }
}

fn create_table(properties: &Value) -> Map<String, Value> {
    let mut request: Map<String, Value> = CREATE_TABLE_FIELDS
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), properties.get(*field)?.clone())))
        .collect();
    if !request.contains_key("ProvisionedThroughput") {
        request.insert("BillingMode".to_owned(), json!("PAY_PER_REQUEST"));
    }
    request
}

/// Reads a boolean property. CloudFormation accepts `true` and `"true"`.
fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or(value == "true")
}

/// Extracts the immutable part of a table's properties or description, in a canonical order.
fn schema(table: &Value) -> Value {
    let keys = |of: &Value| {
        let mut keys: Vec<(String, String)> =
            list(of, "KeySchema").map(|key| (text(key, "KeyType"), text(key, "AttributeName"))).collect();
        keys.sort_unstable();
        keys
    };
    let mut attributes: Vec<(String, String)> = list(table, "AttributeDefinitions")
        .map(|attribute| (text(attribute, "AttributeName"), text(attribute, "AttributeType")))
        .collect();
    attributes.sort_unstable();
    let mut indexes: Vec<(String, Value)> = ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"]
        .into_iter()
        .flat_map(|kind| list(table, kind).map(move |index| (kind, index)))
        .map(|(kind, index)| {
            let projection = &index["Projection"];
            let mut others: Vec<&Value> = list(projection, "NonKeyAttributes").collect();
            others.sort_unstable_by_key(|name| name.as_str());
            let shape = json!([kind, keys(index), projection["ProjectionType"], others]);
            (text(index, "IndexName"), shape)
        })
        .collect();
    indexes.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    json!([keys(table), attributes, indexes])
}

fn list<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    of[field].as_array().into_iter().flatten()
}

fn text(of: &Value, field: &str) -> String {
    of[field].as_str().unwrap_or_default().to_owned()
}
