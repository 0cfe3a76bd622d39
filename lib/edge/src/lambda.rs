//! Connects the Lambda runtime to a router, with `lambda_http` in between: API Gateway's event becomes a request, and
//! the response becomes its answer.
//!
//! `lambda_http` builds the request's URI by joining strings, and panics if they make none. So the event is cleaned
//! before. Its public functions leave no place for that, so the adapter that they hide is used, and its version pinned.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Duration;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use domain::mode::Mode;
use domain::webhook_addresses::WebhookAddresses;
use futures::FutureExt;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::Full;
use lambda_http::request::{LambdaRequest, RequestContext};
use lambda_http::{Adapter, RequestExt};
use lambda_runtime::{Context, Error, LambdaEvent, Service, service_fn};
use runtime::{BoxError, Environment, Observer, note};
use serde::Serialize;
use serde_json::Value;
use tower::ServiceExt;

use crate::inbound::{Inbound, RequestId, TokenClaims};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::request_log::RequestLog;
use crate::routes::{Routed, WEBHOOK_ADDRESSES, find_served};

/// The value of `route` in the log line of a request without a route.
const UNROUTED: &str = "unrouted";
/// The header with the mode of a sandbox, on each of its answers.
const MODE: HeaderName = HeaderName::from_static("x-mode");
/// Beginning of the documentation's paths.
const DOCUMENTATION: &str = "/docs/";

/// Time-out of a handler, after which the function answers with a problem. Functions end after 25 s, and the gateway's
/// own answer would name no problem.
const ANSWER_WITHIN: Duration = Duration::from_secs(22);

/// Runs the process of a function behind the API, which serves the routes of `router`.
pub fn main(router: impl AsyncFnOnce(&Environment) -> Result<Router, BoxError>) -> ExitCode {
    runtime::run(async |env| Ok(lambda_runtime::run(service(Function::new(&env, router(&env).await?)?))))
}

/// A function behind the API.
#[derive(Clone)]
pub struct Function {
    router: Router,
    observer: Observer,
    requests: Option<RequestLog>,
    mode: Mode,
    /// True if the deployment publishes the addresses that webhooks come from.
    publishes_addresses: bool,
}

impl Function {
    /// A function that serves the routes of `router`.
    pub fn new(env: &Environment, router: Router) -> Result<Self, BoxError> {
        let mode = env.config().parse(Mode::SETTING)?;
        let publishes_addresses = env.config().find(WebhookAddresses::SETTING).is_some();
        Ok(Self { router, observer: env.observer(), requests: RequestLog::of(env)?, mode, publishes_addresses })
    }

    /// Handles one API Gateway event and returns the answer in API Gateway's format.
    pub async fn invoke(&self, event: &str, context: Context) -> Result<Value, Error> {
        let event = LambdaEvent::new(serde_json::from_str(event)?, context);
        Ok(serde_json::to_value(service(self.clone()).oneshot(event).await?)?)
    }
}

/// The service of a function: an event of API Gateway to its answer.
fn service(
    function: Function,
) -> impl Service<LambdaEvent<ApiGatewayV2httpRequest>, Response: Serialize + Send, Error = Error, Future: Send> + Send
{
    let serving = service_fn(move |request| serve(function.clone(), request));
    Adapter::from(serving).map_request(|event: LambdaEvent<ApiGatewayV2httpRequest>| {
        LambdaEvent::new(LambdaRequest::ApiGatewayV2(cleaned(event.payload)), event.context)
    })
}

/// Removes from an event what makes no URI: path and query are percent-encoded where a URI demands it, and the host,
/// which no handler reads, goes. A target that still makes none is the root, which has no route.
fn cleaned(mut event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpRequest {
    let mut path = encoded(event.raw_path.as_deref().unwrap_or_default());
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    let mut query = encoded(event.raw_query_string.as_deref().unwrap_or_default());
    if format!("{path}?{query}").parse::<PathAndQuery>().is_err() {
        (path, query) = ("/".to_owned(), String::new());
    }
    (event.raw_path, event.raw_query_string) = (Some(path), Some(query));
    event.request_context.domain_name = None;
    event.headers.remove(header::HOST);
    event
}

async fn serve(function: Function, request: lambda_http::Request) -> Result<http::Response<Full<Bytes>>, Error> {
    let target = match request.uri().query() {
        Some(query) => format!("{}?{query}", request.raw_http_path()),
        None => request.raw_http_path().to_owned(),
    };
    let RequestContext::ApiGatewayV2(context) = request.request_context() else {
        return Err("the event is not API Gateway's".into());
    };
    let id = context.request_id.unwrap_or_else(|| request.lambda_context().request_id);
    let (head, body) = request.into_parts();
    let mut request = http::Request::new(Body::from(body.to_vec()));
    *request.method_mut() = head.method;
    // The path as it was sent: a normalised path would match a route that the caller did not ask for.
    *request.uri_mut() = Uri::from(target.parse::<PathAndQuery>()?);
    *request.headers_mut() = head.headers;
    request.extensions_mut().insert(RequestId(id.clone()));
    if let Some(jwt) = context.authorizer.and_then(|authorizer| authorizer.jwt) {
        request.extensions_mut().insert(TokenClaims(jwt.claims));
    }
    let observer = function.observer.clone();
    // `lambda_http` sends the body as text or in base64, by its content type.
    observer.request(&id, async { Ok(dispatch(function, request).await?.map(Full::new)) }).await
}

/// Answers the request, notes its route and status for the log, and keeps its record. The route is the path's template:
/// the path of a login link contains the secret.
async fn dispatch(function: Function, request: http::Request<Body>) -> Result<http::Response<Bytes>, Error> {
    let Function { router, requests, mode, publishes_addresses, .. } = function;
    let routed = match request.uri().path() {
        WEBHOOK_ADDRESSES if !publishes_addresses => Routed::UnknownPath,
        path => find_served(mode, request.method(), path),
    };
    match &routed {
        Routed::Known(route) => note("route", route.to_string()),
        Routed::OtherMethods(_) | Routed::UnknownPath => note("route", UNROUTED),
    }
    let kept = match (requests, &routed) {
        (Some(requests), Routed::Known(route)) => requests.arrived(route, &request).map(|arrived| (requests, arrived)),
        _ => None,
    };
    let (mut head, body) = answer(router, routed, request).await.into_parts();
    if mode == Mode::Test {
        head.headers.insert(MODE, HeaderValue::from_static(Mode::Test.as_str()));
    }
    note("status", head.status.as_str());
    let answer = http::Response::from_parts(head, axum::body::to_bytes(body, usize::MAX).await?);
    if let Some((requests, arrived)) = kept {
        requests.keep(arrived, &answer).await;
    }
    Ok(answer)
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
        let variables = variables.map(|name| (name.to_owned(), "x".to_owned())).into_iter();
        let config = runtime::Config::from_vars(variables.chain([("SERVICE_MODE".to_owned(), "live".to_owned())]));
        Environment::new(config, std::sync::Arc::new(runtime::SystemClock)).unwrap()
    }

    async fn answer(router: &Router, event: &str) -> Value {
        Function::new(&environment(), router.clone()).unwrap().invoke(event, Context::default()).await.unwrap()
    }

    async fn call(method: &str, path: &str, query: &str, host: &str) -> Value {
        let read = |inbound: Inbound| async move { format!("{} {:?}", inbound.path, inbound.query("q")) };
        let router = Router::new().route("/v1/clients/{id}", get(read));
        answer(&router, &event(method, path, query, host)).await
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
            let answer = answer(&router, &event.to_string()).await;
            let one = json!({ "a": 1 });
            assert_eq!(answer["body"], json!([[one, one, one], one]).to_string(), "{body}");
        }
    }

    #[tokio::test]
    async fn a_text_body_is_sent_as_it_is_and_a_binary_body_in_base64() {
        for (content_type, encoding, body, is_base64, sent) in [
            ("application/json", None, "grüße\"🙂".as_bytes(), false, "grüße\"🙂"),
            ("application/problem+json", None, b"{}", false, "{}"),
            ("text/javascript; charset=utf-8", None, "ü".as_bytes(), false, "ü"),
            ("image/svg+xml", None, b"<svg/>", false, "<svg/>"),
            ("text/html", Some("gzip"), &[0x1f, 0x8b, 0, 0xff], true, "H4sA/w=="),
            ("font/woff2", None, &[0x1f, 0x8b, 0, 0xff], true, "H4sA/w=="),
            ("application/json", None, &[], false, ""),
        ] {
            let encoding = encoding.map(|encoding| [(header::CONTENT_ENCODING, encoding)]);
            let text = async move || ([(header::CONTENT_TYPE, content_type)], encoding, body.to_vec());
            let answer = answer(&Router::new().route("/v1/ping", get(text)), &event("GET", "/v1/ping", "", "h")).await;
            let shown = (&answer["isBase64Encoded"], &answer["body"]);
            assert_eq!(shown, (&json!(is_base64), &json!(sent)), "{content_type}");
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
            assert_eq!(answer(&Router::new(), &asks(headers)).await["statusCode"], status, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_answered_as_a_fault() {
        let router = Router::new().route("/v1/ping", get(|| async { panic!("a bug") as &str }));
        let answer = answer(&router, &event("GET", "/v1/ping", "", "h")).await;
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
            let began = tokio::time::Instant::now();
            let answer = answer(&router, &event(method, path, "", "h")).await;
            assert!(began.elapsed() < Duration::from_secs(24));
            let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
            assert_eq!((answer["statusCode"].as_u64(), body["code"].as_str()), (Some(status), Some(code)), "{path}");
            assert_eq!(body["event_id"].is_string(), status == 500);
        }
    }

    #[tokio::test]
    async fn an_odd_path_is_answered() {
        for (path, status, seen) in [
            ("/v1/clients/c1", 200, "/v1/clients/c1"),
            ("v1/clients/c1", 200, "/v1/clients/c1"),
            ("/v1/clients/a b", 200, "/v1/clients/a%20b"),
            ("/v1/clients/ü", 200, "/v1/clients/%C3%BC"),
            ("/v1/clients/%zz", 200, "/v1/clients/%zz"),
            ("/v1/clients/%ff", 200, "/v1/clients/%ff"),
            ("/v1/clients/a|{}^`\\\"<>", 200, "/v1/clients/a%7C%7B%7D%5E%60%5C%22%3C%3E"),
            ("/v1/clients/.", 200, "/v1/clients/."),
            ("", 404, ""),
            ("//", 404, ""),
            ("//v1/clients/c1", 404, ""),
            ("https://example.com/v1/clients/c1", 404, ""),
            (&format!("/v1/clients/{}", "a".repeat(70_000)), 404, ""),
        ] {
            let answer = call("GET", path, "", "h").await;
            assert_eq!(answer["statusCode"], status, "{path}");
            if status == 200 {
                assert_eq!(answer["body"], format!("{seen} None"));
            }
        }
        assert_eq!(call("GET", "/v1/clients/c1", &"🙂".repeat(30_000), "h").await["statusCode"], 404);
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
