//! The part of the Lambda Runtime API that a function needs: the next event, its response, errors. Each process has its
//! own server and port.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, oneshot};

/// Time limit of an invocation. Callgrind makes it fifty times slower.
const DEADLINE: Duration = Duration::from_secs(120);

/// A function's response as JSON, or its error.
pub(crate) type InvocationResult = Result<Value, String>;

/// The server's side of one process.
#[derive(Clone)]
pub(crate) struct RuntimeApi {
    events: mpsc::UnboundedSender<(String, String)>,
    shared: Arc<ApiState>,
    /// The server's address, such as `127.0.0.1:40000`.
    pub(crate) address: String,
}

struct ApiState {
    waiting: tokio::sync::Mutex<mpsc::UnboundedReceiver<(String, String)>>,
    answers: Mutex<HashMap<String, oneshot::Sender<InvocationResult>>>,
    polled: Notify,
}

impl RuntimeApi {
    /// Starts the server on a free loopback port.
    pub(crate) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?.to_string();
        let (events, waiting) = mpsc::unbounded_channel();
        let shared = Arc::new(ApiState {
            waiting: tokio::sync::Mutex::new(waiting),
            answers: Mutex::default(),
            polled: Notify::new(),
        });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .with_state(Arc::clone(&shared));
        tokio::spawn(axum::serve(listener, router).into_future());
        Ok(Self { events, shared, address })
    }

    /// Resolves when the process polls for its first event, which is the end of its initialisation.
    pub(crate) async fn polled(&self) {
        self.shared.polled.notified().await;
    }

    /// Sends an event and waits for the response.
    pub(crate) async fn invoke(&self, event: &Value) -> InvocationResult {
        // A new id, since the stack's ids may contain a slash and this one is part of a path.
        let id = hex::encode(runtime::random_bytes::<16>());
        let (sender, answer) = oneshot::channel();
        self.shared.answers().insert(id.clone(), sender);
        let ended = |_| "the process has ended".to_owned();
        self.events.send((id, event.to_string())).map_err(|error| error.to_string())?;
        match tokio::time::timeout(DEADLINE, answer).await {
            Ok(answer) => answer.map_err(ended)?,
            Err(_elapsed) => Err(format!("no answer within {DEADLINE:?}")),
        }
    }
}

impl ApiState {
    fn answers(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<InvocationResult>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self, id: &str, answer: InvocationResult) -> StatusCode {
        // The caller may have stopped waiting.
        let _ = self.answers().remove(id).map(|sender| sender.send(answer));
        StatusCode::ACCEPTED
    }
}

async fn next(State(shared): State<Arc<ApiState>>) -> Response {
    shared.polled.notify_one();
    let Some((id, event)) = shared.waiting.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("lambda-runtime-aws-request-id", id),
        ("lambda-runtime-deadline-ms", "4102444800000".to_owned()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:000000000000:function:bench".to_owned()),
        (
            "lambda-runtime-trace-id",
            "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0".to_owned(),
        ),
    ];
    (headers, event).into_response()
}

async fn response(State(shared): State<Arc<ApiState>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.complete(&id, serde_json::from_slice(&body).map_err(|error| error.to_string()))
}

async fn error(State(shared): State<Arc<ApiState>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.complete(&id, Err(String::from_utf8_lossy(&body).into_owned()))
}

async fn init_error(body: Bytes) -> StatusCode {
    tracing::error!("a function did not start: {}", String::from_utf8_lossy(&body));
    StatusCode::ACCEPTED
}
