//! Holds each request to the store until the scheduler decides on it.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::Response;
use futures::future::pending;
use http::{HeaderMap, Request};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// The fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Served,
    /// The request takes effect, and its task dies.
    LosesAnswer,
    /// The task dies before the request takes effect.
    IsLost,
}

/// A request that waits for the scheduler.
pub(super) struct Waiting {
    pub(super) task: usize,
    /// True if the SDK has made the request before, without an answer.
    pub(super) is_repeat: bool,
    /// The time of its arrival.
    pub(super) since: Instant,
    pub(super) fate: oneshot::Sender<Fate>,
    /// Told when a request without an answer has taken effect.
    pub(super) has_effect: oneshot::Receiver<()>,
}

/// Forwards the requests of tasks as the scheduler says.
struct Proxy {
    waiting: mpsc::UnboundedSender<Waiting>,
    client: Client<HttpConnector, Full<Bytes>>,
    aws: String,
}

async fn forward(
    State(proxy): State<Arc<Proxy>>,
    Path(task): Path<usize>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (fate, decided) = oneshot::channel();
    let (effect, has_effect) = oneshot::channel();
    let is_repeat = !headers["amz-sdk-request"].to_str().unwrap().contains("attempt=1;");
    proxy.waiting.send(Waiting { task, is_repeat, since: Instant::now(), fate, has_effect }).unwrap();
    // A request that the SDK has repeated meanwhile gets no decision.
    let fate = decided.await.unwrap_or(Fate::IsLost);
    if fate == Fate::IsLost {
        return pending().await;
    }
    let mut request = Request::post(&proxy.aws).body(Full::new(body)).unwrap();
    for name in ["x-amz-target", "content-type", "authorization"] {
        request
            .headers_mut()
            .extend(headers.get(name).map(|value| (http::HeaderName::from_static(name), value.clone())));
    }
    let answer = proxy.client.request(request).await.unwrap();
    if fate == Fate::LosesAnswer {
        // The whole answer is read, so the request has taken effect.
        http_body_util::BodyExt::collect(answer.into_body()).await.unwrap();
        let _ = effect.send(());
        return pending().await;
    }
    answer.map(Body::new)
}

/// Starts a proxy of the AWS endpoint. Each task has a path of its own. Returns the port, and the requests that wait.
pub(super) async fn start(aws: String) -> (u16, mpsc::UnboundedReceiver<Waiting>) {
    let (waiting, requests) = mpsc::unbounded_channel();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = Arc::new(Proxy { waiting, client, aws });
    let router = axum::Router::new().route("/{task}/", axum::routing::post(forward)).with_state(proxy);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (port, requests)
}
