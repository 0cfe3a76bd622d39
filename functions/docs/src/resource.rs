//! Something that is the same for everyone until the next deployment: kept by whoever has it, and asked for again by its `ETag`.

use std::sync::OnceLock;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use edge::Inbound;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How long a copy may be used without asking, in seconds.
const MAX_AGE_S: u32 = 300;
/// Bytes of the hash in an `ETag`.
const ETAG_BYTES: usize = 16;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A resource in memory.
pub(crate) struct Resource {
    body: Bytes,
    media_type: &'static str,
    policy: &'static str,
    etag: OnceLock<String>,
}

impl Resource {
    /// A resource whose page, where it is one, may do what the `Content-Security-Policy` says.
    pub(crate) fn new(body: impl Into<Bytes>, media_type: &'static str, policy: &'static str) -> Self {
        Self { body: body.into(), media_type, policy, etag: OnceLock::new() }
    }

    /// JSON.
    pub(crate) fn json(value: &Value) -> Result<Self, serde_json::Error> {
        Ok(Self::new(serde_json::to_vec(value)?, "application/json", "default-src 'none'; frame-ancestors 'none'"))
    }

    /// The resource, or 304 where the caller has it.
    pub(crate) fn answer(&self, inbound: &Inbound) -> Response {
        let etag = self.etag.get_or_init(|| etag(&self.body));
        let mut response = if is_known(inbound, etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let mut response = Body::from(self.body.clone()).into_response();
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
            response
        };
        for (name, value) in [
            (header::ETAG, etag.as_str()),
            (header::CACHE_CONTROL, &format!("public, max-age={MAX_AGE_S}")),
            (header::CONTENT_SECURITY_POLICY, self.policy),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (REQUEST_ID, &inbound.request_id),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

fn etag(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    let hex: String = digest[..ETAG_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

/// Whether the caller has this version. Compared weakly, as RFC 9110 has it for `If-None-Match`.
fn is_known(inbound: &Inbound, etag: &str) -> bool {
    let known = inbound.header("if-none-match").and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
    known.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::FromRequest;

    async fn answer(known: Option<&str>) -> Response {
        let mut request = http::Request::builder().uri("/openapi.json");
        if let Some(known) = known {
            request = request.header("if-none-match", known);
        }
        let inbound = Inbound::from_request(request.body(Body::empty()).unwrap(), &()).await.unwrap();
        Resource::new("text", "text/plain", "default-src 'none'").answer(&inbound)
    }

    #[tokio::test]
    async fn a_caller_that_has_a_resource_is_told_so_and_no_more() {
        let whole = answer(None).await;
        assert_eq!((whole.status().as_u16(), whole.headers()["content-type"].to_str().unwrap()), (200, "text/plain"));
        let etag = whole.headers()["etag"].to_str().unwrap().to_owned();
        for known in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}"), "*".to_owned()] {
            let again = answer(Some(&known)).await;
            assert_eq!(again.status(), 304, "{known}");
            assert_eq!(again.headers()["etag"], etag.as_str());
            assert_eq!(again.headers()["cache-control"], "public, max-age=300");
            assert!(axum::body::to_bytes(again.into_body(), 10).await.unwrap().is_empty());
        }
        assert_eq!(answer(Some("\"other\"")).await.status(), 200);
    }
}
