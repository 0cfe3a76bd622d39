//! The stand on which functions are measured: the local stack in this process, the functions in processes of their own.

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

use crate::error::{BenchError, because};

const BUS: &str = "partner-api";
/// Batches of a queue that Lambda handles at once when messages begin to come (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>).
const BATCHES_AT_ONCE: usize = 5;
/// How often Lambda looks for records in a shard (<https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html>). What is written in between comes
/// together.
const STREAM_POLL_INTERVAL: Duration = Duration::from_millis(250);
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Most entries of a PutEvents request.
const PUT_ENTRIES: usize = 10;
/// Most items of a BatchWriteItem request.
const BATCH_ITEMS: usize = 25;

/// A request as a client of the API makes it.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// An API key, or a session's token.
    pub(crate) bearer: Option<String>,
    /// `Idempotency-Key`.
    pub(crate) once: Option<String>,
    pub(crate) body: Option<Value>,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), bearer: None, once: None, body: None }
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

    pub(crate) fn by(self, bearer: impl Into<String>) -> Self {
        Self { bearer: Some(bearer.into()), ..self }
    }

    pub(crate) fn once(self, key: impl Into<String>) -> Self {
        Self { once: Some(key.into()), ..self }
    }
}

/// A running stack.
pub(crate) struct Stand {
    running: Running,
}

impl Stand {
    /// A stack that keeps what it stores in a directory.
    pub(crate) async fn start(dir: &Path, functions: &Functions) -> Result<Self, BenchError> {
        Self::start_with(dir, functions, BATCHES_AT_ONCE).await
    }

    /// The same, with another number of a queue's batches that are handled at once.
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
        let running = Running::start(&options, functions).await.map_err(because("start the stack"))?;
        Ok(Self { running })
    }

    /// Ends the stack; the directory keeps what there is.
    pub(crate) async fn end(self) {
        self.running.end().await;
    }

    /// Makes a request and expects it to be answered with 2xx.
    pub(crate) async fn call(&self, call: Call) -> Result<Value, BenchError> {
        let mut request = Request::builder().method(call.method.clone()).uri(&call.path);
        if let Some(bearer) = &call.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        if let Some(once) = &call.once {
            request = request.header("idempotency-key", once);
        }
        let body = match &call.body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        answered(self.running.router(), request.body(body).map_err(because(&call.path))?).await
    }

    /// What a service of AWS answers.
    pub(crate) async fn aws(&self, target: &str, body: &Value) -> Result<Value, BenchError> {
        let request = Request::post("/").header("x-amz-target", target).body(Body::from(body.to_string()));
        answered(self.running.stack.timeline.aws.router(), request.map_err(because(target))?).await
    }

    /// Puts facts on the bus, as `(name, detail)`, and waits until nothing is left to do.
    pub(crate) async fn facts(&self, facts: Vec<(&str, Value)>) -> Result<(), BenchError> {
        self.put(facts).await?;
        self.settle().await
    }

    /// Puts facts on the bus.
    pub(crate) async fn put(&self, facts: Vec<(&str, Value)>) -> Result<(), BenchError> {
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

    /// Stores items as they are.
    pub(crate) async fn put_items(&self, table: &str, items: &[Value]) -> Result<(), BenchError> {
        for items in items.chunks(BATCH_ITEMS) {
            let puts: Vec<Value> = items.iter().map(|item| json!({ "PutRequest": { "Item": item } })).collect();
            let request = json!({ "RequestItems": { format!("{BUS}-{table}"): puts } });
            self.aws("DynamoDB_20120810.BatchWriteItem", &request).await?;
        }
        Ok(())
    }

    /// All items of a partition.
    pub(crate) async fn partition(&self, table: &str, pk: &str) -> Result<Vec<Value>, BenchError> {
        let query = json!({
            "TableName": format!("{BUS}-{table}"), "KeyConditionExpression": "pk = :pk", "ConsistentRead": true,
            "ExpressionAttributeValues": { ":pk": { "S": pk } },
        });
        let answer = self.aws("DynamoDB_20120810.Query", &query).await?;
        Ok(answer["Items"].as_array().cloned().unwrap_or_default())
    }

    /// A session's token.
    pub(crate) fn session(&self, coach: &str) -> Result<String, BenchError> {
        let token = self.running.stack.gateway.token(coach);
        token.ok_or_else(|| BenchError::new("the API has no authorizer"))
    }

    /// Waits until nothing is left to do now.
    pub(crate) async fn settle(&self) -> Result<(), BenchError> {
        self.running.stack.timeline.settle().await.map_err(because("settle"))
    }

    /// Lets the stack's time pass, with what becomes due. The functions' processes have the machine's clock.
    pub(crate) async fn advance(&self, by: TimeDelta) -> Result<(), BenchError> {
        self.running.stack.timeline.advance(by).await.map_err(because("move the clock"))?;
        Ok(())
    }

    /// The stack's time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.running.stack.timeline.clock.now()
    }

    /// What a function has called so far.
    pub(crate) fn totals(&self, function: &str) -> Totals {
        self.running.stack.history.totals(function)
    }

    /// The port of the AWS endpoint.
    pub(crate) fn aws_port(&self) -> u16 {
        self.running.aws_port
    }
}

async fn answered(router: Router, request: Request<Body>) -> Result<Value, BenchError> {
    let path = request.uri().to_string();
    let answer = match router.oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    let status = answer.status();
    let body = to_bytes(answer.into_body(), MAX_ANSWER_BYTES).await.map_err(because(&path))?;
    let value = serde_json::from_slice(&body).unwrap_or_default();
    if status.is_success() { Ok(value) } else { Err(BenchError::new(format!("{path} answered {status}: {value}"))) }
}

/// A time as the API writes it.
pub(crate) fn rendered(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Calls and units of a piece of work.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) calls: f64,
    pub(crate) read_units: f64,
    pub(crate) write_units: f64,
}

impl Cost {
    /// What came between two totals, for each of so many pieces of work.
    pub(crate) fn between(before: Totals, after: Totals, pieces: usize) -> Self {
        let pieces = pieces.max(1) as f64;
        Self {
            calls: (after.calls - before.calls) as f64 / pieces,
            read_units: (after.read_units - before.read_units) / pieces,
            write_units: (after.write_units - before.write_units) / pieces,
        }
    }
}

/// Text members of an answer.
pub(crate) fn text(answer: &Value, name: &str) -> Result<String, BenchError> {
    let found = answer[name].as_str().map(str::to_owned);
    found.ok_or_else(|| BenchError::new(format!("an answer has no {name}: {answer}")))
}

/// Variables that replace the stack's own.
pub(crate) type Variables = BTreeMap<String, String>;
