//! Creation of tables from their template properties.

use rusqlite::OptionalExtension;
use serde_json::{Map, Value, json};

use super::DynamoDb;
use crate::error::{SetupError, StoreError};

pub(crate) const DEFINITIONS_SCHEMA: &str =
    "CREATE TABLE IF NOT EXISTS table_definitions (name TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;";

/// The properties that `CreateTable` accepts. Others have no local effect.
const CREATE_TABLE_FIELDS: [&str; 6] = [
    "TableName",
    "AttributeDefinitions",
    "KeySchema",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
    "BillingMode",
];

impl DynamoDb {
    /// Creates the table from the resolved `Properties` of an `AWS::DynamoDB::Table` unless it exists. A table that was
    /// created by another definition is an error.
    ///
    /// The table's stream always stores both images. They show whether a write changed anything; AWS has no record of a
    /// write that did not. [`DynamoDb::stream_read`] returns the images of the template's view type.
    pub async fn ensure_table(&self, properties: &Value) -> Result<(), SetupError> {
        let table = properties["TableName"]
            .as_str()
            .ok_or_else(|| SetupError::new("a table of the template has no TableName"))?;
        let in_table = |error: StoreError| SetupError::new(format!("table {table}: {error}"));
        let view = properties["StreamSpecification"]["StreamViewType"].as_str();
        let (create, ttl) = (create_table(properties), &properties["TimeToLiveSpecification"]);
        let definition = json!([create, ttl]).to_string();
        match self.stored_definition(table).await? {
            Some(stored) if stored == definition => {}
            Some(_) => {
                return Err(SetupError::new(format!(
                    "table {table} has other keys or indexes, or another stream or expiry, in the data directory than in \
                     the template: start with another --data-dir, or remove this one"
                )));
            }
            None => {
                self.create(table, &create, ttl).await.map_err(in_table)?;
                self.store_definition(table, &definition).await?;
            }
        }
        if let Some(view) = view {
            self.streams.set_view(table, view);
        }
        Ok(())
    }

    async fn create(&self, table: &str, create: &Value, ttl: &Value) -> Result<(), StoreError> {
        let named = json!({ "TableName": table });
        // A start that was killed may have left the table unfinished, and without data.
        let left = self.call("ListTables", &json!({})).await?;
        if list(&left, "TableNames").any(|name| name == table) {
            self.call("DeleteTable", &named).await?;
        }
        self.call("CreateTable", create).await?;
        if ttl["Enabled"] == true {
            let request = json!({ "TableName": table, "TimeToLiveSpecification": ttl });
            self.call("UpdateTimeToLive", &request).await?;
        }
        Ok(())
    }

    async fn stored_definition(&self, table: &str) -> Result<Option<String>, StoreError> {
        const READ: &str = "SELECT definition FROM table_definitions WHERE name = ?1";
        self.services.run(|connection| connection.query_row(READ, [table], |row| row.get(0)).optional()).await
    }

    async fn store_definition(&self, table: &str, definition: &str) -> Result<(), StoreError> {
        const STORE: &str = "INSERT INTO table_definitions (name, definition) VALUES (?1, ?2)";
        self.services.run(|connection| connection.execute(STORE, (table, definition)).map(drop)).await
    }
}

fn create_table(properties: &Value) -> Value {
    let mut request: Map<String, Value> = CREATE_TABLE_FIELDS
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), properties.get(*field)?.clone())))
        .collect();
    if !properties["StreamSpecification"].is_null() {
        let stream = json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });
        request.insert("StreamSpecification".to_owned(), stream);
    }
    Value::Object(request)
}

fn list<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    of[field].as_array().into_iter().flatten()
}
