//! DynamoDB: dynoxide on `dynamodb.sqlite`, streams with durable checkpoints, and TTL on stack time.
//!
//! dynoxide neither indexes nor trims its stream records. A second connection to the same file adds an index, reads the
//! records for event-source mappings, and at a start trims the records that every consumer has passed.
//!
//! dynoxide was chosen because it runs in process, with streams, transactions and capacity figures, on a file that
//! survives `kill -9`.

mod checkpoints;
mod engine;
mod expiry;
mod stream;
mod table;
mod ttl;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::account::{ACCOUNT, REGION};
use crate::changes::Changes;
use crate::error::{OpenError, StoreError};
use crate::sqlite::Sqlite;
use crate::time::StackTime;

pub(crate) use checkpoints::CHECKPOINTS_SCHEMA;
pub(crate) use engine::EngineAnswer;
pub use stream::{StreamBatch, StreamPosition};
pub(crate) use table::DEFINITIONS_SCHEMA;

use checkpoints::Streams;
use engine::Engine;
use expiry::ExpiryCache;

/// DynamoDB and its streams.
pub struct DynamoDb {
    engine: Engine,
    path: PathBuf,
    /// The second connection to dynoxide's file.
    file: Sqlite,
    /// Holds the checkpoints. In dynoxide's file, writing them would block its own writes.
    services: Sqlite,
    streams: Streams,
    expiry: ExpiryCache,
    /// Increases with every write, so that values computed from the tables can be invalidated.
    writes: AtomicU64,
    time: StackTime,
    changes: Changes,
}

impl DynamoDb {
    pub(crate) async fn open(
        path: &Path,
        services: Sqlite,
        time: StackTime,
        changes: Changes,
    ) -> Result<Self, OpenError> {
        let engine = Engine::open(path)?;
        let file = Sqlite::open(path, checkpoints::INDEX)?;
        let streams = Streams::open(&services, &file).await?;
        Ok(Self {
            engine,
            path: path.to_owned(),
            file,
            streams,
            services,
            expiry: ExpiryCache::default(),
            writes: AtomicU64::new(0),
            time,
            changes,
        })
    }

    /// Returns the ARN of a table.
    pub fn table_arn(&self, table: &str) -> String {
        format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}")
    }

    pub(crate) async fn close(&self) {
        self.engine.close().await;
        if let Err(error) = self.file.checkpoint().await {
            tracing::warn!(%error, "cannot checkpoint DynamoDB's write-ahead log; the next start does");
        }
    }

    /// Calls an operation for the host itself.
    async fn call(&self, operation: &str, request: &Value) -> Result<Value, StoreError> {
        let answer = self.engine.call(operation, request.to_string().as_bytes()).await?;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() {
            return Ok(body);
        }
        let kind = body["__type"].as_str().and_then(|shape| shape.rsplit('#').next()).unwrap_or_default();
        let message = body["message"].as_str().or(body["Message"].as_str()).unwrap_or_default();
        Err(StoreError::DynamoDb(format!("{operation}: {kind} {message}")))
    }

    /// Carries out an operation of dynoxide.
    pub(crate) async fn operate(&self, operation: &str, body: &[u8]) -> Result<EngineAnswer, StoreError> {
        self.engine.call(operation, body).await
    }

    /// Wakes pollers after a write.
    pub(crate) fn notify_write(&self) {
        self.writes.fetch_add(1, Ordering::Release);
        self.changes.notify();
    }
}

/// Adapter from the stack's clock to dynoxide's clock trait.
struct TtlClock(StackTime);

impl TtlClock {
    fn shared(time: &StackTime) -> Arc<dyn dynoxide::storage_backend::Clock> {
        Arc::new(Self(time.clone()))
    }
}

impl dynoxide::storage_backend::Clock for TtlClock {
    fn now_unix_secs(&self) -> u64 {
        u64::try_from(self.0.now().timestamp()).unwrap_or_default()
    }

    fn now_unix_secs_f64(&self) -> f64 {
        self.0.now_ms() as f64 / 1_000.0
    }
}
