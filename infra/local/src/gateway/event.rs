//! API Gateway's event of payload format 2.0, with the members that the functions read, and the HTTP response from a
//! function's return value.
//!
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>

use std::net::IpAddr;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode, request};
use serde_json::{Map, Value, json};

/// Hop-by-hop headers, which a proxy does not forward.
const HOP_BY_HOP: [&str; 6] = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// The gateway's data about a request besides its head and body.
pub(super) struct RequestContext<'a> {
    pub(super) route_key: &'a str,
    pub(super) claims: Option<&'a Map<String, Value>>,
    /// Path and query as the client sent them.
    pub(super) target: &'a str,
    pub(super) request_id: &'a str,
    pub(super) source_ip: IpAddr,
    pub(super) port: u16,
}

/// Builds the event for one request. Path and query are those that the client sent.
pub(super) fn event(head: &request::Parts, body: &[u8], context: &RequestContext<'_>) -> Value {
    let (raw_path, raw_query) = context.target.split_once('?').unwrap_or((context.target, ""));
    let http = json!({
        "method": head.method.as_str(), "path": raw_path, "protocol": "HTTP/1.1", "sourceIp": context.source_ip,
    });
    let mut request_context = json!({
        "http": http, "requestId": context.request_id, "routeKey": context.route_key, "stage": "$default",
    });
    if let Some(claims) = context.claims {
        let claims: Map<String, Value> = claims.iter().map(|(name, claim)| (name.clone(), claim_text(claim))).collect();
        request_context["authorizer"] = json!({ "jwt": { "claims": claims, "scopes": null } });
    }
    let mut event = json!({
        "version": "2.0",
        "routeKey": context.route_key,
        "rawPath": raw_path,
        "rawQueryString": raw_query,
        "headers": headers(&head.headers, context),
        "requestContext": request_context,
        "isBase64Encoded": false,
    });
    if !body.is_empty() {
        match std::str::from_utf8(body) {
            Ok(text) if is_text(&head.headers) => event["body"] = json!(text),
            _ => {
                event["body"] = json!(STANDARD.encode(body));
                event["isBase64Encoded"] = json!(true);
            }
        }
    }
    event
}

/// Builds the HTTP response from the function's return value. Returns `None` for an invalid value; the client then gets
/// 500.
pub(super) fn answer(method: &Method, returned: &Value) -> Option<Response<Body>> {
    let status = StatusCode::from_u16(u16::try_from(returned["statusCode"].as_u64()?).ok()?).ok()?;
    let text = match returned.get("body") {
        None | Some(Value::Null) => "",
        Some(body) => body.as_str()?,
    };
    let encoded = returned["isBase64Encoded"].as_bool().unwrap_or(false);
    let bytes = if encoded { STANDARD.decode(text).ok()? } else { text.as_bytes().to_vec() };
    let mut answer = Response::new(Body::from(bytes));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in returned["headers"].as_object().into_iter().flatten() {
        append(headers, name, value)?;
    }
    // The length of the body that GET would return. Only the function knows it.
    if method == Method::HEAD
        && let Some(length) = returned["headers"]["content-length"].as_str()
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from_str(length).ok()?);
        *answer.body_mut() = Body::empty();
    }
    Some(answer)
}

fn append(headers: &mut HeaderMap, name: &str, value: &Value) -> Option<()> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    if name == "content-length" || HOP_BY_HOP.contains(&name.as_str()) {
        return Some(());
    }
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    headers.append(name, HeaderValue::from_str(&text).ok()?);
    Some(())
}

/// Renders the headers as API Gateway does: lower-case names, repeated values joined by commas, `x-forwarded-*` added.
fn headers(given: &HeaderMap, context: &RequestContext<'_>) -> Map<String, Value> {
    let mut headers = Map::new();
    for name in given.keys().filter(|name| !HOP_BY_HOP.contains(&name.as_str())) {
        let values: Vec<String> = given.get_all(name).iter().map(text).collect();
        headers.insert(name.as_str().to_owned(), json!(values.join(",")));
    }
    let forwarded = match headers.get("x-forwarded-for").and_then(Value::as_str) {
        Some(earlier) => format!("{earlier}, {}", context.source_ip),
        None => context.source_ip.to_string(),
    };
    headers.insert("x-forwarded-for".to_owned(), json!(forwarded));
    headers.insert("x-forwarded-port".to_owned(), json!(context.port.to_string()));
    headers.insert("x-forwarded-proto".to_owned(), json!("http"));
    headers.entry(HOST.as_str()).or_insert_with(|| json!(format!("127.0.0.1:{}", context.port)));
    headers
}

/// Returns true for a body that API Gateway passes as text instead of base64.
fn is_text(headers: &HeaderMap) -> bool {
    let Some(media_type) = headers.get(CONTENT_TYPE).map(text) else { return true };
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type.starts_with("text/")
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || ["application/json", "application/javascript", "application/xml"].contains(&media_type.as_str())
}

/// Converts a header value to text. It may hold any bytes, but JSON cannot.
fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Converts a claim to text, as API Gateway does with all claims.
fn claim_text(claim: &Value) -> Value {
    match claim {
        Value::String(_) => claim.clone(),
        Value::Array(items) => {
            let items: Vec<String> =
                items.iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned)).collect();
            json!(format!("[{}]", items.join(" ")))
        }
        other => json!(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(request: request::Builder) -> request::Parts {
        request.body(()).unwrap().into_parts().0
    }

    fn made(request: request::Builder, body: &[u8]) -> Value {
        let claims = json!({"sub": "coach_1", "exp": 1_790_000_000, "aud": ["a", "b"]});
        let head = parts(request);
        let context = RequestContext {
            route_key: "GET /v1/clients/{clientId}",
            claims: claims.as_object(),
            target: &head.uri.path_and_query().unwrap().to_string(),
            request_id: "JKJaXmPLvHcESHA=",
            source_ip: [127, 0, 0, 1].into(),
            port: 8080,
        };
        event(&head, body, &context)
    }

    #[test]
    fn the_event_has_the_members_that_functions_read() {
        let request = http::Request::get("/v1/clients/c%201?a=1&a=2&b=x%26y&c")
            .header("Host", "127.0.0.1:8080")
            .header("X-Two", "1")
            .header("x-two", "2")
            .header("Connection", "keep-alive");
        assert_eq!(
            made(request, b""),
            json!({
                "version": "2.0",
                "routeKey": "GET /v1/clients/{clientId}",
                "rawPath": "/v1/clients/c%201",
                "rawQueryString": "a=1&a=2&b=x%26y&c",
                "headers": {
                    "host": "127.0.0.1:8080", "x-two": "1,2", "x-forwarded-for": "127.0.0.1",
                    "x-forwarded-port": "8080", "x-forwarded-proto": "http",
                },
                "requestContext": {
                    "http": {
                        "method": "GET", "path": "/v1/clients/c%201", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1",
                    },
                    "requestId": "JKJaXmPLvHcESHA=", "routeKey": "GET /v1/clients/{clientId}", "stage": "$default",
                    "authorizer": {"jwt": {
                        "claims": {"sub": "coach_1", "exp": "1790000000", "aud": "[a b]"}, "scopes": null,
                    }},
                },
                "isBase64Encoded": false,
            })
        );
    }

    #[rstest::rstest]
    #[case(Some("application/json"), b"{}", json!("{}"), false)]
    #[case(Some("application/problem+json; charset=utf-8"), b"{}", json!("{}"), false)]
    #[case(Some("text/plain"), b"\xff", json!("/w=="), true)]
    #[case(Some("application/x-www-form-urlencoded"), b"a=1", json!("YT0x"), true)]
    #[case(Some("image/png"), b"\x89", json!("iQ=="), true)]
    #[case(None, b"{}", json!("{}"), false)]
    fn bodies_other_than_text_are_encoded(
        #[case] media_type: Option<&str>,
        #[case] body: &[u8],
        #[case] wanted: Value,
        #[case] encoded: bool,
    ) {
        let mut request = http::Request::post("/x");
        if let Some(media_type) = media_type {
            request = request.header(CONTENT_TYPE, media_type);
        }
        let event = made(request, body);
        assert_eq!((&event["body"], &event["isBase64Encoded"]), (&wanted, &json!(encoded)));
    }

    #[test]
    fn invalid_bytes_in_headers_and_queries_pass() {
        let odd = HeaderValue::from_bytes(b"ex\xffample \"{}|^").unwrap();
        let event = made(http::Request::get("/?q=%ff&{}|^`=1").header("host", odd), b"");
        assert_eq!(event["rawQueryString"], "q=%ff&{}|^`=1");
        assert_eq!(event["headers"]["host"], "ex\u{fffd}ample \"{}|^");
    }

    #[tokio::test]
    async fn an_answer_keeps_headers_and_binary_bodies() {
        let returned = json!({
            "statusCode": 201, "headers": {"x-a": "1", "content-length": "9"}, "body": "/w==",
            "isBase64Encoded": true,
        });
        let answer = answer(&Method::GET, &returned).unwrap();
        assert_eq!(answer.status(), 201);
        assert!(!answer.headers().contains_key(CONTENT_LENGTH));
        assert_eq!(answer.headers()["x-a"], "1");
        assert_eq!(axum::body::to_bytes(answer.into_body(), 10).await.unwrap().as_ref(), b"\xff");
    }

    #[tokio::test]
    async fn an_answer_to_head_has_the_length_and_no_body() {
        let returned = json!({"statusCode": 200, "headers": {"content-length": "5"}, "body": ""});
        let answer = answer(&Method::HEAD, &returned).unwrap();
        assert_eq!(answer.headers()[CONTENT_LENGTH], "5");
        assert!(axum::body::to_bytes(answer.into_body(), 10).await.unwrap().is_empty());
    }

    #[rstest::rstest]
    #[case(json!({"statusCode": 99}))]
    #[case(json!({"statusCode": "x"}))]
    #[case(json!({"statusCode": 200, "body": {}}))]
    #[case(json!({"statusCode": 200, "headers": {"a b": "1"}}))]
    fn an_invalid_response_is_refused(#[case] returned: Value) {
        assert!(answer(&Method::GET, &returned).is_none());
    }
}
