//! The log of calls that a function environment makes during an invocation, and the signal that kills an environment.
//!
//! Tests count round trips and capacity units in the log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;
use tokio::sync::watch;

/// Maximum number of calls that are kept for one invocation.
const MAX_CALLS: usize = 4_096;

/// One call to AWS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// The operation, such as `UpdateItem` or `SendMessage`.
    pub operation: String,
    /// The DynamoDB tables in the request, without duplicates.
    pub tables: Vec<String>,
    /// Read capacity units in the response. 0 when the request did not ask for them.
    pub read_units: f64,
    /// Write capacity units in the response.
    pub write_units: f64,
    /// Start of the call, in microseconds since the invocation began.
    pub started_us: u64,
    /// End of the call, in microseconds since the invocation began.
    pub ended_us: u64,
    /// HTTP status of the response.
    pub status: u16,
}

/// The open invocations by environment.
#[derive(Debug, Clone, Default)]
pub struct CallLog(Arc<Mutex<HashMap<String, OpenLog>>>);

#[derive(Debug)]
struct OpenLog {
    began: Instant,
    calls: Vec<Call>,
    crash: watch::Sender<bool>,
}

/// One environment handling one event. Dropping it closes the log, as [`Invocation::finish`] does.
#[derive(Debug)]
pub struct Invocation {
    /// Fires when the environment must die.
    pub crashed: CrashSignal,
    log: CallLog,
    environment: String,
}

/// A signal that fires at most once in an invocation.
#[derive(Debug, Clone)]
pub struct CrashSignal(watch::Receiver<bool>);

/// A call that has no response yet.
#[derive(Debug)]
pub(crate) struct StartedCall {
    environment: String,
    operation: String,
    tables: Vec<String>,
    at_us: u64,
}

/// The capacity units that a response reports.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Units {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

impl CallLog {
    /// Opens an environment's log and crash signal for one invocation. It replaces an invocation that is still open,
    /// since an environment handles one event at a time.
    pub fn begin(&self, environment: &str) -> Invocation {
        let (crash, crashed) = watch::channel(false);
        let open = OpenLog { began: Instant::now(), calls: Vec::new(), crash };
        self.lock().insert(environment.to_owned(), open);
        Invocation { crashed: CrashSignal(crashed), log: self.clone(), environment: environment.to_owned() }
    }

    /// Records the start of a call. Returns `None` outside of an invocation, such as during an environment's start.
    /// `tables` is called only within an invocation.
    pub(crate) fn start(
        &self,
        environment: &str,
        operation: &str,
        tables: impl FnOnce() -> Vec<String>,
    ) -> Option<StartedCall> {
        let at_us = elapsed_us(self.lock().get(environment)?.began);
        let (environment, operation) = (environment.to_owned(), operation.to_owned());
        Some(StartedCall { environment, operation, tables: tables(), at_us })
    }

    /// Returns true while the environment handles an event.
    pub(crate) fn is_open(&self, environment: &str) -> bool {
        self.lock().contains_key(environment)
    }

    /// Records the end of a call.
    pub(crate) fn end(&self, started: StartedCall, status: u16, units: Units) {
        if let Some(open) = self.lock().get_mut(&started.environment)
            && open.calls.len() < MAX_CALLS
        {
            open.calls.push(Call {
                operation: started.operation,
                tables: started.tables,
                read_units: units.read,
                write_units: units.write,
                started_us: started.at_us,
                ended_us: elapsed_us(open.began),
                status,
            });
        }
    }

    /// Kills the environment. Returns false when it handles no event.
    pub(crate) fn crash(&self, environment: &str) -> bool {
        self.lock().get(environment).is_some_and(|open| open.crash.send(true).is_ok())
    }

    /// Closes this invocation, but not a later one of the same environment.
    fn close(&self, environment: &str, crashed: &CrashSignal) -> Vec<Call> {
        let mut open = self.lock();
        if open.get(environment).is_some_and(|open| open.crash.subscribe().same_channel(&crashed.0)) {
            open.remove(environment).map(|open| open.calls).unwrap_or_default()
        } else {
            Vec::new()
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OpenLog>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Invocation {
    /// Closes the log and returns the calls in the order in which they ended.
    pub fn finish(self) -> Vec<Call> {
        self.log.close(&self.environment, &self.crashed)
    }
}

impl Drop for Invocation {
    fn drop(&mut self) {
        self.log.close(&self.environment, &self.crashed);
    }
}

impl CrashSignal {
    /// Waits for the signal, forever if it does not fire.
    pub async fn wait(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|crashed| *crashed).await.is_err() {
            std::future::pending().await
        }
    }
}

fn elapsed_us(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
