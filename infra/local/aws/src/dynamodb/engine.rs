//! dynoxide in this process: requests and responses as JSON, one operation at a time.
//!
//! dynoxide's own HTTP server would answer the same, but with a second connection for each request: a tenth of the
//! processor time of the end-to-end tests, and a third of an idle stack's.

use std::path::Path;

use bytes::Bytes;
use dynoxide::{Database, DynoxideError};
use http::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use crate::error::{OpenError, StoreError};

/// The database, `None` once it is closed. SQLite runs one operation at a time, and so does this lock: the others wait
/// without a thread.
pub(super) struct Engine(Mutex<Option<Database>>);

/// A response of dynoxide.
pub(crate) struct EngineAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Engine {
    /// Opens the file.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |what: &str| OpenError::new(format!("the local DynamoDB does not start: {what}"));
        let name = path.to_str().ok_or_else(|| failed("the data directory's name is not UTF-8"))?;
        let database = Database::new(name).map_err(|error| failed(&error.to_string()))?;
        // dynoxide opens with `synchronous = FULL`. Leaving its bulk mode sets `NORMAL` and small caches.
        database
            .enable_bulk_loading()
            .and_then(|()| database.disable_bulk_loading())
            .map_err(|error| failed(&error.to_string()))?;
        Ok(Self(Mutex::new(Some(database))))
    }

    /// Runs an operation.
    pub(super) async fn call(&self, operation: &str, body: &[u8]) -> Result<EngineAnswer, StoreError> {
        let database = self.0.lock().await;
        let outcome = run(database.as_ref().ok_or(StoreError::Closed)?, operation, body);
        let (status, body) = match outcome {
            Ok(body) => (StatusCode::OK, body),
            Err(error) => {
                let status = StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                (status, error.to_json())
            }
        };
        Ok(EngineAnswer { status, body: Bytes::from(body) })
    }

    /// Closes the file after the running operation.
    pub(super) async fn close(&self) {
        self.0.lock().await.take();
    }
}

/// Runs an operation of dynoxide by its name in `X-Amz-Target`.
fn run(database: &Database, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
    macro_rules! operations {
        ($($name:literal => $run:ident,)*) => {
            match operation {
                $($name => rendered(&database.$run(parsed(body)?)?),)*
                _ => Err(DynoxideError::ValidationException(format!("the local DynamoDB has no {operation}"))),
            }
        };
    }
    operations! {
        "BatchExecuteStatement" => batch_execute_statement,
        "BatchGetItem" => batch_get_item,
        "BatchWriteItem" => batch_write_item,
        "CreateTable" => create_table,
        "DeleteItem" => delete_item,
        "DeleteTable" => delete_table,
        "DescribeStream" => describe_stream,
        "DescribeTable" => describe_table,
        "DescribeTimeToLive" => describe_time_to_live,
        "ExecuteStatement" => execute_statement,
        "ExecuteTransaction" => execute_transaction,
        "GetItem" => get_item,
        "GetRecords" => get_records,
        "GetShardIterator" => get_shard_iterator,
        "ListStreams" => list_streams,
        "ListTables" => list_tables,
        "ListTagsOfResource" => list_tags_of_resource,
        "PutItem" => put_item,
        "Query" => query,
        "Scan" => scan,
        "TagResource" => tag_resource,
        "TransactGetItems" => transact_get_items,
        "TransactWriteItems" => transact_write_items,
        "UntagResource" => untag_resource,
        "UpdateItem" => update_item,
        "UpdateTable" => update_table,
        "UpdateTimeToLive" => update_time_to_live,
    }
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, DynoxideError> {
    serde_json::from_slice(body).map_err(|error| {
        let reason = error.to_string();
        // dynoxide marks a value that DynamoDB can read but finds invalid.
        let invalid = ["VALIDATION:", "VALIDATION_REQUEST:"].iter().find_map(|mark| reason.strip_prefix(mark));
        match invalid {
            Some(invalid) => DynoxideError::ValidationException(invalid.to_owned()),
            None => DynoxideError::SerializationException(reason),
        }
    })
}

fn rendered<T: Serialize>(response: &T) -> Result<String, DynoxideError> {
    serde_json::to_string(response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
