//! Tests of the gateway in front of an echo function.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::to_bytes;
use futures::future::BoxFuture;
use http::Method;
use lambda_runtime::Context;
use local_aws::{Aws, DataDir};
use runtime::{BoxError, Environment};
use serde_json::Value;

use super::*;
use crate::clock::StackClock;
use crate::environments::PoolContext;
use crate::functions::{Functions, Handler};
use crate::template::Cors;

struct Echo;

async fn echo(_environment: Environment) -> Result<Echo, BoxError> {
    Ok(Echo)
}

impl Handler for Echo {
    fn handle(&self, event: Value, _context: Context) -> BoxFuture<'_, Result<Value, BoxError>> {
        Box::pin(async move {
            match event["rawPath"].as_str() {
                Some("/panic") => panic!("as the test wants it"),
                Some("/slow") => std::future::pending().await,
                Some("/error") => Err("as the test wants it".into()),
                Some("/nonsense") => Ok(json!({ "statusCode": 7 })),
                _ => Ok(json!({ "statusCode": 200, "body": event.to_string() })),
            }
        })
    }
}

async fn gateway() -> Gateway {
    gateway_of(&[
        json!({"Method": "GET", "Path": "/guarded/{id}", "Auth": {"Authorizer": "Coach"}}),
        json!({"Method": "ANY", "Path": "$default"}),
    ])
    .await
}

async fn gateway_of(routes: &[Value]) -> Gateway {
    let clock = Arc::new(StackClock::default());
    let aws = Aws::open(&DataDir::Ephemeral, Arc::clone(&clock) as Arc<dyn Clock>).await.unwrap();
    let pool_context = PoolContext {
        aws,
        clock: Arc::clone(&clock),
        aws_url: "http://127.0.0.1:1".to_owned(),
        history: Arc::default(),
    };
    let start = Functions::default().with("echo", echo).find("echo").unwrap();
    let pool = Arc::new(Pool::new("echo", start, BTreeMap::new(), Duration::from_millis(200), pool_context));
    let authorizer = Authorizer { issuer: "http://issuer".to_owned(), audience: vec!["settings".to_owned()] };
    let api = Api {
        authorizers: [("Coach".to_owned(), authorizer)].into(),
        cors: Some(Cors { allow_origins: vec!["http://page".to_owned()], ..Cors::default() }),
    };
    let mut gateway = Gateway::new(api, SigningKey::generate(), clock, 8080);
    for route in routes {
        gateway.add(&serde_json::from_value(route.clone()).unwrap(), Arc::clone(&pool)).unwrap();
    }
    gateway
}

async fn answered(
    gateway: &Gateway,
    request: http::request::Builder,
    body: Body,
) -> (StatusCode, Value, http::HeaderMap) {
    let answer = gateway.serve(request.body(body).unwrap()).await;
    let (head, body) = answer.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (head.status, serde_json::from_slice(&body).unwrap_or_default(), head.headers)
}

#[tokio::test]
async fn a_crash_an_error_or_an_invalid_response_is_an_internal_server_error() {
    let gateway = gateway().await;
    for path in ["/panic", "/slow", "/error", "/nonsense"] {
        let (status, body, _) = answered(&gateway, Request::get(path), Body::empty()).await;
        assert_eq!((status.as_u16(), body), (500, json!({"message": "Internal Server Error"})), "{path}");
    }
    let (status, _, _) = answered(&gateway, Request::get("/fine"), Body::empty()).await;
    assert_eq!(status, 200);
}

struct Autumn;

impl Clock for Autumn {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        "2030-10-06T07:08:09.876Z".parse().unwrap()
    }
}

#[tokio::test]
async fn the_date_of_every_answer_is_the_time_of_the_stack() {
    let gateway = Gateway { clock: Arc::new(Autumn), ..gateway().await };
    for path in ["/fine", "/panic", "/guarded/1"] {
        let (_, _, headers) = answered(&gateway, Request::get(path), Body::empty()).await;
        assert_eq!(headers[DATE], "Sun, 06 Oct 2030 07:08:09 GMT", "{path}");
    }
}

#[tokio::test]
async fn a_body_over_ten_megabytes_is_refused() {
    let gateway = gateway().await;
    let body = |bytes| Body::from(vec![b'a'; bytes]);
    let (status, answer, _) = answered(&gateway, Request::post("/x"), body(MAX_BODY_BYTES + 1)).await;
    assert_eq!((status.as_u16(), answer), (413, json!({"message": "Request Entity Too Large"})));
    let (status, event, _) = answered(&gateway, Request::post("/x"), body(300 * 1024)).await;
    assert_eq!((status.as_u16(), event["body"].as_str().unwrap().len()), (200, 300 * 1024));
}

#[tokio::test]
async fn a_preflight_reaches_its_route_or_is_answered_by_the_gateway() {
    let guarded = json!({"Method": "GET", "Path": "/guarded/{id}", "Auth": {"Authorizer": "Coach"}});
    for (gateway, expected) in [(gateway().await, 200), (gateway_of(&[guarded]).await, 204)] {
        let preflight = Request::builder().method(Method::OPTIONS).uri("/guarded/1").header("origin", "http://page");
        let preflight = preflight.header("access-control-request-method", "GET");
        let (status, _, headers) = answered(&gateway, preflight, Body::empty()).await;
        assert_eq!(status, expected);
        assert_eq!(headers["access-control-allow-origin"], "http://page");
    }
}
