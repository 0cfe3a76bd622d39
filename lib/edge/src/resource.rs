//! A resource that stays the same until the next deployment: cached by callers, revalidated by `ETag`.
//!
//! A resource is rendered at its first request, and sent with gzip if the caller accepts gzip.

use std::borrow::Cow;
use std::io::Read;
use std::sync::{LazyLock, OnceLock};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::GzEncoder;
use http::{HeaderName, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::Inbound;

/// `Cache-Control` of a resource, unless [`Resource::cached`] sets another: a copy is used for five minutes.
const CACHE_CONTROL: &str = "public, max-age=300";
/// Bytes of the hash in an `ETag`.
const ETAG_BYTES: usize = 16;
const GZIP: &str = "gzip";
/// Alias of gzip (RFC 9110, section 8.4.1.3).
const X_GZIP: &str = "x-gzip";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A resource, rendered at its first request and then kept in memory.
pub struct Resource {
    body: LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>,
    /// `body` with gzip, from the first request that needs it.
    gzipped: OnceLock<Bytes>,
    media_type: &'static str,
    policy: Cow<'static, str>,
    cache_control: &'static str,
    /// Headers of this resource alone.
    headers: Vec<(HeaderName, HeaderValue)>,
    etag: OnceLock<String>,
}

impl Resource {
    /// Creates a resource. `policy` is its `Content-Security-Policy`.
    pub fn new<B: Into<Bytes>>(
        render: impl FnOnce() -> B + Send + 'static,
        media_type: &'static str,
        policy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            body: LazyLock::new(Box::new(|| render().into()) as Box<_>),
            gzipped: OnceLock::new(),
            media_type,
            policy: policy.into(),
            cache_control: CACHE_CONTROL,
            headers: Vec::new(),
            etag: OnceLock::new(),
        }
    }

    /// Sets another `Cache-Control`.
    #[must_use]
    pub fn cached(self, cache_control: &'static str) -> Self {
        Self { cache_control, ..self }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((HeaderName::from_static(name), HeaderValue::from_static(value)));
        self
    }

    /// Answers with the resource, or with 304 if the caller's copy is current.
    pub fn answer(&self, inbound: &Inbound) -> Response {
        let etag = self.etag.get_or_init(|| etag(&self.body));
        let mut response = if has_current_copy(inbound, etag) {
            self.with_headers(StatusCode::NOT_MODIFIED.into_response(), inbound)
        } else {
            self.answer_with(StatusCode::OK, inbound)
        };
        if let Ok(etag) = HeaderValue::from_str(etag) {
            response.headers_mut().insert(header::ETAG, etag);
        }
        response
    }

    /// Answers with the resource and this status, without an `ETag`.
    pub fn answer_with(&self, status: StatusCode, inbound: &Inbound) -> Response {
        let mut response = self.whole_response(accepts_gzip(inbound));
        *response.status_mut() = status;
        self.with_headers(response, inbound)
    }

    fn with_headers(&self, mut response: Response, inbound: &Inbound) -> Response {
        for (name, value) in [
            (header::CACHE_CONTROL, self.cache_control),
            (header::VARY, header::ACCEPT_ENCODING.as_str()),
            (header::CONTENT_SECURITY_POLICY, &self.policy),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (REQUEST_ID, &inbound.request_id),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
        response.headers_mut().extend(self.headers.iter().cloned());
        response
    }

    /// Builds the response with the whole body, with or without gzip.
    fn whole_response(&self, with_gzip: bool) -> Response {
        let body = if with_gzip { self.gzipped.get_or_init(|| gzip(&self.body)).clone() } else { self.body.clone() };
        let mut response = Body::from(body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        if with_gzip {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(GZIP));
        }
        response
    }
}

fn gzip(body: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    GzEncoder::new(body, Compression::default()).read_to_end(&mut bytes).expect("reads from memory succeed");
    bytes.into()
}

/// Returns the `ETag`. The tag is weak because both forms, with and without gzip, share it.
fn etag(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    let hex: String = digest[..ETAG_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("W/\"{hex}\"")
}

/// Returns true if `If-None-Match` names this version, by the weak comparison of RFC 9110.
fn has_current_copy(inbound: &Inbound, etag: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    header_text(inbound, "if-none-match").split(',').map(str::trim).any(|tag| tag == "*" || opaque(tag) == opaque(etag))
}

/// Returns true if `Accept-Encoding` names gzip, or else `*`, with a weight above 0 (RFC 9110). A caller without the
/// header does not accept gzip.
fn accepts_gzip(inbound: &Inbound) -> bool {
    let accepted = header_text(inbound, "accept-encoding");
    let weight = |wanted: &str| {
        accepted.split(',').find_map(|entry| {
            let mut parts = entry.split(';').map(str::trim);
            let is_wanted = parts.next().is_some_and(|coding| coding.eq_ignore_ascii_case(wanted));
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            is_wanted.then(|| weight.map_or(1.0, |weight| weight.parse::<f32>().unwrap_or_default()))
        })
    };
    weight(GZIP).or_else(|| weight(X_GZIP)).or_else(|| weight("*")).is_some_and(|weight| weight > 0.0)
}

fn header_text<'i>(inbound: &'i Inbound, name: &str) -> &'i str {
    inbound.header(name).and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::FromRequest;
    use flate2::read::GzDecoder;

    const TEXT: &str = "text text text text text text text text text text text text";

    async fn answer_with_header(resource: &Resource, name: &str, value: &str) -> Response {
        let request = http::Request::builder().uri("/openapi.json").header(name, value);
        let inbound = Inbound::from_request(request.body(Body::empty()).unwrap(), &()).await.unwrap();
        resource.answer(&inbound)
    }

    fn plain() -> Resource {
        Resource::new(|| TEXT, "text/plain", "default-src 'none'")
    }

    async fn body(response: Response) -> Bytes {
        axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap()
    }

    #[tokio::test]
    async fn a_caller_with_the_current_version_gets_304_without_a_body() {
        let whole = answer_with_header(&plain(), "accept", "*/*").await;
        assert_eq!((whole.status().as_u16(), whole.headers()["content-type"].to_str().unwrap()), (200, "text/plain"));
        let etag = whole.headers()["etag"].to_str().unwrap().to_owned();
        let opaque = etag.strip_prefix("W/").unwrap();
        for current in [&etag, opaque, &format!("\"other\", {etag}"), "*"] {
            let again = answer_with_header(&plain(), "if-none-match", current).await;
            assert_eq!(again.status(), 304, "{current}");
            assert_eq!(again.headers()["etag"], etag.as_str());
            assert_eq!(again.headers()["cache-control"], "public, max-age=300");
            assert!(body(again).await.is_empty());
        }
        assert_eq!(answer_with_header(&plain(), "if-none-match", "\"other\"").await.status(), 200);
    }

    #[rstest::rstest]
    #[case("gzip", true)]
    #[case("deflate, GZIP;q=0.5", true)]
    #[case("br;q=1.0, *;q=0.1", true)]
    #[case("x-gzip", true)]
    #[case("identity;q=0, gzip", true)]
    #[case("*;q=0, gzip;q=0.001", true)]
    #[case("", false)]
    #[case("br, deflate", false)]
    #[case("gzip;q=0", false)]
    #[case("gzip; q=0.000, *", false)]
    #[case("*;q=0", false)]
    #[case("identity", false)]
    #[case("x-gzip;q=0, *", false)]
    #[case("gzip;q=never", false)]
    #[tokio::test]
    async fn a_caller_that_accepts_gzip_gets_gzip(#[case] accepted: &str, #[case] is_gzipped: bool) {
        let answer = answer_with_header(&plain(), "accept-encoding", accepted).await;
        assert_eq!(answer.headers().contains_key("content-encoding"), is_gzipped);
        assert_eq!(answer.headers()["vary"], "accept-encoding");
        let body = body(answer).await;
        let text = if is_gzipped { std::io::read_to_string(GzDecoder::new(&*body)).unwrap().into() } else { body };
        assert_eq!(text, TEXT);
    }
}
