//! Function environments on threads of their own.
//!
//! As on Lambda, an environment is one thread and handles one event at a time. The thread's CPU time is that of the
//! function alone, since the stack, its stores and its receiver run on other threads.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use lambda_runtime::Context;
use local_stack::functions::{Functions, Handler, Start};
use local_stack::linked;
use nix::time::{ClockId, clock_gettime};
use runtime::{BoxError, Environment};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// An event that a function has handled.
#[derive(Debug)]
pub(crate) struct Handled {
    pub(crate) function: &'static str,
    pub(crate) cause: Cause,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// User and system time of the environment's thread since the event before.
    pub(crate) cpu: Duration,
}

/// The cause of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A request to the API.
    Request,
    /// A batch of messages, and their number.
    Messages(usize),
    /// A stream or a schedule.
    Other,
}

impl Cause {
    fn of(event: &Value) -> Self {
        let records = event["Records"].as_array().map(Vec::as_slice).unwrap_or_default();
        match records.first() {
            Some(record) if record["eventSource"] == "aws:sqs" => Self::Messages(records.len()),
            None if !event["routeKey"].is_null() => Self::Request,
            _ => Self::Other,
        }
    }
}

/// The events that all functions have handled.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<Handled>>>);

impl Journal {
    /// Returns the events since the last call.
    pub(crate) fn take(&self) -> Vec<Handled> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns all functions of the stack, with each environment on a thread of its own.
    pub(crate) fn functions(&self) -> Functions {
        let linked = linked::all();
        linked.names().into_iter().fold(Functions::default(), |functions, name| {
            let Some(start) = linked.find(name) else { return functions };
            let journal = self.clone();
            functions.with(name, move |environment| spawn(name, start.clone(), environment, journal.clone()))
        })
    }

    fn add(&self, handled: Handled) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(handled);
    }
}

/// An event on its way to the thread, with the channel for the function's answer.
type Sent = (Value, Context, oneshot::Sender<Result<Value, BoxError>>);

/// An environment on its thread. The thread ends when this value is dropped.
struct OnThread(mpsc::UnboundedSender<Sent>);

impl Handler for OnThread {
    fn handle(&self, event: Value, context: Context) -> BoxFuture<'_, Result<Value, BoxError>> {
        let (answer, answered) = oneshot::channel();
        // A thread that has ended drops `answer`, which the function's caller sees.
        let _ = self.0.send((event, context, answer));
        Box::pin(async move { answered.await? })
    }
}

async fn spawn(
    name: &'static str,
    start: Start,
    environment: Environment,
    journal: Journal,
) -> Result<OnThread, BoxError> {
    let (events, sent) = mpsc::unbounded_channel();
    let (started, has_started) = oneshot::channel();
    let executor = async move {
        match start(environment).await {
            Ok(handler) => {
                // The pool may have given up on the start.
                let _ = started.send(Ok(()));
                serve(name, &*handler, sent, &journal).await;
            }
            Err(error) => {
                let _ = started.send(Err(error));
            }
        }
    };
    // As `runtime::run` does in a process, the thread runs the function as a spawned task.
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { tokio::spawn(executor).await }).map_err(std::io::Error::other)
    })?;
    has_started.await??;
    Ok(OnThread(events))
}

async fn serve(
    function: &'static str,
    handler: &dyn Handler,
    mut sent: mpsc::UnboundedReceiver<Sent>,
    journal: &Journal,
) {
    let mut used = thread_cpu();
    while let Some((event, context, answer)) = sent.recv().await {
        let cause = Cause::of(&event);
        let began = Instant::now();
        let result = handler.handle(event, context).await;
        let (ended, now_used) = (Instant::now(), thread_cpu());
        journal.add(Handled { function, cause, began, ended, cpu: now_used.saturating_sub(used) });
        used = now_used;
        // The pool does not wait for an invocation that timed out.
        let _ = answer.send(result);
    }
}

/// Returns the user and system time of this thread so far.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
