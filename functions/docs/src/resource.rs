//! Something that is the same for everyone until the next deployment: kept by whoever has it, and asked for again by its `ETag`. It is made
//! when it is first asked for, and goes out packed by gzip to whoever takes that.

use std::io::Read;
use std::sync::{LazyLock, OnceLock};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use edge::Inbound;
use flate2::Compression;
use flate2::bufread::{GzDecoder, GzEncoder};
use http::{HeaderName, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

/// How long a copy may be used without asking, in seconds.
const MAX_AGE_S: u32 = 300;
/// Bytes of the hash in an `ETag`.
const ETAG_BYTES: usize = 16;
const GZIP: &str = "gzip";
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

    /// The resource, or 304 where the caller has it.
    pub(crate) fn answer(&self, inbound: &Inbound) -> Response {
        let etag = self.etag.get_or_init(|| etag(&self.given));
        let mut response = if is_known(inbound, etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            self.whole(takes_gzip(inbound))
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

/// Whether the caller takes what is packed, as RFC 9110 has it for `Accept-Encoding`: what it names, or everything, unless its weight is 0.
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
    weight(GZIP).or_else(|| weight("*")).is_some_and(|weight| weight > 0.0)
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
    #[case("", false)]
    #[case("br, deflate", false)]
    #[case("gzip;q=0", false)]
    #[case("gzip; q=0.000, *", false)]
    #[case("*;q=0", false)]
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
}
