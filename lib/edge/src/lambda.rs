//! Connects the Lambda runtime to a router: API Gateway's event becomes a request, and the response becomes its answer.
//!
//! lambda_http is not used. It builds the request's URI by string concatenation and panics on an invalid raw query or
//! `Host`, and it links tables of every character set, a third of a megabyte per function. The path is routed as it was
//! sent: a normalised path would match a route that the caller did not ask for.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Duration;

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings::Body as GatewayBody;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use http::uri::PathAndQuery;
use http::{Method, StatusCode, Uri, header};
use lambda_runtime::{Context, Error, LambdaEvent, service_fn};
use runtime::{BoxError, Environment, Observer, note};
use serde_json::Value;
use tower::ServiceExt;

use crate::inbound::{Inbound, RequestId, TokenClaims};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::routes::{Routed, find};

/// The value of `route` in the log line of a request without a route.
const UNROUTED: &str = "unrouted";
/// Beginning of the documentation's paths.
const DOCUMENTATION: &str = "/docs/";

/// Time-out of a handler, after which the function answers with a problem. Functions end after 25 s, and the gateway's
/// own answer would name no problem.
const ANSWER_WITHIN: Duration = Duration::from_secs(22);

/// Runs the process of a function behind the API, which serves the routes of `router`.
pub fn main(router: impl AsyncFnOnce(&Environment) -> Result<Router, BoxError>) -> ExitCode {
    runtime::run(async |env| {
        let (router, observer) = (router(&env).await?, env.observer());
        Ok(lambda_runtime::run(service_fn(move |event: LambdaEvent<ApiGatewayV2httpRequest>| {
            let (router, observer) = (router.clone(), observer.clone());
            async move { handle(&router, &observer, event).await }
        })))
    })
}

/// Handles one API Gateway event with a router and returns the answer in API Gateway's format.
pub async fn invoke(router: &Router, observer: &Observer, event: &str, context: Context) -> Result<Value, Error> {
    let event = LambdaEvent::new(serde_json::from_str(event)?, context);
    Ok(serde_json::to_value(handle(router, observer, event).await?)?)
}

async fn handle(
    router: &Router,
    observer: &Observer,
    event: LambdaEvent<ApiGatewayV2httpRequest>,
) -> Result<ApiGatewayV2httpResponse, Error> {
    let request_id = event.payload.request_context.request_id.clone().unwrap_or(event.context.request_id);
    let request = http_request(event.payload, RequestId(request_id.clone()))?;
    observer.request(&request_id, async { gateway_response(dispatch(router.clone(), request).await).await }).await
}

/// Builds the request of an event: path and query as they were sent, percent-encoded where a URI demands it.
fn http_request(event: ApiGatewayV2httpRequest, id: RequestId) -> Result<http::Request<Body>, Error> {
    let mut target = encoded(&event.raw_path.unwrap_or_default());
    if !target.starts_with('/') {
        target.insert(0, '/');
    }
    if let Some(query) = event.raw_query_string.filter(|query| !query.is_empty()) {
        target.push('?');
        target.push_str(&encoded(&query));
    }
    let body = event.body.unwrap_or_default();
    let body = if event.is_base64_encoded { STANDARD.decode(body)? } else { body.into_bytes() };
    let mut request = http::Request::new(Body::from(body));
    *request.method_mut() = event.request_context.http.method;
    *request.uri_mut() = Uri::from(target.parse().unwrap_or_else(|_| PathAndQuery::from_static("/")));
    *request.headers_mut() = event.headers;
    if let Some(jwt) = event.request_context.authorizer.and_then(|authorizer| authorizer.jwt) {
        request.extensions_mut().insert(TokenClaims(jwt.claims));
    }
    request.extensions_mut().insert(id);
    Ok(request)
}

/// Builds the answer for the gateway: UTF-8 as text, anything else as base64.
async fn gateway_response(response: Response) -> Result<ApiGatewayV2httpResponse, Error> {
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await?;
    let body = match String::from_utf8(bytes.into()) {
        Ok(text) if text.is_empty() => None,
        Ok(text) => Some(GatewayBody::Text(text)),
        Err(binary) => Some(GatewayBody::Binary(binary.into_bytes())),
    };
    let mut answer = ApiGatewayV2httpResponse::default();
    answer.status_code = parts.status.as_u16().into();
    answer.headers = parts.headers;
    answer.is_base64_encoded = matches!(body, Some(GatewayBody::Binary(_)));
    answer.body = body;
    Ok(answer)
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
    let handled = match &routed {
        Routed::Known(route) => Some(route.path),
        // The documentation answers browsers with a page.
        Routed::UnknownPath if request.uri().path().starts_with(DOCUMENTATION) && !is_preflight => Some(DOCUMENTATION),
        Routed::OtherMethods(_) | Routed::UnknownPath => None,
    };
    let problem = match (handled, routed) {
        (Some(path), _) => match call(router, request, path).await {
            Ok(response) => return response,
            Err(fault) => fault,
        },
        // The gateway answers a preflight itself only if no route matches, and `$default` matches all. The gateway adds
        // the CORS headers, but the browser needs a 2xx status.
        (None, _) if is_preflight => return axum::response::IntoResponse::into_response(StatusCode::NO_CONTENT),
        (None, Routed::OtherMethods(methods)) => Problem::MethodNotAllowed(methods),
        (None, Routed::Known(_) | Routed::UnknownPath) => Problem::UnknownPath,
    };
    match <Inbound as axum::extract::FromRequest<()>>::from_request(bare, &()).await {
        Ok(inbound) => Reply::problem(&problem, &inbound).into_response_for(&inbound),
        Err(problem) => axum::response::IntoResponse::into_response(problem),
    }
}

/// Lets the function's router answer, within the time limit.
async fn call(router: Router, request: http::Request<Body>, path: &'static str) -> Result<Response, Problem> {
    let method = request.method().clone();
    let handling = AssertUnwindSafe(router.oneshot(request)).catch_unwind();
    match tokio::time::timeout(ANSWER_WITHIN, handling).await {
        Ok(Ok(response)) => Ok(response.unwrap_or_else(|never| match never {})),
        Ok(Err(_)) => Err(Problem::internal("handle a request", "the handler panicked")),
        Err(elapsed) => Err(Problem::timed_out(&method, path, elapsed)),
    }
}

/// Returns true for a CORS preflight.
fn is_preflight<B>(request: &http::Request<B>) -> bool {
    let asks = [header::ORIGIN, header::ACCESS_CONTROL_REQUEST_METHOD];
    request.method() == Method::OPTIONS && asks.iter().all(|name| request.headers().contains_key(name))
}

/// The parts of a request that an answer without a handler needs.
fn bare(request: &http::Request<Body>) -> http::Request<Body> {
    let mut bare = http::Request::new(Body::empty());
    *bare.method_mut() = request.method().clone();
    if let Some(accepted) = request.headers().get(header::ACCEPT) {
        bare.headers_mut().insert(header::ACCEPT, accepted.clone());
    }
    if let Some(id) = request.extensions().get::<RequestId>() {
        bare.extensions_mut().insert(id.clone());
    }
    bare
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
