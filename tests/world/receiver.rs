//! A partner's receiver: an HTTP server that answers by a script and records its requests.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use http::{HeaderMap, StatusCode, Uri};
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::POLL_EVERY;
use super::odd_headers::OddListener;

/// Stands for no status.
const SILENCE: u16 = 0;

/// One received request.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// One scripted answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    /// The answer's body repeats the request's.
    echoes: bool,
    /// The answer waits until another request has arrived.
    awaits_another: bool,
    /// Delay before the answer.
    after: Duration,
}

impl Answer {
    /// An answer without a body.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
            echoes: false,
            awaits_another: false,
            after: Duration::ZERO,
        }
    }

    /// An answer that repeats the request's body.
    pub(crate) fn echo(status: u16) -> Self {
        Self { echoes: true, ..Self::status(status) }
    }

    /// No answer: the connection is closed.
    pub(crate) fn silence() -> Self {
        Self::status(SILENCE)
    }

    /// The same answer after a delay.
    pub(crate) fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// The same answer after a delay, which begins when the next request arrives.
    pub(crate) fn after_another(self, after: Duration) -> Self {
        Self { awaits_another: true, ..self.after(after) }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = body.to_owned();
        self
    }
}

#[derive(Default)]
struct Shared {
    hooks: Vec<Hook>,
    script: VecDeque<Answer>,
    otherwise: Option<Answer>,
}

/// A running receiver. Answers 204 by default.
pub(crate) struct Receiver {
    port: u16,
    shared: Arc<Mutex<Shared>>,
    server: JoinHandle<()>,
}

impl Receiver {
    /// A receiver on a free port.
    pub(crate) async fn start() -> Self {
        Self::start_through(|listener| listener).await
    }

    /// A receiver whose answers carry odd headers.
    pub(crate) async fn start_odd() -> Self {
        Self::start_through(OddListener).await
    }

    async fn start_through<L: Listener<Addr = SocketAddr>>(through: impl FnOnce(TcpListener) -> L) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let router = Router::new().fallback(take).with_state(Arc::clone(&shared));
        let listener = through(listener);
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, shared, server }
    }

    /// URL of the receiver.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    /// Queues answers for the next requests.
    pub(crate) fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.lock().unwrap().script.extend(answers);
    }

    /// Sets the answer for requests that the script does not cover.
    pub(crate) fn otherwise(&self, answer: Answer) {
        self.shared.lock().unwrap().otherwise = Some(answer);
    }

    /// Requests received so far.
    pub(crate) fn hooks(&self) -> Vec<Hook> {
        self.shared.lock().unwrap().hooks.clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn take(State(shared): State<Arc<Mutex<Shared>>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let (answer, arrived) = {
        let mut shared = shared.lock().unwrap();
        shared.hooks.push(Hook { path: uri.path().to_owned(), headers, body: body.to_vec() });
        let answer = shared.script.pop_front().or_else(|| shared.otherwise.clone());
        (answer.unwrap_or_else(|| Answer::status(204)), shared.hooks.len())
    };
    // The time limit of the attempt ends the wait: the server drops the handler of a closed connection.
    let mut polls = tokio::time::interval(POLL_EVERY);
    while answer.awaits_another && shared.lock().unwrap().hooks.len() == arrived {
        polls.tick().await;
    }
    // Waits for the delay: the future never completes.
    let _ = tokio::time::timeout(answer.after, std::future::pending::<()>()).await;
    if answer.status == SILENCE {
        // Ends the connection's task, without a message.
        std::panic::resume_unwind(Box::new(()));
    }
    let body = if answer.echoes { body } else { Bytes::from(answer.body) };
    let mut response = (StatusCode::from_u16(answer.status).unwrap(), body).into_response();
    for (name, value) in answer.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

impl Hook {
    /// A header's value.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no header {name}")).to_str().unwrap()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The signed time in Unix seconds.
    pub(crate) fn unix_s(&self) -> i64 {
        self.header("webhook-timestamp").parse().unwrap()
    }

    /// Checks the signature with the official library, but not the timestamp: the stack's clock may have been moved.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let expected =
            Webhook::new(secret).unwrap().sign(self.header("webhook-id"), self.unix_s(), &self.body).unwrap();
        self.header("webhook-signature").split(' ').any(|signature| signature == expected)
    }

    /// Verifies with the official library by the machine's clock: only for worlds whose clock was not moved.
    pub(crate) fn verify(&self, secret: &str) -> bool {
        Webhook::new(secret).unwrap().verify(&self.body, &self.headers).is_ok()
    }
}
