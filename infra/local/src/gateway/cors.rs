//! Cross-origin answers, which the gateway gives by itself: functions know nothing of them.

use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    HeaderMap, HeaderName, HeaderValue, ORIGIN,
};
use http::{Method, Response, StatusCode, request};

use crate::template::Cors;

/// The answer to a preflight request. `None` for any other request.
pub(super) fn preflight(cors: &Cors, head: &request::Parts) -> Option<Response<Body>> {
    let asks = head.method == Method::OPTIONS
        && head.headers.contains_key(ORIGIN)
        && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if !asks {
        return None;
    }
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    if allow(cors, &head.headers, headers) {
        list(headers, ACCESS_CONTROL_ALLOW_METHODS, &cors.allow_methods);
        list(headers, ACCESS_CONTROL_ALLOW_HEADERS, &cors.allow_headers);
        if let Some(max_age) = cors.max_age {
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(max_age));
        }
    }
    Some(answer)
}

/// Adds what lets a page of an allowed origin read the answer.
pub(super) fn decorate(cors: &Cors, request: &HeaderMap, answer: &mut HeaderMap) {
    if allow(cors, request, answer) {
        list(answer, ACCESS_CONTROL_EXPOSE_HEADERS, &cors.expose_headers);
    }
}

fn allow(cors: &Cors, request: &HeaderMap, answer: &mut HeaderMap) -> bool {
    let Some(origin) = request.get(ORIGIN) else { return false };
    let everyone = cors.allow_origins.iter().any(|allowed| allowed == "*");
    if !everyone && !cors.allow_origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) {
        return false;
    }
    let named = if everyone { HeaderValue::from_static("*") } else { origin.clone() };
    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, named);
    if cors.allow_credentials {
        answer.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    true
}

fn list(headers: &mut HeaderMap, name: HeaderName, values: &[String]) {
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

    fn head(method: Method, origin: &str) -> request::Parts {
        let request = http::Request::builder().method(method).header(ORIGIN, origin);
        request.header(ACCESS_CONTROL_REQUEST_METHOD, "POST").body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_preflight_of_the_page_is_answered_in_full() {
        let answer = preflight(&cors(), &head(Method::OPTIONS, "http://127.0.0.1:8080")).unwrap();
        assert_eq!(answer.status(), 204);
        assert_eq!(answer.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "http://127.0.0.1:8080");
        assert_eq!(answer.headers()[ACCESS_CONTROL_ALLOW_METHODS], "GET,POST");
        assert_eq!(answer.headers()[ACCESS_CONTROL_MAX_AGE], "60");
    }

    #[test]
    fn another_origin_is_allowed_nothing() {
        let answer = preflight(&cors(), &head(Method::OPTIONS, "http://evil.example")).unwrap();
        assert_eq!((answer.status(), answer.headers().len()), (StatusCode::NO_CONTENT, 0));
    }

    #[test]
    fn other_requests_are_no_preflights_and_their_answers_can_be_read() {
        let head = head(Method::POST, "http://127.0.0.1:8080");
        assert!(preflight(&cors(), &head).is_none());
        let mut answer = HeaderMap::new();
        decorate(&cors(), &head.headers, &mut answer);
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_ORIGIN], "http://127.0.0.1:8080");
    }
}
