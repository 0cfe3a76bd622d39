//! As much of the Lambda Runtime API as a function needs (<https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>): the next
//! event, its answer, errors. Each process has one of its own, on a port of its own.

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

/// How long an invocation may take. Under callgrind everything takes fifty times as long.
const DEADLINE: Duration = Duration::from_secs(120);

/// What a function answers: its JSON, or what went wrong.
pub(crate) type Answer = Result<Value, String>;

/// The server's side of one process.
#[derive(Clone)]
pub(crate) struct RuntimeApi {
    events: mpsc::UnboundedSender<(String, String)>,
    shared: Arc<Shared>,
    /// `127.0.0.1:40000`.
    pub(crate) address: String,
}

struct Shared {
    waiting: tokio::sync::Mutex<mpsc::UnboundedReceiver<(String, String)>>,
    answers: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
    polled: Notify,
}

impl RuntimeApi {
    /// Listens on loopback.
    pub(crate) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?.to_string();
        let (events, waiting) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
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

    /// Resolves when the process asks for its first event: it is initialised.
    pub(crate) async fn polled(&self) {
        self.shared.polled.notified().await;
    }

    /// Hands over an event and waits for the answer.
    pub(crate) async fn invoke(&self, event: &Value) -> Answer {
        // The stack's own ids may hold a slash, and these stand in a path.
        let id = hex::encode(runtime::random_bytes::<16>());
        let (sender, answer) = oneshot::channel();
        self.shared.answers().insert(id.clone(), sender);
        let gone = |_| "the process is gone".to_owned();
        self.events.send((id, event.to_string())).map_err(|error| error.to_string())?;
        match tokio::time::timeout(DEADLINE, answer).await {
            Ok(answer) => answer.map_err(gone)?,
            Err(_elapsed) => Err(format!("no answer within {DEADLINE:?}")),
        }
    }
}

impl Shared {
    fn answers(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, id: &str, answer: Answer) -> StatusCode {
        // Nobody may wait any more.
        let _ = self.answers().remove(id).map(|sender| sender.send(answer));
        StatusCode::ACCEPTED
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
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

async fn response(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.answered(&id, serde_json::from_slice(&body).map_err(|error| error.to_string()))
}

async fn error(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.answered(&id, Err(String::from_utf8_lossy(&body).into_owned()))
}

async fn init_error(body: Bytes) -> StatusCode {
    tracing::error!("a function did not start: {}", String::from_utf8_lossy(&body));
    StatusCode::ACCEPTED
}
