//! The event that a function is handling: its metrics line, and the ids that all other log lines of that time carry.
//!
//! Work on an event is a future within [`Observer::request`] or [`Observer::event`]. Code inside adds to the event's
//! line through a task-local, so no handle is passed along. A function environment handles one event at a time and our
//! functions spawn no tasks, so all work inside the future belongs to its event.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};

use crate::clock::Clock;
use crate::metric::{Line, Metric, TARGET, Unit};

/// One for each HTTP request; `route` and `status` are texts of the line.
const REQUESTS: Metric = Metric::logged("requests", Unit::Count);
/// One for each other event.
const INVOCATIONS: Metric = Metric::logged("invocations", Unit::Count);
const DURATION_MS: Metric = Metric::logged("duration_ms", Unit::Milliseconds);
/// The event's calls to DynamoDB, and their consumption.
const CALLS: Metric = Metric::logged("calls", Unit::Count);
const READ_UNITS: Metric = Metric::logged("read_units", Unit::None);
const WRITE_UNITS: Metric = Metric::logged("write_units", Unit::None);

tokio::task_local! {
    static CURRENT: Invocation;
}

/// Writes a line for each event that a function handles.
#[derive(Clone)]
pub struct Observer {
    function: Arc<str>,
    clock: Arc<dyn Clock>,
}

struct Invocation {
    observer: Observer,
    request_id: String,
    line: RefCell<Line>,
}

impl Observer {
    pub(crate) fn new(function: &str, clock: Arc<dyn Clock>) -> Self {
        Self { function: function.into(), clock }
    }

    /// Handles an HTTP request. The work sets the line's `route` and `status`.
    pub fn request<T>(&self, request_id: &str, work: impl Future<Output = T>) -> impl Future<Output = T> {
        self.observe(request_id, REQUESTS, Box::pin(work))
    }

    /// Handles any other event.
    pub fn event<T>(&self, request_id: &str, work: impl Future<Output = T>) -> impl Future<Output = T> {
        self.observe(request_id, INVOCATIONS, Box::pin(work))
    }

    /// Runs work on an event and writes the event's line. The work is pinned: it is large, and every future around it
    /// would contain a copy.
    async fn observe<T>(&self, request_id: &str, count: Metric, work: Pin<Box<impl Future<Output = T>>>) -> T {
        let began = Instant::now();
        // An event without calls to DynamoDB reports zeros.
        let mut line = Line::default();
        for consumed in [CALLS, READ_UNITS, WRITE_UNITS] {
            line.add(consumed, 0.0);
        }
        let invocation =
            Invocation { observer: self.clone(), request_id: request_id.to_owned(), line: RefCell::new(line) };
        let observed = async {
            let done = work.await;
            let elapsed_us = u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX);
            add(count, 1.0);
            add(DURATION_MS, f64::from(elapsed_us) / 1000.0);
            CURRENT.with(|current| current.write(&current.line.take()));
            done
        };
        CURRENT.scope(invocation, observed).await
    }
}

impl Invocation {
    fn write(&self, line: &Line) {
        let at_ms = self.observer.clock.now().timestamp_millis();
        let line = line.render(&self.observer.function, &self.request_id, at_ms);
        tracing::info!(target: TARGET, line = line.as_str());
    }
}

/// Sets a text of the current event's line. Does nothing outside an event.
pub fn note(name: &'static str, text: impl Into<String>) {
    with_line(|line| line.set(name, text));
}

/// A text of the current event's line. `None`: it is not set, or there is no event.
pub fn noted(name: &str) -> Option<String> {
    let read = CURRENT.try_with(|current| current.line.borrow().text(name).map(str::to_owned));
    read.ok().flatten()
}

/// Adds a text to a list in the current event's line.
pub fn note_each(name: &'static str, text: &str) {
    with_line(|line| line.list(name, text));
}

/// Adds a value of a metric to the current event's line.
pub fn add(metric: Metric, value: f64) {
    with_line(|line| line.add(metric, value));
}

/// Adds a call to DynamoDB, and the capacity units that it consumed.
pub fn add_call(read_units: f64, write_units: f64) {
    with_line(|line| {
        for (metric, value) in [(CALLS, 1.0), (READ_UNITS, read_units), (WRITE_UNITS, write_units)] {
            line.add(metric, value);
        }
    });
}

/// Writes an additional line, for a part of the event that has its own dimensions.
pub fn write_line(line: &Line) {
    let _ = CURRENT.try_with(|current| current.write(line));
}

fn with_line(change: impl FnOnce(&mut Line)) {
    let _ = CURRENT.try_with(|current| change(&mut current.line.borrow_mut()));
}

/// The fields of the current event that every log line carries.
pub(crate) struct EventContext {
    pub(crate) now: DateTime<Utc>,
    pub(crate) function: Arc<str>,
    pub(crate) request_id: String,
    pub(crate) coach_id: Option<String>,
}

/// The context of the current event. `None` outside an event.
pub(crate) fn event_context() -> Option<EventContext> {
    let read = CURRENT.try_with(|current| EventContext {
        now: current.observer.clock.now(),
        function: Arc::clone(&current.observer.function),
        request_id: current.request_id.clone(),
        // Borrowed only while the line is changed, and nothing logs then.
        coach_id: current.line.try_borrow().ok().and_then(|line| line.text("coach_id").map(str::to_owned)),
    });
    read.ok()
}
