//! Connects the Lambda runtime to a router.
//!
//! lambda_http builds the request's URI by string concatenation and panics on an invalid raw query or Host. Both are
//! replaced before lambda_http sees them. The path is restored as it was sent: a normalised path would match a route
//! that the caller did not ask for.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use futures::FutureExt;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Body, IntoResponse, LambdaEvent};
use lambda_runtime::{Context, Error, service_fn};
use runtime::{BoxError, Environment, Observer, note};
use serde_json::Value;
use tower::{Service, ServiceExt};

use crate::inbound::{Inbound, RequestId};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::routes::{Routed, find};

/// The value of `route` in the log line of a request without a route.
const UNROUTED: &str = "unrouted";

/// Time-out of a handler, after which the function answers with a problem. Functions end after 25 s, and the gateway's
/// own answer would name no problem.
const ANSWER_WITHIN: Duration = Duration::from_secs(22);

/// Runs the process of a function behind the API, which serves the routes of `router`.
pub fn main(router: impl AsyncFnOnce(&Environment) -> Result<Router, BoxError>) -> ExitCode {
    runtime::run(async |env| {
        let (router, observer) = (router(&env).await?, env.observer());
        Ok(lambda_runtime::run(service_fn(move |event: LambdaEvent<LambdaRequest>| {
            let (router, observer) = (router.clone(), observer.clone());
            async move { Ok::<_, Error>(handle(&router, &observer, event).await) }
        })))
    })
}

/// Handles one API Gateway event with a router and returns the answer in API Gateway's format.
pub async fn invoke(router: &Router, observer: &Observer, event: &str, context: Context) -> Result<Value, Error> {
    let request: LambdaRequest = serde_json::from_str(event)?;
    Ok(serde_json::to_value(handle(router, observer, LambdaEvent::new(request, context)).await)?)
}

async fn handle(
    router: &Router,
    observer: &Observer,
    event: LambdaEvent<LambdaRequest>,
) -> impl serde::Serialize + use<> {
    let LambdaEvent { mut payload, context } = event;
    let (target, request_id) = take_target(&mut payload, &context);
    let router = router.clone();
    let observed = request_id.clone();
    let service = tower::service_fn(move |mut request: http::Request<Body>| {
        let (router, target, request_id) = (router.clone(), target.clone(), request_id.clone());
        async move {
            *request.uri_mut() = Uri::from(target);
            request.extensions_mut().insert(RequestId(request_id));
            Ok::<GatewayResponse, Infallible>(GatewayResponse(dispatch(router, request).await))
        }
    });
    // The adapter is not Send, so it is dropped before the answer is awaited.
    let answer = Adapter::from(service).call(LambdaEvent::new(payload, context));
    match observer.request(&observed, answer).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A response for the gateway: UTF-8 as text, anything else as base64. lambda_http's own conversion links tables of
/// every character set, a third of a megabyte per function.
struct GatewayResponse(Response);

impl IntoResponse for GatewayResponse {
    fn into_response(self) -> Pin<Box<dyn Future<Output = http::Response<Body>> + Send>> {
        Box::pin(async move {
            let (parts, body) = self.0.into_parts();
            let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body in memory can be read");
            let body = match String::from_utf8(bytes.into()) {
                Ok(text) if text.is_empty() => Body::Empty,
                Ok(text) => Body::Text(text),
                Err(binary) => Body::Binary(binary.into_bytes()),
            };
            http::Response::from_parts(parts, body)
        })
    }
}

/// Answers the request, and notes its route and status for the log. The route is the path's template: the path of a
/// login link contains the secret.
async fn dispatch(router: Router, request: http::Request<Body>) -> Response {
    let routed = find(request.method(), request.uri().path());
    match &routed {
        Routed::Known(route) => note("route", format!("{} {}", route.method, route.path)),
        Routed::OtherMethods(_) | Routed::UnknownPath => note("route", UNROUTED),
    }
    let response = answer(router, routed, request).await;
    note("status", response.status().as_str());
    response
}

/// Answers unknown paths and methods from the route table: axum's own 404 and 405 have neither our body nor `Allow`. A
/// panic becomes a fault.
async fn answer(router: Router, routed: Routed, request: http::Request<Body>) -> Response {
    let (bare, is_preflight) = (bare(&request), is_preflight(&request));
    let request = request.map(axum::body::Body::new);
    let problem = match routed {
        Routed::Known(route) => {
            let handling = AssertUnwindSafe(router.oneshot(request)).catch_unwind();
            match tokio::time::timeout(ANSWER_WITHIN, handling).await {
                Ok(Ok(response)) => return response.unwrap_or_else(|never| match never {}),
                Ok(Err(_)) => Problem::internal("handle a request", "the handler panicked"),
                Err(elapsed) => Problem::timed_out(bare.method(), route.path, elapsed),
            }
        }
        // The gateway answers a preflight itself only if no route matches, and `$default` matches all. The gateway adds
        // the CORS headers, but the browser needs a 2xx status.
        Routed::OtherMethods(_) | Routed::UnknownPath if is_preflight => {
            return axum::response::IntoResponse::into_response(StatusCode::NO_CONTENT);
        }
        Routed::OtherMethods(methods) => Problem::MethodNotAllowed(methods),
        Routed::UnknownPath => Problem::UnknownPath,
    };
    match <Inbound as axum::extract::FromRequest<()>>::from_request(bare, &()).await {
        Ok(inbound) => Reply::problem(&problem, &inbound).into_response_for(&inbound),
        Err(problem) => axum::response::IntoResponse::into_response(problem),
    }
}

/// Returns true for a CORS preflight.
fn is_preflight<B>(request: &http::Request<B>) -> bool {
    let asks = [header::ORIGIN, header::ACCESS_CONTROL_REQUEST_METHOD];
    request.method() == Method::OPTIONS && asks.iter().all(|name| request.headers().contains_key(name))
}

/// The parts of a request that an answer without a handler needs.
fn bare(request: &http::Request<Body>) -> http::Request<axum::body::Body> {
    let mut bare = http::Request::new(axum::body::Body::empty());
    *bare.method_mut() = request.method().clone();
    if let Some(accepted) = request.headers().get(header::ACCEPT) {
        bare.headers_mut().insert(header::ACCEPT, accepted.clone());
    }
    if let Some(id) = request.extensions().get::<RequestId>() {
        bare.extensions_mut().insert(id.clone());
    }
    bare
}

/// Takes path and query out of the event, percent-encoded for a URI, and leaves safe values in their place. Returns the
/// request id, too.
fn take_target(payload: &mut LambdaRequest, context: &Context) -> (PathAndQuery, String) {
    let LambdaRequest::ApiGatewayV2(request) = payload else {
        return (PathAndQuery::from_static("/"), context.request_id.clone());
    };
    let path = request.raw_path.replace("/".to_owned()).unwrap_or_default();
    let query = request.raw_query_string.take().filter(|query| !query.is_empty());
    request.query_string_parameters = Default::default();
    request.headers.insert(http::header::HOST, HeaderValue::from_static("partner-api"));
    let mut target = encoded(&path);
    if !target.starts_with('/') {
        target.insert(0, '/');
    }
    if let Some(query) = query {
        target.push('?');
        target.push_str(&encoded(&query));
    }
    let target = target.parse().unwrap_or_else(|_| PathAndQuery::from_static("/"));
    let request_id = request.request_context.request_id.clone().unwrap_or_else(|| context.request_id.clone());
    (target, request_id)
}

/// Percent-encodes the characters that RFC 3986 does not allow in a path or query.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::{any, get};
    use serde_json::json;

    fn event(method: &str, path: &str, query: &str, host: &str) -> String {
        json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
            "headers": {"host": host},
            "requestContext": {
                "accountId": "1", "apiId": "a", "requestId": "req-1", "stage": "$default",
                "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1"}
            },
            "isBase64Encoded": false
        })
        .to_string()
    }

    fn environment() -> Environment {
        let variables = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"];
        let config = runtime::Config::from_vars(variables.map(|name| (name.to_owned(), "x".to_owned())));
        Environment::new(config, std::sync::Arc::new(runtime::SystemClock)).unwrap()
    }

    async fn call(method: &str, path: &str, query: &str, host: &str) -> Value {
        let read = |inbound: Inbound| async move { format!("{} {:?}", inbound.path, inbound.query("q")) };
        let router = Router::new().route("/v1/clients/{id}", get(read));
        invoke(&router, &environment().observer(), &event(method, path, query, host), Context::default()).await.unwrap()
    }

    #[tokio::test]
    async fn odd_queries_and_hosts_do_not_keep_a_request_from_its_handler() {
        for (raw, read) in [
            ("q=a\"b", "a\"b"),
            ("q=a b", "a b"),
            ("q=<>{}|^`", "<>{}|^`"),
            ("q=%F0%9F%99%82", "🙂"),
            ("q=ü", "ü"),
            ("q=1&q=2", "1"),
            ("q=a%zz", "a%zz"),
        ] {
            for host in ["api.example.com", "a b", "[", "", "x:99999999"] {
                let answer = call("GET", "/v1/clients/c1", raw, host).await;
                assert_eq!(answer["statusCode"], 200, "{raw} {host}");
                assert_eq!(answer["body"], format!("/v1/clients/c1 {:?}", Some(read)));
            }
        }
    }

    #[tokio::test]
    async fn a_byte_order_mark_before_json_is_skipped_in_text_and_in_base64() {
        for (body, is_base64) in [("\u{feff}{\"a\":1}", false), ("77u/eyJhIjoxfQ==", true), ("{\"a\":1}", false)] {
            let read = |inbound: Inbound| async move {
                assert!(!inbound.is_bodiless());
                let read = [inbound.json().ok(), inbound.json_if_sent().ok().flatten(), inbound.json_if_any()];
                json!([read, inbound.payload()]).to_string()
            };
            let router = Router::new().route("/v1/clients", any(read));
            let mut event: Value = serde_json::from_str(&event("POST", "/v1/clients", "", "h")).unwrap();
            (event["body"], event["isBase64Encoded"]) = (json!(body), json!(is_base64));
            let answer =
                invoke(&router, &environment().observer(), &event.to_string(), Context::default()).await.unwrap();
            let one = json!({ "a": 1 });
            assert_eq!(answer["body"], json!([[one, one, one], one]).to_string(), "{body}");
        }
    }

    #[tokio::test]
    async fn a_text_body_is_sent_as_it_is_and_a_binary_body_in_base64() {
        for (body, is_base64, sent) in [
            ("grüße\"🙂".as_bytes(), false, json!("grüße\"🙂")),
            (&[0x1f, 0x8b, 0, 0xff], true, json!("H4sA/w==")),
            (&[], false, Value::Null),
        ] {
            let router = Router::new().route("/v1/ping", get(move || async move { body.to_vec() }));
            let event = event("GET", "/v1/ping", "", "h");
            let answer = invoke(&router, &environment().observer(), &event, Context::default()).await.unwrap();
            assert_eq!((&answer["isBase64Encoded"], &answer["body"]), (&json!(is_base64), &sent));
        }
    }

    #[tokio::test]
    async fn a_preflight_is_answered_and_no_other_request_with_options() {
        let asks = |headers: &[&str]| {
            let mut event: Value = serde_json::from_str(&event("OPTIONS", "/settings/keys", "", "h")).unwrap();
            event["headers"] = headers.iter().map(|name| ((*name).to_owned(), json!("GET"))).collect();
            event.to_string()
        };
        for (headers, status) in [
            (&["origin", "access-control-request-method"][..], 204),
            (&["origin"], 405),
            (&["access-control-request-method"], 405),
            (&[], 405),
        ] {
            let router = Router::new();
            let answer = invoke(&router, &environment().observer(), &asks(headers), Context::default()).await.unwrap();
            assert_eq!(answer["statusCode"], status, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_answered_as_a_fault() {
        let router = Router::new().route("/v1/ping", get(|| async { panic!("a bug") as &str }));
        let event = event("GET", "/v1/ping", "", "h");
        let answer = invoke(&router, &environment().observer(), &event, Context::default()).await.unwrap();
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!((answer["statusCode"].as_u64(), body["code"].as_str()), (Some(500), Some("internal")));
        assert!(body["event_id"].is_string() && !body.to_string().contains("bug"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_takes_too_long_is_answered_before_the_function_ends() {
        let never = || async { std::future::pending::<&str>().await };
        for (method, path, status, code) in [
            ("GET", "/v1/ping", 500, "internal"),
            ("POST", "/v1/clients", 500, "internal"),
            ("POST", "/v1/crm/bookings/availability", 500, "internal"),
            ("POST", "/v1/crm/bookings", 503, "unconfirmed"),
            ("DELETE", "/v1/crm/bookings/{id}", 503, "unconfirmed"),
        ] {
            let router = Router::new().route(path, any(never));
            let event = event(method, path, "", "h");
            let began = tokio::time::Instant::now();
            let answer = invoke(&router, &environment().observer(), &event, Context::default()).await.unwrap();
            assert!(began.elapsed() < Duration::from_secs(24));
            let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
            assert_eq!((answer["statusCode"].as_u64(), body["code"].as_str()), (Some(status), Some(code)), "{path}");
            assert_eq!(body["event_id"].is_string(), status == 500);
        }
    }

    #[tokio::test]
    async fn a_path_is_routed_as_it_was_sent() {
        assert_eq!(call("GET", "/v1/x/%2e%2e/clients/c1", "", "h").await["statusCode"], 404);
        assert_eq!(call("GET", "/v1/clients/../ping", "", "h").await["statusCode"], 404);
        let other = call("PUT", "/v1/clients/c1", "", "h").await;
        assert_eq!(other["statusCode"], 405);
        assert_eq!(other["headers"]["allow"], "GET, PATCH");
        let body: Value = serde_json::from_str(other["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["code"], "method_not_allowed");
        assert_eq!(body["request_id"], "req-1");
    }
}
