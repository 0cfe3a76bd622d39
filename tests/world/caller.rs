//! HTTP calls. Awaiting a [`Call`] gives its [`Reply`]. Nothing is normalised, so that malformed requests stay
//! malformed.

use std::future::IntoFuture;
use std::io::Read;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use flate2::read::GzDecoder;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::confidential::Confidential;
use super::members;

/// Current URLs of the stack. They change with each restart.
#[derive(Clone, Default)]
pub(crate) struct Addresses(Arc<RwLock<Urls>>);

#[derive(Clone, Default)]
struct Urls {
    base: String,
    aws: String,
}

impl Addresses {
    /// Sets the URLs after a start.
    pub(crate) fn set(&self, base: &str, aws: &str) {
        *self.0.write().unwrap() = Urls { base: base.to_owned(), aws: aws.to_owned() };
    }

    /// URL of the AWS endpoint.
    pub(crate) fn aws(&self) -> String {
        self.0.read().unwrap().aws.clone()
    }

    /// Base URL of the API.
    pub(crate) fn base(&self) -> String {
        self.0.read().unwrap().base.clone()
    }
}

/// A caller of the service with its identifying headers.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client<HttpConnector, Full<Bytes>>,
    addresses: Addresses,
    confidential: Confidential,
    headers: Vec<(String, String)>,
}

impl Caller {
    /// A caller without a key. Its calls note confidential texts.
    pub(crate) fn anonymous(addresses: &Addresses, confidential: &Confidential) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { client, addresses: addresses.clone(), confidential: confidential.clone(), headers: Vec::new() }
    }

    /// The same caller with one more header on each call.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut caller = self.clone();
        caller.headers.push((name.to_owned(), value.to_owned()));
        caller
    }

    /// The same caller with a bearer token on each call.
    pub(crate) fn with_bearer(&self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    /// A call by any method.
    pub(crate) fn call(&self, method: &str, path: &str) -> Call {
        Call {
            client: self.client.clone(),
            confidential: self.confidential.clone(),
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            url: format!("{}{path}", self.addresses.base()),
            headers: self.headers.clone(),
            body: Bytes::new(),
        }
    }

    /// GET.
    pub(crate) fn get(&self, path: &str) -> Call {
        self.call("GET", path)
    }

    /// Makes this many pings, 50 at once: with more, a busy machine lets some run out of time.
    pub(crate) async fn pings(&self, count: usize) -> Vec<Reply> {
        let calls = (0..count).map(|_| self.get("/v1/ping").into_future());
        futures::stream::iter(calls).buffer_unordered(50).collect().await
    }

    /// POST of JSON.
    pub(crate) fn post(&self, path: &str, body: Value) -> Call {
        self.call("POST", path).json(&body)
    }

    /// PATCH with JSON.
    pub(crate) fn patch(&self, path: &str, body: Value) -> Call {
        self.call("PATCH", path).json(&body)
    }

    /// DELETE.
    pub(crate) fn delete(&self, path: &str) -> Call {
        self.call("DELETE", path)
    }

    /// Calls the AWS endpoint by a JSON protocol, expects success and returns the answer.
    pub(crate) async fn aws(&self, target: &str, body: &Value) -> Value {
        let call = Call { url: self.addresses.aws(), ..self.call("POST", "") };
        let reply = call
            .body(body.to_string())
            .header("x-amz-target", target)
            .header("content-type", "application/x-amz-json-1.0")
            .await;
        reply.expect(200).body
    }
}

/// A call that is made when awaited.
#[derive(Clone)]
#[must_use = "a call is made when it is awaited"]
pub(crate) struct Call {
    client: Client<HttpConnector, Full<Bytes>>,
    confidential: Confidential,
    method: Method,
    url: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Call {
    /// Sets a header and replaces an earlier one of that name.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a JSON body and its content type.
    pub(crate) fn json(self, body: &Value) -> Self {
        self.body(body.to_string()).header("content-type", "application/json")
    }

    /// Sets the idempotency key.
    pub(crate) fn idempotent(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }
}

impl IntoFuture for Call {
    type Output = Reply;
    type IntoFuture = BoxFuture<'static, Reply>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.confidential.note_target(&self.url);
            for (name, value) in &self.headers {
                self.confidential.note_header(name, value);
            }
            if let Ok(body) = serde_json::from_slice(&self.body) {
                self.confidential.note_body(&body);
            }
            let mut request = Request::builder().method(&self.method).uri(&self.url);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            let request = request.body(Full::new(self.body)).unwrap();
            let response = self
                .client
                .request(request)
                .await
                .unwrap_or_else(|error| panic!("{} {}: {error:?}", self.method, self.url));
            let (parts, body) = response.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let sent = bytes.len();
            let bytes = if parts.headers.get("content-encoding").is_some_and(|coding| coding == "gzip") {
                let mut unpacked = Vec::new();
                GzDecoder::new(&*bytes).read_to_end(&mut unpacked).unwrap();
                unpacked.into()
            } else {
                bytes
            };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let body = serde_json::from_str(&text).unwrap_or_default();
            // Documentation is the same for everyone: it holds nothing confidential.
            if !["/docs/", "/openapi"].iter().any(|part| self.url.contains(part)) {
                self.confidential.note_body(&body);
            }
            for (name, value) in &parts.headers {
                self.confidential.note_header(name.as_str(), value.to_str().unwrap_or_default());
            }
            Reply { status: parts.status.as_u16(), headers: parts.headers, body, text, bytes: sent }
        })
    }
}

/// The answer to a call.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// `Null` if the body is not JSON.
    pub(crate) body: Value,
    pub(crate) text: String,
    /// Size of the body on the wire.
    pub(crate) bytes: usize,
}

/// The answer to simultaneous requests with one idempotency key, of which one did the work. The others replay its
/// answer, or are asked to come again.
#[track_caller]
pub(crate) fn the_one_answer(replies: &[Reply]) -> &Reply {
    let first: Vec<&Reply> = replies.iter().filter(|reply| reply.status < 300 && !reply.is_replay()).collect();
    assert_eq!(first.len(), 1);
    for reply in replies {
        if reply.status == 409 {
            reply.assert_in_progress();
        } else {
            assert_eq!(reply.text, first[0].text);
        }
    }
    first[0]
}

impl Reply {
    /// Asserts that another request with the same idempotency key is at work.
    #[track_caller]
    pub(crate) fn assert_in_progress(&self) {
        let busy = self.clone().refused(409, "idempotency_in_progress");
        assert_eq!(busy.header("retry-after"), Some("5"));
    }

    /// Asserts the status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// Asserts an error of the service with this status and code.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Self {
        let reply = self.expect(status);
        assert_eq!(reply.body["code"], code, "{}", reply.text);
        assert!(reply.body["error"].as_str().is_some_and(|error| error.len() > 10), "{}", reply.text);
        assert!(reply.body["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{}", reply.text);
        assert_eq!(reply.body.get("event_id").is_some(), status == 500, "{}", reply.text);
        reply
    }

    /// Asserts a 400 whose text names the field.
    #[track_caller]
    pub(crate) fn refused_for(self, field: &str) -> Self {
        let reply = self.refused(400, "invalid_request");
        assert!(reply.error().contains(field), "{}", reply.text);
        reply
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns true for the replay of an earlier answer.
    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotent-replay") == Some("true")
    }

    /// A text member of the body.
    #[track_caller]
    pub(crate) fn str(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_else(|| panic!("no text {name} in {}", self.text))
    }

    /// The error's text.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        self.str("error")
    }

    /// The names of the body's members, sorted.
    #[track_caller]
    pub(crate) fn members(&self) -> Vec<&str> {
        members(&self.body)
    }
}
