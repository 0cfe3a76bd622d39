//! CORS. The gateway adds the headers to all responses, those of functions included. It responds itself to a preflight
//! request that no route matches.

use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName,
    HeaderValue, ORIGIN,
};
use http::{Method, Response, StatusCode, request};

use crate::template::Cors;

/// Returns true for a browser's preflight request.
pub(super) fn is_preflight(head: &request::Parts) -> bool {
    head.method == Method::OPTIONS
        && head.headers.contains_key(ORIGIN)
        && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Builds the gateway's own response to a preflight request. The headers of `add_headers` decide what it allows.
pub(super) fn preflight() -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// Adds the CORS headers for an allowed origin.
pub(super) fn add_headers(cors: &Cors, head: &request::Parts, answer: &mut HeaderMap) {
    if !add_allowed_origin(cors, &head.headers, answer) {
        return;
    }
    if !is_preflight(head) {
        return insert_list(answer, ACCESS_CONTROL_EXPOSE_HEADERS, &cors.expose_headers);
    }
    insert_list(answer, ACCESS_CONTROL_ALLOW_METHODS, &cors.allow_methods);
    insert_list(answer, ACCESS_CONTROL_ALLOW_HEADERS, &cors.allow_headers);
    if let Some(max_age) = cors.max_age {
        answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(max_age));
    }
}

fn add_allowed_origin(cors: &Cors, request: &HeaderMap, answer: &mut HeaderMap) -> bool {
    let Some(origin) = request.get(ORIGIN) else { return false };
    let is_allowed = cors.allow_origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes());
    if is_allowed {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    is_allowed
}

fn insert_list(headers: &mut HeaderMap, name: HeaderName, values: &[String]) {
    if let Ok(value) = HeaderValue::from_str(&values.join(","))
        && !values.is_empty()
    {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors() -> Cors {
        Cors {
            allow_origins: vec!["http://127.0.0.1:8080".to_owned()],
            allow_methods: vec!["GET".to_owned(), "POST".to_owned()],
            allow_headers: vec!["authorization".to_owned()],
            max_age: Some(60),
            ..Cors::default()
        }
    }

    fn cors_headers(method: Method, origin: &str) -> HeaderMap {
        let request = http::Request::builder().method(method).header(ORIGIN, origin);
        let head = request.header(ACCESS_CONTROL_REQUEST_METHOD, "POST").body(()).unwrap().into_parts().0;
        let mut answer = HeaderMap::new();
        add_headers(&cors(), &head, &mut answer);
        answer
    }

    #[test]
    fn a_preflight_of_the_page_gets_all_headers() {
        let headers = cors_headers(Method::OPTIONS, "http://127.0.0.1:8080");
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "http://127.0.0.1:8080");
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_METHODS], "GET,POST");
        assert_eq!(headers[ACCESS_CONTROL_MAX_AGE], "60");
    }

    #[test]
    fn another_origin_gets_no_headers() {
        assert!(cors_headers(Method::OPTIONS, "http://evil.example").is_empty());
    }

    #[test]
    fn responses_to_other_requests_allow_the_page() {
        let headers = cors_headers(Method::POST, "http://127.0.0.1:8080");
        assert_eq!(
            (headers.len(), &headers[ACCESS_CONTROL_ALLOW_ORIGIN]),
            (1, &HeaderValue::from_static("http://127.0.0.1:8080"))
        );
    }
}
