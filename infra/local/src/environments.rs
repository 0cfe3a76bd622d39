//! Function environments, as AWS Lambda runs them.
//!
//! - An environment handles one event at a time, so an injected crash ends exactly one invocation. The pool starts more
//!   on demand.
//! - A crash fault, a panic or a time-out ends the environment and its invocation.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use lambda_runtime::Context;
use local_aws::Aws;
use runtime::{BoxError, Clock, Config, Environment};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::call_history::{CallHistory, Finished};
use crate::clock::StackClock;
use crate::functions::{Handler, Start};
use crate::request_id::request_id;
use crate::template::{ACCOUNT, REGION};

/// Maximum number of environments of one function; further invocations wait.
const MAX_ENVIRONMENTS: usize = 128;
/// Idle time after which the pool drops an environment.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for starting an environment, as on Lambda.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The dependencies that all pools share.
#[derive(Clone)]
pub struct PoolContext {
    /// The AWS endpoint's services.
    pub aws: Aws,
    /// Stack time.
    pub clock: Arc<StackClock>,
    /// The address of the AWS endpoint, such as `http://127.0.0.1:4566`.
    pub aws_url: String,
    /// The calls of finished invocations.
    pub history: Arc<CallHistory>,
}

/// The environments of one function.
pub struct Pool {
    name: String,
    start: Start,
    variables: BTreeMap<String, String>,
    timeout: Duration,
    shared: PoolContext,
    permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
    started: AtomicU64,
}

struct Idle {
    environment: StartedEnvironment,
    since: Instant,
}

struct StartedEnvironment {
    id: String,
    handler: Box<dyn Handler>,
}

/// The reason why an invocation has no response.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// The environment did not start.
    #[error("did not start: {0}")]
    Start(BoxError),
    /// The function returned an error. Its environment stays usable.
    #[error("{0}")]
    Failed(BoxError),
    /// The environment was killed by a fault.
    #[error("died")]
    Crashed,
    /// The function panicked.
    #[error("panicked")]
    Panicked,
    /// The function exceeded its time-out.
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
    /// The stack is shutting down.
    #[error("the stack is shutting down")]
    Ending,
}

impl Pool {
    /// Creates a pool without environments. `name` is the name of the function's binary.
    pub fn new(
        name: &str,
        start: Start,
        variables: BTreeMap<String, String>,
        timeout: Duration,
        shared: PoolContext,
    ) -> Self {
        Self {
            name: name.to_owned(),
            start,
            variables,
            timeout,
            shared,
            permits: Semaphore::new(MAX_ENVIRONMENTS),
            idle: Mutex::new(Vec::new()),
            started: AtomicU64::new(0),
        }
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Invokes the function with an event. `cause` is shown in the call history: a route, a queue or a schedule.
    ///
    /// As on Lambda, the invocation continues when the caller stops waiting.
    pub async fn invoke(self: &Arc<Self>, cause: &str, event: Value) -> Result<Value, InvokeError> {
        let pool = Arc::clone(self);
        let cause = cause.to_owned();
        tokio::spawn(async move {
            let answer = pool.run(&cause, event).await;
            if let Err(error) = &answer {
                tracing::warn!(function = pool.name, cause, "the invocation {error}");
            }
            answer
        })
        .await
        .unwrap_or(Err(InvokeError::Ending))
    }

    /// Drops environments that have been idle for `IDLE_TIMEOUT`.
    pub fn drop_idle(&self) {
        self.lock_idle().retain(|idle| idle.since.elapsed() < IDLE_TIMEOUT);
    }

    async fn run(&self, cause: &str, event: Value) -> Result<Value, InvokeError> {
        let _permit = self.permits.acquire().await.map_err(|_| InvokeError::Ending)?;
        let idle = self.lock_idle().pop();
        let environment = match idle {
            Some(idle) => idle.environment,
            None => self.start().await?,
        };
        self.shared.clock.step();
        let context = self.context();
        let request_id = event["requestContext"]["requestId"].as_str().unwrap_or(&context.request_id).to_owned();
        let started_us = self.shared.clock.now().timestamp_micros();
        let invocation = self.shared.aws.calls().begin(&environment.id);
        let answer = {
            let work = AssertUnwindSafe(environment.handler.handle(event, context)).catch_unwind();
            let crashed = invocation.crashed.clone();
            tokio::select! {
                biased;
                () = crashed.wait() => Err(InvokeError::Crashed),
                outcome = tokio::time::timeout(self.timeout, work) => match outcome {
                    Ok(Ok(Ok(answer))) => Ok(answer),
                    Ok(Ok(Err(error))) => Err(InvokeError::Failed(error)),
                    Ok(Err(_panic)) => Err(InvokeError::Panicked),
                    Err(_elapsed) => Err(InvokeError::TimedOut(self.timeout)),
                },
            }
        };
        self.shared.clock.step();
        let calls = invocation.finish();
        let function = self.name.clone();
        self.shared.history.add(Finished { request_id, function, route: cause.to_owned(), started_us, calls });
        if matches!(answer, Ok(_) | Err(InvokeError::Failed(_))) {
            self.lock_idle().push(Idle { environment, since: Instant::now() });
        }
        answer
    }

    async fn start(&self) -> Result<StartedEnvironment, InvokeError> {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", self.name);
        let mut variables = self.variables.clone();
        let endpoint = format!("{}/env/{id}", self.shared.aws_url);
        for (name, value) in [
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_LAMBDA_FUNCTION_NAME", &self.name),
            ("AWS_ENDPOINT_URL", &endpoint),
        ] {
            variables.insert(name.to_owned(), value.to_owned());
        }
        let environment =
            Environment::new(Config::from_vars(variables), Arc::clone(&self.shared.clock) as Arc<dyn Clock>)
                .map_err(|error| InvokeError::Start(error.into()))?;
        let starting = AssertUnwindSafe(async { (self.start)(environment).await }).catch_unwind();
        match tokio::time::timeout(START_TIMEOUT, starting).await {
            Ok(Ok(Ok(handler))) => Ok(StartedEnvironment { id, handler }),
            Ok(Ok(Err(error))) => Err(InvokeError::Start(error)),
            Ok(Err(_panic)) => Err(InvokeError::Panicked),
            Err(_elapsed) => Err(InvokeError::TimedOut(START_TIMEOUT)),
        }
    }

    fn context(&self) -> Context {
        let mut context = Context::default();
        context.request_id = request_id();
        context.invoked_function_arn = format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{}", self.name);
        let deadline = self.shared.clock.now() + self.timeout;
        context.deadline = u64::try_from(deadline.timestamp_millis()).unwrap_or(0);
        context
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
