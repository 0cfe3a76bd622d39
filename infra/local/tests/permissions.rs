//! Tests of the template's policies: functions with an action missing, and roles.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not see as tests")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use clap::Parser;
use domain::mode::Mode;
use http::Request;
use local_aws::Policy;
use local_stack::linked;
use local_stack::options::Options;
use local_stack::permissions::policies;
use local_stack::running::Running;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The log output of this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Captures the log of the whole process.
    fn begin() -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
        log
    }

    /// Returns the log lines of faults with this event id.
    fn faults(&self, event_id: &str) -> Vec<String> {
        let bytes = self.0.lock().unwrap().clone();
        let is_one = |line: &&str| line.contains("unhandled fault") && line.contains(event_id);
        String::from_utf8(bytes).unwrap().lines().filter(is_one).map(str::to_owned).collect()
    }
}

struct Local(Running);

impl Local {
    async fn start() -> Self {
        let options = ["local-stack", "--port", "0", "--aws-port", "0", "--no-demo", "--ephemeral"];
        Self(Running::start(&Options::parse_from(options), &linked::all()).await.unwrap())
    }

    async fn call(&self, method: &str, path: &str, bearer: &str, body: Value) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {bearer}")).header("idempotency-key", "once");
        let request = request.body(Body::from(body.to_string())).unwrap();
        let answer = self.0.router().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Calls AWS as the developer, who has all permissions.
    async fn aws(&self, target: &str, body: Value) -> Value {
        let request = Request::post("/").header("x-amz-target", target).body(Body::from(body.to_string())).unwrap();
        let answer = self.0.stack.timeline.aws.router().oneshot(request).await.unwrap();
        assert!(answer.status().is_success(), "{target}");
        serde_json::from_slice(&to_bytes(answer.into_body(), usize::MAX).await.unwrap()).unwrap()
    }

    /// Calls AWS with an access key id, by a target or with a form. Returns the body of the response.
    async fn aws_as(&self, access_key_id: &str, target: Option<&str>, body: String) -> String {
        let signature = format!("AWS4-HMAC-SHA256 Credential={access_key_id}/20300101/us-east-1/any/aws4_request");
        let request = Request::post("/").header("authorization", signature);
        let request = target.into_iter().fold(request, |request, target| request.header("x-amz-target", target));
        let answer = self.0.stack.timeline.aws.router().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    /// Creates a workspace and a partner key for its coach.
    async fn partner_key(&self) -> String {
        let workspace = json!({
            "id": "fact-1", "occurred_at": "2026-01-01T00:00:00.000Z", "coach_id": "ada", "email": "ada@coaches.example",
            "name": "Coach Ada", "team_id": null, "canonical_host": "https://ada.example", "time_zone": "America/New_York",
            "country": "US", "plan": { "client_cap": null },
            "entitlements": { "partner_api": true, "pro_crm": true, "gym": true },
            "crm": { "pipeline_id": "pipeline-1", "initial_stage": "new" },
        });
        let entry = json!({
            "EventBusName": "partner-api", "Source": "coaching.application", "DetailType": "workspace.saved",
            "Detail": workspace.to_string(),
        });
        self.aws("AWSEvents.PutEvents", json!({ "Entries": [entry] })).await;
        self.0.stack.timeline.settle().await.unwrap();
        let session = self.0.stack.gateway.token("ada").unwrap();
        let made = self.call("POST", "/settings/keys", &session, json!({ "name": "Key", "scope": "partner" })).await;
        assert_eq!(made.0, 201, "{}", made.1);
        made.1["key"].as_str().unwrap().to_owned()
    }

    /// Removes an action on a resource from a function's policy.
    fn remove_grant(&self, function: &str, action: &str, resource: &str) {
        let policy = &policies(Mode::Live).unwrap()[function];
        let left: Vec<Value> = policy
            .grants()
            .filter(|grant| !grant.covers(action, resource))
            .map(|grant| json!({ "Effect": "Allow", "Action": grant.action, "Resource": grant.resource }))
            .collect();
        assert!(left.len() < policy.grants().count(), "{function} had {action} on {resource}");
        let policy = Policy::parse(&json!({ "Version": "2012-10-17", "Statement": left })).unwrap();
        self.0.stack.timeline.aws.access().set(function, policy);
    }

    /// Restores a function's policy from the template.
    fn restore(&self, function: &str) {
        self.0.stack.timeline.aws.access().set(function, policies(Mode::Live).unwrap()[function].clone());
    }

    async fn count(&self, table: &str) -> Value {
        let table = format!("partner-api-{table}");
        self.aws("DynamoDB_20120810.Scan", json!({ "TableName": table })).await["Count"].clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_without_a_permission_is_a_logged_fault_that_leaves_nothing_behind() {
    let log = Log::begin();
    let local = Local::start().await;
    let key = local.partner_key().await;
    let body = json!({ "email": "grace@example.com", "send_welcome": false });
    let table = |name: &str| format!("arn:aws:dynamodb:us-east-1:000000000000:table/partner-api-{name}");
    for (action, resource) in [
        ("dynamodb:PutItem", table("outbox")),
        ("dynamodb:PutItem", table("clients")),
        ("dynamodb:UpdateItem", table("workspaces")),
        ("dynamodb:GetItem", table("workspaces")),
        ("dynamodb:PutItem", table("idempotency")),
    ] {
        local.remove_grant("clients", action, &resource);
        let (status, answer) = local.call("POST", "/v1/clients", &key, body.clone()).await;
        assert_eq!((status, &answer["code"]), (500, &json!("internal")), "{answer}");
        assert!(!answer.to_string().contains("arn:"), "{answer}");
        let logged = log.faults(answer["event_id"].as_str().unwrap());
        assert_eq!(logged.len(), 1, "{logged:?}");
        assert!(
            logged[0].contains(&format!("is not authorized to perform: {action} on resource: {resource}")),
            "{logged:?}"
        );
        local.0.stack.timeline.settle().await.unwrap();
        for name in ["clients", "outbox"] {
            assert_eq!(local.count(name).await, 0, "{name} after a creation without {action} on {resource}");
        }
        local.restore("clients");
    }
    let (status, answer) = local.call("POST", "/v1/clients", &key, body).await;
    assert_eq!(status, 201, "the same key still stands for a creation that has not happened: {answer}");
    let (_, ping) = local.call("GET", "/v1/ping", &key, json!({})).await;
    assert_eq!(ping["active_clients"], 1, "one seat is taken");
    local.0.end().await;
}

/// Returns the texts of all elements of a name.
fn texts<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(begin.as_str()).skip(1).map(|rest| rest.split(end.as_str()).next().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_finds_the_resources_of_the_stack_by_their_logical_ids() {
    let local = Local::start().await;
    let (mut resources, mut pages, mut next) = (Vec::new(), 0, String::new());
    loop {
        let form = format!("Action=ListStackResources&Version=2010-05-15&StackName=partner-api{next}");
        let page = local.aws_as("OperatorReadPolicy", None, form).await;
        let ids = texts(&page, "LogicalResourceId").into_iter().zip(texts(&page, "PhysicalResourceId"));
        resources.extend(ids.map(|(id, physical_id)| (id.to_owned(), physical_id.to_owned())));
        pages += 1;
        let Some(token) = texts(&page, "NextToken").first().copied().map(str::to_owned) else { break };
        next = format!("&NextToken={token}");
    }
    assert!(pages > 1, "the tests of callers need a second page");
    for (id, physical_id) in [
        ("OutboxTable", "partner-api-outbox".to_owned()),
        ("DeliveriesDeadLetters", format!("{}/000000000000/deliveries-dlq.fifo", local.0.stack.aws_url)),
        ("Bus", "partner-api".to_owned()),
        ("DeliverFunction", "partner-api-deliver".to_owned()),
        ("EncryptionSecret", "arn:aws:secretsmanager:us-east-1:000000000000:secret:EncryptionSecret-local1".to_owned()),
    ] {
        assert!(resources.contains(&(id.to_owned(), physical_id)), "{id}: {resources:?}");
    }
    local.0.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_has_the_permissions_of_the_policies_that_the_access_key_id_names() {
    const SCAN: &str = "DynamoDB_20120810.Scan";
    const SEND: &str = "AmazonSQS.SendMessage";
    let local = Local::start().await;
    let scan = |table: &str| json!({ "TableName": format!("partner-api-{table}") }).to_string();
    // A caller that may send such a message is told that its body is empty.
    let send = json!({ "QueueUrl": "http://h/000000000000/application-feed", "MessageBody": "" }).to_string();
    let both = "OperatorReadPolicy+OperatorActPolicy";
    for (access_key_id, target, body, expected) in [
        ("OperatorReadPolicy", SCAN, scan("workspaces"), "\"Count\""),
        ("OperatorReadPolicy", SCAN, scan("login-links"), "AccessDeniedException"),
        ("OperatorReadPolicy", SEND, send.clone(), "AccessDeniedException"),
        (both, SCAN, scan("workspaces"), "\"Count\""),
        (both, SCAN, scan("login-links"), "AccessDeniedException"),
        (both, SEND, send.clone(), "InvalidMessageContents"),
        ("somebody", SCAN, scan("login-links"), "\"Count\""),
        ("somebody", SEND, send, "InvalidMessageContents"),
    ] {
        let answer = local.aws_as(access_key_id, Some(target), body).await;
        assert!(answer.contains(expected), "{access_key_id} {target}: {answer}");
    }
    let form = "Action=GetCallerIdentity&Version=2011-06-15";
    let identity = local.aws_as(both, None, form.to_owned()).await;
    let arn = format!("arn:aws:sts::000000000000:assumed-role/{both}/local");
    assert_eq!(texts(&identity, "Arn"), [arn.as_str()]);
    local.0.end().await;
}
