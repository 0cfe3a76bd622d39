//! Tables, streams, expiry, and requests that are refused.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::world::{World, outbox_properties};

async fn put(dynamodb: &Client, pk: &str, body: &str) {
    let put = dynamodb.put_item().table_name("outbox").item("pk", AttributeValue::S(pk.to_owned()));
    put.item("body", AttributeValue::S(body.to_owned())).send().await.unwrap();
}

fn keys(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["dynamodb"]["Keys"]["pk"]["S"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_changes_nothing_has_no_record_and_is_skipped() {
    let world = World::new().await;
    world.outbox().await;
    let dynamodb = Client::new(&world.sdk());
    put(&dynamodb, "event", "same").await;
    let read = world.aws.dynamodb().stream_read("outbox", "relay", 10).await.unwrap();
    world.aws.dynamodb().stream_commit("outbox", "relay", &read.position).await.unwrap();
    for _ in 0..3 {
        put(&dynamodb, "event", "same").await;
    }
    assert!(world.aws.dynamodb().stream_read("outbox", "relay", 2).await.unwrap().records.is_empty());
    put(&dynamodb, "event", "other").await;
    assert_eq!(world.aws.dynamodb().stream_read("outbox", "relay", 2).await.unwrap().records.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_expire_on_stack_time_with_a_stream_record_by_dynamodb() {
    let world = World::new().await;
    world.outbox().await;
    let dynamodb = Client::new(&world.sdk());
    let in_an_hour = AttributeValue::N((1_893_456_000 + 3_600).to_string());
    let put = dynamodb.put_item().table_name("outbox").item("pk", AttributeValue::S("short-lived".to_owned()));
    put.item("expires_at", in_an_hour).send().await.unwrap();
    assert_eq!(world.aws.dynamodb().sweep_ttl().await.unwrap(), 0);
    world.advance_s(3_601);
    assert_eq!(world.aws.dynamodb().sweep_ttl().await.unwrap(), 1);
    assert_eq!(world.aws.dynamodb().sweep_ttl().await.unwrap(), 0);
    let records = world.aws.dynamodb().stream_read("outbox", "relay", 10).await.unwrap().records;
    assert_eq!(records[1]["eventName"], "REMOVE");
    assert_eq!(records[1]["userIdentity"], json!({ "type": "Service", "principalId": "dynamodb.amazonaws.com" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_trimmed_behind_its_consumers_at_a_start() {
    let world = World::new().await;
    world.outbox().await;
    let dynamodb = Client::new(&world.sdk());
    for n in 0..10 {
        put(&dynamodb, &format!("event-{n}"), "x").await;
    }
    let read = world.aws.dynamodb().stream_read("outbox", "relay", 10).await.unwrap();
    world.aws.dynamodb().stream_commit("outbox", "relay", &read.position).await.unwrap();
    let world = world.reopen().await;
    let late = world.aws.dynamodb().stream_read("outbox", "another", 10).await.unwrap();
    assert_eq!(keys(&late.records), ["event-9"], "all but the last are gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_with_other_indexes_than_the_template_is_refused_in_one_line() {
    let world = World::new().await;
    world.outbox().await;
    world.outbox().await;
    for (member, value) in [
        ("/GlobalSecondaryIndexes/0/Projection/ProjectionType", json!("ALL")),
        ("/StreamSpecification", Value::Null),
        ("/TimeToLiveSpecification/AttributeName", json!("ends_at")),
    ] {
        let mut changed = outbox_properties();
        *changed.pointer_mut(member).unwrap() = value;
        let message = world.aws.dynamodb().ensure_table(&changed).await.unwrap_err().to_string();
        assert!(message.starts_with("table outbox has other keys or indexes") && !message.contains('\n'), "{message}");
    }
    let mut encrypted = outbox_properties();
    encrypted["SSESpecification"]["SSEEnabled"] = false.into();
    world.aws.dynamodb().ensure_table(&encrypted).await.expect("a property without a local effect may change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_a_killed_start_left_unfinished_is_made_again() {
    let world = World::new().await;
    let dynamodb = Client::new(&world.sdk());
    let key = KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash).build().unwrap();
    let pk =
        AttributeDefinition::builder().attribute_name("pk").attribute_type(ScalarAttributeType::S).build().unwrap();
    let unfinished = dynamodb.create_table().table_name("outbox").key_schema(key).attribute_definitions(pk);
    unfinished.billing_mode(BillingMode::PayPerRequest).send().await.unwrap();
    world.outbox().await;
    let ttl = dynamodb.describe_time_to_live().table_name("outbox").send().await.unwrap();
    assert_eq!(ttl.time_to_live_description().unwrap().attribute_name(), Some("expires_at"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_cannot_be_run_is_refused_with_a_reason() {
    let world = World::new().await;
    world.outbox().await;
    let key = r#"{"pk": {"S": "event"}}"#;
    for (operation, body, kind, reason) in [
        ("GetItem", r#"{"TableName""#.to_owned(), "SerializationException", "EOF"),
        ("GetItem", format!(r#"{{"TableName": 5, "Key": {key}}}"#), "SerializationException", "expected a string"),
        (
            "GetItem",
            r#"{"TableName": "outbox", "Key": {"pk": {"N": "x"}}}"#.to_owned(),
            "ValidationException",
            "numeric",
        ),
        ("GetItem", format!(r#"{{"TableName": "inbox", "Key": {key}}}"#), "ResourceNotFoundException", "not found"),
        ("DescribeEndpoints", "{}".to_owned(), "ValidationException", "no DescribeEndpoints"),
    ] {
        let request = http::Request::post("/").header("x-amz-target", format!("DynamoDB_20120810.{operation}"));
        let request = request.header("content-type", "application/x-amz-json-1.0");
        let answer = world.aws.router().oneshot(request.body(axum::body::Body::from(body)).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 400);
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["__type"].as_str().unwrap().ends_with(kind), "{body}");
        assert!(body.to_string().contains(reason), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_database_is_used_no_more() {
    let world = World::new().await;
    world.outbox().await;
    let mut properties = outbox_properties();
    properties["TableName"] = "another".into();
    world.aws.close().await;
    let error = world.aws.dynamodb().ensure_table(&properties).await.unwrap_err().to_string();
    assert!(error.contains("closed"), "{error}");
}
