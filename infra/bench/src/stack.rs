//! The local stack that the bench runs in this process, with helpers to call it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use http::{Method, Request};
use local_stack::call_history::Totals;
use local_stack::functions::Functions;
use local_stack::options::Options;
use local_stack::stack::Running;
use runtime::Clock;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::error::{BenchError, context};

const BUS: &str = "partner-api";
/// Lambda's initial number of concurrent batches of a queue
/// (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>).
const BATCHES_AT_ONCE: usize = 5;
/// Lambda's poll interval of a stream's shard (<https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html>). Records
/// written within an interval arrive in one batch.
const STREAM_POLL_INTERVAL: Duration = Duration::from_millis(250);
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of entries in a PutEvents request.
const PUT_ENTRIES: usize = 10;
/// Maximum number of items in a BatchWriteItem request.
const BATCH_ITEMS: usize = 25;

/// A request to the API.
#[derive(Debug, Clone)]
pub(crate) struct ApiCall {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// An API key, or a session's token.
    pub(crate) bearer: Option<String>,
    /// The header `Idempotency-Key`.
    pub(crate) idempotency_key: Option<String>,
    pub(crate) body: Option<Value>,
}

impl ApiCall {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), bearer: None, idempotency_key: None, body: None }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(crate) fn patch(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PATCH, path) }
    }

    pub(crate) fn bearer(self, bearer: impl Into<String>) -> Self {
        Self { bearer: Some(bearer.into()), ..self }
    }

    pub(crate) fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }
}

/// A running local stack.
pub(crate) struct BenchStack {
    running: Running,
}

impl BenchStack {
    /// Starts a stack that stores its data in a directory.
    pub(crate) async fn start(dir: &Path, functions: &Functions) -> Result<Self, BenchError> {
        Self::start_with(dir, functions, BATCHES_AT_ONCE).await
    }

    /// Starts a stack with this number of concurrent batches of a queue.
    pub(crate) async fn start_with(
        dir: &Path,
        functions: &Functions,
        batches_at_once: usize,
    ) -> Result<Self, BenchError> {
        let options = Options {
            port: 0,
            aws_port: 0,
            data_dir: dir.to_owned(),
            ephemeral: false,
            no_demo: true,
            record_permissions: None,
            batches_at_once: Some(batches_at_once),
            stream_poll_interval: Some(STREAM_POLL_INTERVAL),
            log: "warn".to_owned(),
        };
        let running = Running::start(&options, functions).await.map_err(context("start the stack"))?;
        Ok(Self { running })
    }

    /// Shuts the stack down and keeps the directory.
    pub(crate) async fn end(self) {
        self.running.end().await;
    }

    /// Sends a request to the API and expects a 2xx response.
    pub(crate) async fn call(&self, call: ApiCall) -> Result<Value, BenchError> {
        let mut request = Request::builder().method(call.method.clone()).uri(&call.path);
        if let Some(bearer) = &call.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let body = match &call.body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        send(self.running.router(), request.body(body).map_err(context(&call.path))?).await
    }

    /// Calls an AWS service and expects a 2xx response.
    pub(crate) async fn aws(&self, target: &str, body: &Value) -> Result<Value, BenchError> {
        let request = Request::post("/").header("x-amz-target", target).body(Body::from(body.to_string()));
        send(self.running.stack.timeline.aws.router(), request.map_err(context(target))?).await
    }

    /// Puts facts on the bus, as `(name, detail)`, and waits until they are applied.
    pub(crate) async fn apply_facts(&self, facts: Vec<(&str, Value)>) -> Result<(), BenchError> {
        self.put_facts(facts).await?;
        self.settle().await
    }

    /// Puts facts on the bus.
    pub(crate) async fn put_facts(&self, facts: Vec<(&str, Value)>) -> Result<(), BenchError> {
        let now = rendered(self.now());
        let entry = |(name, mut detail): (&str, Value)| {
            detail["id"] = json!(format!("bench-{:032x}", u128::from_be_bytes(runtime::random_bytes())));
            if detail.get("occurred_at").is_none() {
                detail["occurred_at"] = json!(now);
            }
            json!({
                "EventBusName": BUS, "Source": "coaching.application", "DetailType": name, "Detail": detail.to_string(),
            })
        };
        let entries: Vec<Value> = facts.into_iter().map(entry).collect();
        for entries in entries.chunks(PUT_ENTRIES) {
            let answer = self.aws("AWSEvents.PutEvents", &json!({ "Entries": entries })).await?;
            if answer["FailedEntryCount"] != 0 {
                return Err(BenchError::new(format!("the bus refused a fact: {answer}")));
            }
        }
        Ok(())
    }

    /// Writes items to a table.
    pub(crate) async fn put_items(&self, table: &str, items: &[Value]) -> Result<(), BenchError> {
        for items in items.chunks(BATCH_ITEMS) {
            let puts: Vec<Value> = items.iter().map(|item| json!({ "PutRequest": { "Item": item } })).collect();
            let request = json!({ "RequestItems": { format!("{BUS}-{table}"): puts } });
            self.aws("DynamoDB_20120810.BatchWriteItem", &request).await?;
        }
        Ok(())
    }

    /// Returns all items of a partition.
    pub(crate) async fn partition(&self, table: &str, pk: &str) -> Result<Vec<Value>, BenchError> {
        let query = json!({
            "TableName": format!("{BUS}-{table}"), "KeyConditionExpression": "pk = :pk", "ConsistentRead": true,
            "ExpressionAttributeValues": { ":pk": { "S": pk } },
        });
        let answer = self.aws("DynamoDB_20120810.Query", &query).await?;
        Ok(answer["Items"].as_array().cloned().unwrap_or_default())
    }

    /// Issues a session token for a coach.
    pub(crate) fn session(&self, coach: &str) -> Result<String, BenchError> {
        let token = self.running.stack.gateway.token(coach);
        token.ok_or_else(|| BenchError::new("the API has no authorizer"))
    }

    /// Waits until nothing is left to do at the current time.
    pub(crate) async fn settle(&self) -> Result<(), BenchError> {
        self.running.stack.timeline.settle().await.map_err(context("settle"))
    }

    /// Advances the stack's clock with everything that becomes due. The functions' processes use the machine's clock.
    pub(crate) async fn advance(&self, by: TimeDelta) -> Result<(), BenchError> {
        self.running.stack.timeline.advance(by).await.map_err(context("move the clock"))?;
        Ok(())
    }

    /// Returns the stack's time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.running.stack.timeline.clock.now()
    }

    /// Returns the totals of a function's calls so far.
    pub(crate) fn totals(&self, function: &str) -> Totals {
        self.running.stack.history.totals(function)
    }

    /// Returns the port of the AWS endpoint.
    pub(crate) fn aws_port(&self) -> u16 {
        self.running.aws_port
    }
}

async fn send(router: Router, request: Request<Body>) -> Result<Value, BenchError> {
    let path = request.uri().to_string();
    let answer = match router.oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    let status = answer.status();
    let body = to_bytes(answer.into_body(), MAX_ANSWER_BYTES).await.map_err(context(&path))?;
    let value = serde_json::from_slice(&body).unwrap_or_default();
    if status.is_success() { Ok(value) } else { Err(BenchError::new(format!("{path} answered {status}: {value}"))) }
}

/// Renders a time as the API does.
pub(crate) fn rendered(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Calls and capacity units of one piece of work.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) calls: f64,
    pub(crate) read_units: f64,
    pub(crate) write_units: f64,
}

impl Cost {
    /// Computes the difference of two totals, divided by the number of pieces of work.
    pub(crate) fn between(before: Totals, after: Totals, pieces: usize) -> Self {
        let pieces = pieces.max(1) as f64;
        Self {
            calls: (after.calls - before.calls) as f64 / pieces,
            read_units: (after.read_units - before.read_units) / pieces,
            write_units: (after.write_units - before.write_units) / pieces,
        }
    }
}

/// Reads a string member of a response.
pub(crate) fn text(answer: &Value, name: &str) -> Result<String, BenchError> {
    let found = answer[name].as_str().map(str::to_owned);
    found.ok_or_else(|| BenchError::new(format!("an answer has no {name}: {answer}")))
}

/// Environment variables that override those of the stack.
pub(crate) type Variables = BTreeMap<String, String>;
