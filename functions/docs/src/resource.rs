//! Something that is the same for everyone until the next deployment: kept by whoever has it, and asked for again by
//! its `ETag`. It is made when it is first asked for, and goes out packed by gzip to whoever takes that.
//!
//! A resource that is large without compression goes out packed or not at all, since its callers are anonymous.

use std::io::Read;
use std::sync::{LazyLock, OnceLock};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use edge::{Inbound, Problem, Reply};
use flate2::Compression;
use flate2::bufread::{GzDecoder, GzEncoder};
use http::{HeaderName, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

/// Most bytes of a body that goes out as it is. Larger ones go out packed alone.
pub(crate) const MAX_PLAIN_BYTES: usize = 700_000;
/// How long a copy may be used without asking, in seconds.
const MAX_AGE_S: u32 = 300;
/// Bytes of the hash in an `ETag`.
const ETAG_BYTES: usize = 16;
const GZIP: &str = "gzip";
/// Another name of gzip (RFC 9110, section 8.4.1.3).
const X_GZIP: &str = "x-gzip";
/// Bytes at the end of a gzip file that tell how long it is unpacked, little end first (RFC 1952).
const GZIP_LENGTH_BYTES: usize = 4;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A resource, in memory from when it is first asked for.
pub(crate) struct Resource {
    given: LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>,
    is_packed: bool,
    /// The other form, once somebody has asked for it.
    other: OnceLock<Bytes>,
    media_type: &'static str,
    policy: &'static str,
    etag: OnceLock<String>,
}

impl Resource {
    /// A resource whose page, where it is one, may do what the `Content-Security-Policy` says.
    pub(crate) fn new<B: Into<Bytes>>(
        make: impl FnOnce() -> B + Send + 'static,
        media_type: &'static str,
        policy: &'static str,
    ) -> Self {
        let given = LazyLock::new(Box::new(|| make().into()) as Box<_>);
        Self { given, is_packed: false, other: OnceLock::new(), media_type, policy, etag: OnceLock::new() }
    }

    /// The same, of a body that is packed already.
    pub(crate) fn packed(body: &'static [u8], media_type: &'static str, policy: &'static str) -> Self {
        Self { is_packed: true, ..Self::new(move || body, media_type, policy) }
    }

    /// The resource, or 304 where the caller has it. A caller that takes no gzip gets 406 for a resource that is too
    /// large without.
    pub(crate) fn answer(&self, inbound: &Inbound) -> Response {
        let etag = self.etag.get_or_init(|| etag(&self.given));
        let packed = takes_gzip(inbound);
        let mut response = if is_known(inbound, etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if packed || self.plain_bytes() <= MAX_PLAIN_BYTES {
            self.whole(packed)
        } else {
            let refusal = Reply::problem(&Problem::GzipOnly, inbound);
            return refusal.header("vary", header::ACCEPT_ENCODING).into_response_for(inbound);
        };
        for (name, value) in [
            (header::ETAG, etag.as_str()),
            (header::CACHE_CONTROL, &format!("public, max-age={MAX_AGE_S}")),
            (header::VARY, header::ACCEPT_ENCODING.as_str()),
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

    /// Bytes of the resource as it is, without unpacking it.
    fn plain_bytes(&self) -> usize {
        match self.given.last_chunk::<GZIP_LENGTH_BYTES>() {
            Some(length) if self.is_packed => u32::from_le_bytes(*length) as usize,
            _ => self.given.len(),
        }
    }

    /// The resource in the form that the caller takes.
    fn whole(&self, packed: bool) -> Response {
        let body = match (packed, self.is_packed) {
            (true, true) | (false, false) => self.given.clone(),
            (true, false) => self.other(|given| read(GzEncoder::new(given, Compression::default()))),
            (false, true) => self.other(|given| read(GzDecoder::new(given))),
        };
        let mut response = Body::from(body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        if packed {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(GZIP));
        }
        response
    }

    fn other(&self, make: impl FnOnce(&[u8]) -> Bytes) -> Bytes {
        self.other.get_or_init(|| make(&self.given)).clone()
    }
}

fn read(mut from: impl Read) -> Bytes {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("memory can be read, and what is packed was packed by the build");
    bytes.into()
}

/// One for both forms, and therefore a weak one.
fn etag(given: &[u8]) -> String {
    let digest = Sha256::digest(given);
    let hex: String = digest[..ETAG_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("W/\"{hex}\"")
}

/// Whether the caller has this version. Compared weakly, as RFC 9110 has it for `If-None-Match`.
fn is_known(inbound: &Inbound, etag: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    text(inbound, "if-none-match").split(',').map(str::trim).any(|tag| tag == "*" || opaque(tag) == opaque(etag))
}

/// Returns true if the caller takes gzip, by the rules of RFC 9110 for `Accept-Encoding`: gzip is named, or else `*`,
/// with a weight above 0. Without the header a caller takes what is not packed.
fn takes_gzip(inbound: &Inbound) -> bool {
    let accepted = text(inbound, "accept-encoding");
    let weight = |wanted: &str| {
        accepted.split(',').find_map(|one| {
            let mut parts = one.split(';').map(str::trim);
            let is_it = parts.next().is_some_and(|coding| coding.eq_ignore_ascii_case(wanted));
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            is_it.then(|| weight.map_or(1.0, |weight| weight.parse::<f32>().unwrap_or_default()))
        })
    };
    weight(GZIP).or_else(|| weight(X_GZIP)).or_else(|| weight("*")).is_some_and(|weight| weight > 0.0)
}

fn text<'i>(inbound: &'i Inbound, name: &str) -> &'i str {
    inbound.header(name).and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::FromRequest;

    const TEXT: &str = "text text text text text text text text text text text text";

    async fn answer_of(resource: &Resource, name: &str, value: &str) -> Response {
        let request = http::Request::builder().uri("/openapi.json").header(name, value);
        let inbound = Inbound::from_request(request.body(Body::empty()).unwrap(), &()).await.unwrap();
        resource.answer(&inbound)
    }

    fn plain() -> Resource {
        Resource::new(|| TEXT, "text/plain", "default-src 'none'")
    }

    fn packed() -> Resource {
        let bytes: &'static [u8] = read(GzEncoder::new(TEXT.as_bytes(), Compression::best())).to_vec().leak();
        Resource::packed(bytes, "text/plain", "default-src 'none'")
    }

    async fn body(response: Response) -> Bytes {
        axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap()
    }

    #[tokio::test]
    async fn a_caller_that_has_a_resource_is_told_so_and_no_more() {
        let whole = answer_of(&plain(), "accept", "*/*").await;
        assert_eq!((whole.status().as_u16(), whole.headers()["content-type"].to_str().unwrap()), (200, "text/plain"));
        let etag = whole.headers()["etag"].to_str().unwrap().to_owned();
        let opaque = etag.strip_prefix("W/").unwrap();
        for known in [&etag, opaque, &format!("\"other\", {etag}"), "*"] {
            let again = answer_of(&plain(), "if-none-match", known).await;
            assert_eq!(again.status(), 304, "{known}");
            assert_eq!(again.headers()["etag"], etag.as_str());
            assert_eq!(again.headers()["cache-control"], "public, max-age=300");
            assert!(body(again).await.is_empty());
        }
        assert_eq!(answer_of(&plain(), "if-none-match", "\"other\"").await.status(), 200);
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
    async fn a_resource_is_packed_for_those_who_take_it(#[case] accepted: &str, #[case] is_packed: bool) {
        for resource in [plain(), packed()] {
            let answer = answer_of(&resource, "accept-encoding", accepted).await;
            assert_eq!(answer.headers().contains_key("content-encoding"), is_packed);
            assert_eq!(answer.headers()["vary"], "accept-encoding");
            let body = body(answer).await;
            let text = if is_packed { read(GzDecoder::new(&*body)) } else { body };
            assert_eq!(text, TEXT);
        }
    }

    fn large(bytes: usize, is_packed: bool) -> Resource {
        let text = "x".repeat(bytes);
        if is_packed {
            let packed: &'static [u8] = read(GzEncoder::new(text.as_bytes(), Compression::fast())).to_vec().leak();
            return Resource::packed(packed, "text/plain", "default-src 'none'");
        }
        Resource::new(move || text, "text/plain", "default-src 'none'")
    }

    #[tokio::test]
    async fn a_large_resource_is_sent_packed_or_not_at_all() {
        for is_packed in [true, false] {
            let most = large(MAX_PLAIN_BYTES, is_packed);
            assert_eq!(body(answer_of(&most, "accept", "*/*").await).await.len(), MAX_PLAIN_BYTES);
            let resource = large(MAX_PLAIN_BYTES + 1, is_packed);
            for accepted in ["", "identity", "gzip;q=0", "br", "*;q=0"] {
                let refusal = answer_of(&resource, "accept-encoding", accepted).await;
                assert_eq!(
                    (refusal.status().as_u16(), refusal.headers()["vary"].as_bytes()),
                    (406, &b"accept-encoding"[..])
                );
                let text = String::from_utf8(body(refusal).await.into()).unwrap();
                assert!(text.contains("\"not_acceptable\"") && text.contains("Accept-Encoding: gzip"), "{text}");
            }
            assert_eq!(answer_of(&resource, "accept", "*/*").await.status(), 406, "no header");
            for accepted in ["gzip", "*"] {
                let answer = answer_of(&resource, "accept-encoding", accepted).await;
                assert_eq!(
                    (answer.status().as_u16(), answer.headers()["content-encoding"].as_bytes()),
                    (200, &b"gzip"[..])
                );
            }
            let etag = answer_of(&resource, "accept-encoding", "gzip").await.headers()["etag"].clone();
            assert_eq!(answer_of(&resource, "if-none-match", etag.to_str().unwrap()).await.status(), 304);
        }
    }
}
