//! Function environments on threads of their own.
//!
//! As on Lambda, an environment is one thread and handles one event at a time. The thread's CPU time is that of the
//! function alone, since the stack, its stores and its receiver run on other threads.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use lambda_runtime::Context;
use local_stack::functions::{Functions, Handler};
use local_stack::linked;
use nix::time::{ClockId, clock_gettime};
use runtime::{BoxError, Environment};
use serde_json::Value;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// An event that a function has handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handled {
    pub(crate) function: &'static str,
    /// True for a request to the API.
    pub(crate) is_request: bool,
    /// Number of messages of a queue in the event.
    pub(crate) messages: usize,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// User and system time.
    pub(crate) cpu: Duration,
}

/// Returns all functions of the stack, with each environment on a thread of its own. Handled events go to `journal`.
pub(crate) fn on_threads(journal: &Sender<Handled>) -> Functions {
    let linked = linked::all();
    linked.names().into_iter().fold(Functions::default(), |functions, function| {
        let Some(start) = linked.find(function) else { return functions };
        let journal = journal.clone();
        functions.with(function, move |environment: Environment| {
            let (start, journal) = (Arc::clone(&start), journal.clone());
            async move {
                let executor = Builder::new_current_thread().enable_all().build()?;
                let thread = executor.handle().clone();
                let (end, ended) = oneshot::channel();
                thread::spawn(move || executor.block_on(ended));
                let handler = thread.spawn(start(environment)).await??.into();
                Ok::<_, BoxError>(OnThread { function, handler, journal, thread, _end: end })
            }
        })
    })
}

/// An environment on its thread.
struct OnThread {
    function: &'static str,
    handler: Arc<dyn Handler>,
    journal: Sender<Handled>,
    thread: Handle,
    /// The thread ends when this is dropped.
    _end: oneshot::Sender<()>,
}

impl Handler for OnThread {
    fn handle(&self, event: Value, context: Context) -> BoxFuture<'_, Result<Value, BoxError>> {
        let (function, handler, journal) = (self.function, Arc::clone(&self.handler), self.journal.clone());
        let answer = self.thread.spawn(async move {
            let is_request = event["routeKey"].is_string();
            let records = event["Records"].as_array().into_iter().flatten();
            let messages = records.filter(|record| record["eventSource"] == "aws:sqs").count();
            let (began, cpu_before) = (Instant::now(), thread_cpu());
            let answer = handler.handle(event, context).await;
            let (ended, cpu) = (Instant::now(), thread_cpu().saturating_sub(cpu_before));
            journal.send(Handled { function, is_request, messages, began, ended, cpu })?;
            answer
        });
        Box::pin(async move { answer.await? })
    }
}

/// Returns the user and system time of this thread so far.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
