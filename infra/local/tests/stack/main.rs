//! Tests of the stack with functions of the test: messages, stream records, schedules and the clock.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not see as tests")]

mod connections;
mod modes;

use std::sync::Mutex;

use axum::body::{Body, to_bytes};
use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use futures::future::BoxFuture;
use http::Request;
use lambda_runtime::Context;
use local_stack::functions::{Functions, Handler};
use local_stack::linked;
use local_stack::options::Options;
use local_stack::running::Running;
use runtime::{BoxError, Clock, Environment};
use serde_json::{Value, json};
use tower::ServiceExt;

/// The events that the functions received, with the AWS endpoint of their stack, since all tests share one process.
static SEEN: Mutex<Vec<(String, &'static str, Value)>> = Mutex::new(Vec::new());

struct Recorder {
    function: &'static str,
    endpoint: String,
}

impl Recorder {
    fn new(function: &'static str, environment: &Environment) -> Self {
        let endpoint = environment.config().get("AWS_ENDPOINT_URL").unwrap();
        let endpoint = endpoint.split("/env/").next().unwrap().to_owned();
        Self { function, endpoint }
    }
}

impl Handler for Recorder {
    fn handle(&self, event: Value, _context: Context) -> BoxFuture<'_, Result<Value, BoxError>> {
        Box::pin(async move {
            SEEN.lock().unwrap().push((self.endpoint.clone(), self.function, event.clone()));
            if event.get("rawPath").is_some() {
                return Ok(json!({ "statusCode": 200, "body": event["rawPath"] }));
            }
            let records = event["Records"].as_array().cloned().unwrap_or_default();
            let failed = records.iter().filter(|record| record["body"] == "fail").map(|record| &record["messageId"]);
            Ok(json!({ "batchItemFailures": failed.map(|id| json!({ "itemIdentifier": id })).collect::<Vec<_>>() }))
        })
    }
}

struct Local(Running);

impl Local {
    async fn start(options: &[&str]) -> Self {
        Self::start_at(0, options).await
    }

    /// Starts a stack with the API on this port. 0 takes a free one.
    async fn start_at(port: u16, options: &[&str]) -> Self {
        let port = port.to_string();
        let common = ["local-stack", "--port", port.as_str(), "--aws-port", "0", "--no-demo"];
        let options = Options::parse_from(common.iter().chain(options));
        let functions = linked::all().names().into_iter().fold(Functions::default(), |functions, name| {
            functions.with(name, move |environment| async move { Ok(Recorder::new(name, &environment)) })
        });
        Self(Running::start(&options, &functions).await.unwrap())
    }

    fn seen(&self, function: &str) -> Vec<Value> {
        let seen = SEEN.lock().unwrap();
        let ours = seen.iter().filter(|(endpoint, name, _)| *endpoint == self.0.stack.aws_url && *name == function);
        ours.map(|(_, _, event)| event.clone()).collect()
    }

    async fn call(&self, request: Request<Body>) -> (u16, Value) {
        let answer = self.0.router().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call(Request::post(path).body(Body::from(body.to_string())).unwrap()).await
    }

    async fn aws(&self, target: &str, body: Value) -> Value {
        let request =
            Request::post("/").header("x-amz-target", target).header("content-type", "application/x-amz-json-1.0");
        let request = request.body(Body::from(body.to_string())).unwrap();
        let answer = self.0.stack.timeline.aws.router().oneshot(request).await.unwrap();
        let ok = answer.status().is_success();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        assert!(ok, "{target}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap_or_default()
    }

    async fn send(&self, queue: &str, body: &str, delay_s: u64) {
        let url = self.0.stack.timeline.aws.sqs().url(queue);
        self.aws("AmazonSQS.SendMessage", json!({"QueueUrl": url, "MessageBody": body, "DelaySeconds": delay_s})).await;
    }

    async fn put_outbox(&self, pk: &str) {
        let item = json!({"TableName": "partner-api-outbox", "Item": {"pk": {"S": pk}}});
        self.aws("DynamoDB_20120810.PutItem", item).await;
    }

    fn now(&self) -> DateTime<Utc> {
        self.0.stack.timeline.clock.now()
    }
}

fn scheduled(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["time"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_records_reach_their_function_in_order_and_filtered() {
    let local = Local::start(&["--ephemeral"]).await;
    for number in 0..5 {
        local.put_outbox(&format!("E#{number}")).await;
    }
    let removal = json!({"TableName": "partner-api-outbox", "Key": {"pk": {"S": "E#0"}}});
    local.aws("DynamoDB_20120810.DeleteItem", removal).await;
    local.post("/_local/settle", json!({})).await;
    let records: Vec<Value> =
        local.seen("relay").iter().flat_map(|event| event["Records"].as_array().unwrap().clone()).collect();
    let keys: Vec<&str> =
        records.iter().map(|record| record["dynamodb"]["Keys"]["pk"]["S"].as_str().unwrap()).collect();
    assert_eq!(keys, ["E#0", "E#1", "E#2", "E#3", "E#4"]);
    local.0.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_stops_at_every_due_time() {
    let local = Local::start(&["--ephemeral"]).await;
    local.send("delivery-retries", "later", 600).await;
    local.post("/_local/settle", json!({})).await;
    assert!(local.seen("deliver").is_empty());
    let before = local.now();
    let (status, answer) = local.post("/_local/clock", json!({"advance_s": 3600})).await;
    assert_eq!(status, 200, "{answer}");
    let now: DateTime<Utc> = answer["now"].as_str().unwrap().parse().unwrap();
    let ahead = now - before - TimeDelta::hours(1);
    assert!(ahead >= TimeDelta::zero() && ahead < TimeDelta::seconds(20), "{ahead}");
    let relay = local.seen("relay");
    let times = scheduled(&relay);
    assert_eq!(times.len(), 4, "{times:?}");
    assert!(
        times.iter().all(|time| ["00:00Z", "15:00Z", "30:00Z", "45:00Z"].iter().any(|end| time.ends_with(end))),
        "{times:?}"
    );
    let delivered = local.seen("deliver");
    assert_eq!(delivered[0]["Records"][0]["body"], "later");
    local.0.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_message_is_retried_after_its_visibility_time_out_and_moves_to_the_dead_letters() {
    let local = Local::start(&["--ephemeral"]).await;
    let url = local.0.stack.timeline.aws.sqs().url("deliveries.fifo");
    for body in ["fail", "fine"] {
        let message = json!({
            "QueueUrl": url, "MessageBody": body, "MessageGroupId": body, "MessageDeduplicationId": body,
        });
        local.aws("AmazonSQS.SendMessage", message).await;
    }
    local.post("/_local/settle", json!({})).await;
    let failures = |local: &Local| {
        let records = local.seen("deliver").into_iter().flat_map(|event| event["Records"].as_array().unwrap().clone());
        records.filter(|record| record["body"] == "fail").count()
    };
    assert_eq!(failures(&local), 1);
    local.post("/_local/clock", json!({"advance_s": 61})).await;
    assert_eq!(failures(&local), 2);
    local.post("/_local/clock", json!({"advance_s": 26 * 3_600})).await;
    assert_eq!(failures(&local), 1_000);
    let url = local.0.stack.timeline.aws.sqs().url("deliveries-dlq.fifo");
    let dead = local.aws("AmazonSQS.ReceiveMessage", json!({"QueueUrl": url})).await;
    assert_eq!(dead["Messages"][0]["Body"], "fail");
    local.0.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_idle_months_take_seconds() {
    let local = Local::start(&["--ephemeral"]).await;
    let began = std::time::Instant::now();
    let (status, answer) = local.post("/_local/clock", json!({"advance_s": 120 * 86_400})).await;
    assert_eq!(status, 200, "{answer}");
    let times = scheduled(&local.seen("relay")).len();
    assert!((11_519..=11_521).contains(&times), "{times}");
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    println!("{times} steps in {:?}", began.elapsed());
    local.0.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_offset_and_the_signing_key_outlive_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--data-dir", dir.path().to_str().unwrap()];
    let local = Local::start(&options).await;
    local.post("/_local/clock", json!({"advance_s": 86_400})).await;
    let (_, session) = local.post("/_local/session", json!({"coach_id": "coach_1"})).await;
    let offset = local.0.stack.timeline.clock.offset_ms();
    let port = local.0.port;
    local.0.end().await;
    // The same port as before, since the token's issuer contains the port.
    let local = Local::start_at(port, &options).await;
    assert_eq!(local.0.stack.timeline.clock.offset_ms(), offset);
    let asking = |token: &str| {
        let request = Request::get("/settings/keys").header("authorization", format!("Bearer {token}"));
        request.body(Body::empty()).unwrap()
    };
    let token = session["token"].as_str().unwrap();
    assert_eq!(local.call(asking(token)).await.0, 200);
    let (signed, _) = token.rsplit_once('.').unwrap();
    assert_eq!(local.call(asking(signed)).await.0, 401);
    local.0.set_ready().unwrap();
    let ports: Value = serde_json::from_str(&std::fs::read_to_string(dir.path().join("ports.json")).unwrap()).unwrap();
    assert_eq!(ports["port"], local.0.port);
    local.0.end().await;
    assert!(!dir.path().join("ports.json").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_routes_name_the_error() {
    let local = Local::start(&["--ephemeral"]).await;
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    for body in [json!({"advance_s": -5}), json!({"advance_s": "60"}), json!({"advance_s": null}), json!({}), json!([])]
    {
        let (status, answer) = local.post("/_local/clock", body).await;
        assert_eq!(status, 400);
        assert!(answer["error"].as_str().unwrap().contains("number of seconds"), "{answer}");
    }
    for too_far in [json!(1e12), json!(i64::MAX), json!(1e300)] {
        assert_eq!(local.post("/_local/clock", json!({ "advance_s": too_far })).await.0, 400);
    }
    for by in [json!(0), json!(1.5), json!(60.0)] {
        assert_eq!(local.post("/_local/clock", json!({ "advance_s": by })).await.0, 200);
    }
    assert_eq!(local.post("/_local/faults", json!({"store_faliures": 1})).await.0, 400);
    let (status, answer) = local.post("/_local/faults", json!({"function": "clietns", "store_failures": 1})).await;
    assert!(status == 400 && answer["error"].as_str().unwrap().contains("clients, "), "{answer}");
    assert_eq!(local.call(get("/_local/faults")).await.1["store_failures"], 0, "half of a plan is none");
    assert_eq!(local.post("/_local/faults", json!({"function": "clients"})).await.0, 200);
    assert_eq!(local.post("/_local/faults", json!({"function": ""})).await.1["function"], "");
    for path in ["/_local/calls?limit=x", "/_local/events?limit=-1", "/_local/calls?function=clietns"] {
        let (status, answer) = local.call(get(path)).await;
        assert!(status == 400 && answer["error"].is_string(), "{path}: {answer}");
    }
    assert_eq!(local.post("/_local/session", json!({"coach_id": ""})).await.0, 400);
    let (status, answer) = local.post("/_local/nothing", json!({})).await;
    assert_eq!(status, 404);
    assert!(answer["routes"].as_array().unwrap().len() > 5);
    let (status, answer) = local.post("/_local/faults", json!({"mail_failures": 2})).await;
    assert_eq!((status, &answer["mail_failures"]), (200, &json!(2)));
    assert_eq!(local.call(get("/_local/health")).await.0, 503);
    local.0.set_ready().unwrap();
    assert_eq!(local.call(get("/_local/health")).await.1["ready"], true);
    assert_eq!(local.call(get("/v1/elsewhere")).await.0, 200);
    let (_, calls) = local.call(get("/_local/calls?function=docs&limit=1")).await;
    assert_eq!(calls[0]["route"], "$default");
    local.0.end().await;
}
