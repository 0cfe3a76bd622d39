//! What each function environment calls while it handles one event: the log that tests count round trips and capacity
//! units in, and the signal that kills an environment after a commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;
use tokio::sync::watch;

/// More calls than this of one invocation are not kept.
const MAX_CALLS: usize = 4_096;

/// One call to AWS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// `UpdateItem`, `SendMessage`, ..
    pub operation: String,
    /// DynamoDB tables that the call names, each once.
    pub tables: Vec<String>,
    /// Read capacity that the answer reports. 0 where the request did not ask for the report.
    pub read_units: f64,
    /// Write capacity that the answer reports.
    pub write_units: f64,
    /// Microseconds since the invocation began.
    pub started_us: u64,
    /// Microseconds since the invocation began.
    pub ended_us: u64,
    /// HTTP status of the answer.
    pub status: u16,
}

/// The open invocations by environment.
#[derive(Debug, Clone, Default)]
pub struct CallLog(Arc<Mutex<HashMap<String, Open>>>);

#[derive(Debug)]
struct Open {
    began: Instant,
    calls: Vec<Call>,
    crash: watch::Sender<bool>,
}

/// One environment at work on one event. Dropping it closes the log as [`Invocation::finish`] does.
#[derive(Debug)]
pub struct Invocation {
    /// Fires when the environment has to die.
    pub crashed: CrashSignal,
    log: CallLog,
    environment: String,
}

/// Fires at most once in an invocation.
#[derive(Debug, Clone)]
pub struct CrashSignal(watch::Receiver<bool>);

/// What is known of a call before its answer.
#[derive(Debug)]
pub(crate) struct Started {
    environment: String,
    operation: String,
    tables: Vec<String>,
    at_us: u64,
}

/// What is known of a call from its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Units {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

impl CallLog {
    /// Opens an environment's log and crash signal for one invocation. An environment handles one event at a time: an
    /// invocation that is still open there loses its log.
    pub fn begin(&self, environment: &str) -> Invocation {
        let (crash, crashed) = watch::channel(false);
        let open = Open { began: Instant::now(), calls: Vec::new(), crash };
        self.lock().insert(environment.to_owned(), open);
        Invocation { crashed: CrashSignal(crashed), log: self.clone(), environment: environment.to_owned() }
    }

    /// A call begins. `None` outside of an invocation, such as while an environment starts; only otherwise are the tables that
    /// it names looked for.
    pub(crate) fn start(
        &self,
        environment: &str,
        operation: &str,
        tables: impl FnOnce() -> Vec<String>,
    ) -> Option<Started> {
        let at_us = elapsed_us(self.lock().get(environment)?.began);
        let (environment, operation) = (environment.to_owned(), operation.to_owned());
        Some(Started { environment, operation, tables: tables(), at_us })
    }

    /// Whether the environment is handling an event.
    pub(crate) fn is_open(&self, environment: &str) -> bool {
        self.lock().contains_key(environment)
    }

    /// A call has its answer.
    pub(crate) fn end(&self, started: Started, status: u16, units: Units) {
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

    /// Kills the environment. False when it is handling nothing.
    pub(crate) fn crash(&self, environment: &str) -> bool {
        self.lock().get(environment).is_some_and(|open| open.crash.send(true).is_ok())
    }

    /// Closes this very invocation, not a later one of the same environment.
    fn close(&self, environment: &str, crashed: &CrashSignal) -> Vec<Call> {
        let mut open = self.lock();
        if open.get(environment).is_some_and(|open| open.crash.subscribe().same_channel(&crashed.0)) {
            open.remove(environment).map(|open| open.calls).unwrap_or_default()
        } else {
            Vec::new()
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Invocation {
    /// Closes the log and hands it over, in the order in which the calls ended.
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
    /// Waits for the signal; for ever when it does not come.
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
