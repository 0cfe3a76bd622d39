//! The service, as any integrator reaches it: HTTP requests to its own address, with the caller's key.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use edge::Inbound;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use runtime::{BoxError, error_chain};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::time::timeout;

/// The time in which the service answers. Afterwards there is still time to say so: a handler has 22 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(21);
/// The time for which an idle connection is used again. The gateway closes its connections later.
const KEPT_FOR: Duration = Duration::from_secs(20);
/// The headers of a caller that its requests to the service carry: the key, and the program's name.
const CARRIED: [HeaderName; 3] = [AUTHORIZATION, HeaderName::from_static("x-api-key"), USER_AGENT];

/// Sends requests to the service.
pub(crate) struct Service {
    base: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// A request to the service.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServiceRequest {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) idempotency_key: Option<HeaderValue>,
    pub(crate) body: Option<Value>,
}

/// The answer of the service.
#[derive(Debug)]
pub(crate) struct ServiceAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Null if the answer is no JSON.
    pub(crate) body: Value,
}

/// The service did not answer. It may have done what it was asked to do.
#[derive(Debug)]
pub(crate) struct Unanswered;

/// The headers that a caller's requests to the service carry: the key, and what the log of requests shows.
pub(crate) struct Caller(HeaderMap);

impl Caller {
    pub(crate) fn of(inbound: &Inbound) -> Self {
        let sent = |name: HeaderName| Some((name.clone(), inbound.headers.get(&name)?.clone()));
        Self(CARRIED.into_iter().filter_map(sent).collect())
    }

    /// Names the tool and the client, for the log of requests. Both are shown and never trusted.
    pub(crate) fn naming(mut self, tool: &str, client: Option<&str>) -> Self {
        for (name, text) in [("x-mcp-tool", Some(tool)), ("x-mcp-client", client)] {
            if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
                self.0.insert(name, value);
            }
        }
        self
    }
}

impl ServiceRequest {
    pub(crate) fn get(target: &str) -> Self {
        Self { method: Method::GET, target: target.to_owned(), idempotency_key: None, body: None }
    }
}

impl ServiceAnswer {
    /// Returns true if the operation was refused.
    pub(crate) fn is_refusal(&self) -> bool {
        self.status.is_client_error() && self.status != StatusCode::UNAUTHORIZED
    }

    /// Returns true if this is the stored answer to an earlier request.
    pub(crate) fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replay").is_some_and(|value| value == "true")
    }

    /// Returns the id under which the request is in the logs.
    pub(crate) fn request_id(&self) -> &str {
        self.headers.get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default()
    }
}

impl Service {
    /// A client of the service at this address, such as `https://api.example.com`.
    pub(crate) fn new(base: &str) -> Result<Self, BoxError> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT_FOR)
            .pool_max_idle_per_host(1)
            .build(connector);
        Ok(Self { base: base.to_owned(), client })
    }

    /// Sends a request, once more if the connection ends without an answer: a repeated write has its idempotency key,
    /// or leads to the same state.
    pub(crate) async fn send(&self, caller: &Caller, request: &ServiceRequest) -> Result<ServiceAnswer, Unanswered> {
        let exchange = async {
            match self.exchange(caller, request).await {
                Err(_lost) => self.exchange(caller, request).await,
                answer => answer,
            }
        };
        match timeout(ANSWER_WITHIN, exchange).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                tracing::warn!(error = error_chain(&*error), "the service cannot be reached");
                Err(Unanswered)
            }
            Err(_elapsed) => {
                tracing::warn!("the service did not answer in time");
                Err(Unanswered)
            }
        }
    }

    async fn exchange(&self, caller: &Caller, request: &ServiceRequest) -> Result<ServiceAnswer, BoxError> {
        let uri = format!("{}{}", self.base, request.target);
        let body = request.body.as_ref().map(Value::to_string);
        let mut sent = Request::builder().method(&request.method).uri(uri);
        let headers = sent.headers_mut().ok_or("the request has no URI")?;
        headers.extend(caller.0.clone());
        if let Some(key) = &request.idempotency_key {
            headers.insert("idempotency-key", key.clone());
        }
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let response = self.client.request(sent.body(Full::from(body.unwrap_or_default()))?).await?;
        let (head, body) = response.into_parts();
        if head.headers.contains_key(LOCATION) {
            return Err("the service's address redirects".into());
        }
        let body = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default();
        Ok(ServiceAnswer { status: head.status, headers: head.headers, body })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    use super::*;

    /// A service that reads each request, answers it like this, and closes the connection. `None`: it is silent.
    async fn service(answers: Vec<Option<&'static str>>) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let mut kept = Vec::new();
            for answer in answers {
                let (mut connection, _) = listener.accept().await.unwrap();
                let _read = connection.read(&mut [0; 4096]).await.unwrap();
                match answer {
                    Some(answer) => connection.write_all(answer.as_bytes()).await.unwrap(),
                    None => kept.push(connection),
                }
            }
            std::future::pending::<()>().await;
        });
        Service::new(&base).unwrap()
    }

    async fn sent(service: &Service) -> Result<ServiceAnswer, Unanswered> {
        service.send(&Caller(HeaderMap::new()), &ServiceRequest::get("/v1/key")).await
    }

    #[tokio::test]
    async fn a_request_is_sent_once_more_if_its_connection_ends_without_an_answer() {
        let good = "HTTP/1.1 201 Created\r\nx-request-id: r-1\r\ncontent-length: 2\r\n\r\n{}";
        let answer = sent(&service(vec![Some(""), Some(good)]).await).await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.request_id()), (201, "r-1"));
        assert_eq!(answer.body, serde_json::json!({}));
        assert!(sent(&service(vec![Some(""), Some(""), Some(good)]).await).await.is_err());
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let moved = "HTTP/1.1 308 Permanent Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        assert!(sent(&service(vec![Some(moved), Some(moved)]).await).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_service_is_given_up_before_the_function_ends() {
        let service = service(vec![None]).await;
        let began = Instant::now();
        assert!(sent(&service).await.is_err());
        assert!(began.elapsed() < Duration::from_secs(22), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_service_that_is_not_there_is_no_answer() {
        assert!(sent(&Service::new("http://127.0.0.1:1").unwrap()).await.is_err());
    }
}
