//! The log on stderr: a readable line for each request, attempt, fact and sweep, or with `json` the lines that
//! functions write in AWS.
//!
//! A readable line is made of the JSON line, so it holds nothing that the JSON line does not hold. An invocation with
//! nothing to count has no readable line: an idle stack is quiet.

use std::fmt::{self, Write as _};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use runtime::{Clock, SystemClock};
use serde_json::{Map, Value};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::clock::StackClock;

/// The option `--log` by default. `ingest` and `relay` name each fact and each outbox entry at `debug`.
pub(crate) const DEFAULT: &str = "info,ingest=debug,relay=debug";
/// The word in `--log` that selects JSON lines.
const JSON: &str = "json";
/// The level of JSON lines by default, as in AWS.
const JSON_LEVEL: &str = "info";

/// Members that a readable line shows before all others, or not at all.
const PLACED: [&str; 13] = [
    "_aws",
    "attempt",
    "attempt_ms",
    "duration_ms",
    "function",
    "level",
    "message",
    "next_attempt_at",
    "outcome",
    "result",
    "route",
    "status",
    "timestamp",
];
/// Counts that each invocation or attempt has.
const USUAL_COUNTS: [&str; 4] = ["calls", "deliveries", "invocations", "requests"];
/// The source of lines that no function wrote.
const OURSELVES: &str = "local-stack";
/// Width of the longest name of a function.
const NAME_WIDTH: usize = 17;

/// Parameters of ANSI escapes.
const DIM: &str = "2";
const RED: &str = "31";
const YELLOW: &str = "33";

/// The parts of the stack's state that the readable log depends on.
#[derive(Default)]
pub(crate) struct LogState {
    /// The stack's clock, once there is a stack.
    clock: OnceLock<Arc<StackClock>>,
    /// True while the stack seeds its demo. Only warnings and errors have a line meanwhile.
    is_seeding: AtomicBool,
}

impl LogState {
    /// Shows stack time from now on.
    pub(crate) fn show_time_of(&self, clock: &Arc<StackClock>) {
        self.clock.get_or_init(|| Arc::clone(clock));
    }

    /// Awaits the seeding of the demo, which leaves out the lines of its requests and facts.
    pub(crate) async fn quietly<T>(&self, seeding: impl Future<Output = T>) -> T {
        self.is_seeding.store(true, Ordering::Relaxed);
        let seeded = seeding.await;
        self.is_seeding.store(false, Ordering::Relaxed);
        seeded
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.get().map_or_else(|| SystemClock.now(), |clock| clock.now())
    }

    fn shows(&self, level: Level) -> bool {
        level <= Level::WARN || !self.is_seeding.load(Ordering::Relaxed)
    }
}

/// Starts the log that the option `--log` describes.
pub(crate) fn start(option: &str, state: &Arc<LogState>) -> Result<(), ParseError> {
    let (json, filters): (Vec<&str>, Vec<&str>) = option.split(',').partition(|part| *part == JSON);
    let filters = if filters.is_empty() { JSON_LEVEL.to_owned() } else { filters.join(",") };
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::try_new(filters)?).with_writer(std::io::stderr);
    if json.is_empty() {
        log.with_ansi(std::io::stderr().is_terminal()).event_format(ReadableLines(Arc::clone(state))).init();
    } else {
        log.event_format(JsonLines).init();
    }
    Ok(())
}

/// The lines of functions in AWS. Lines of the stack itself have the same form.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writeln!(writer, "{}", runtime::json_line(event))
    }
}

/// Lines for people, in stack time.
struct ReadableLines(Arc<LogState>);

impl<S, N> FormatEvent<S, N> for ReadableLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let line: Map<String, Value> =
            serde_json::from_str(&runtime::json_line(event)).map_err(|_not_json| fmt::Error)?;
        let (level, module) = (*event.metadata().level(), event.metadata().target());
        match Readable::of(&line, level, module).filter(|readable| self.0.shows(readable.level)) {
            Some(readable) => writeln!(writer, "{}", readable.render(self.0.now(), writer.has_ansi_escapes())),
            None => Ok(()),
        }
    }
}

/// The parts of a readable line.
struct Readable {
    level: Level,
    function: String,
    /// The request, attempt or message, with its outcome.
    what: String,
    ms: Option<f64>,
    /// All other members: ids, counts, reasons.
    members: String,
}

impl Readable {
    /// Reads a JSON line. `None`: an invocation with nothing to count.
    fn of(line: &Map<String, Value>, level: Level, module: &str) -> Option<Self> {
        let text = |name: &str| line.get(name).map(shown).unwrap_or_default();
        let mut members = String::new();
        let mut add = |name: &str, value: &str| write!(members, " {name}={value}").expect("a string takes text");
        let (what, is_failure, may_be_idle) = if line.contains_key("message") {
            (text("message"), false, false)
        } else if line.contains_key("route") {
            (format!("{} {}", text("route"), text("status")), text("status").starts_with('5'), false)
        } else if line.contains_key("attempt") {
            let next = line.get("next_attempt_at").map(|at| format!(", next at {}", shown(at))).unwrap_or_default();
            let what = format!("attempt {} {}: {}{next}", text("attempt"), text("outcome"), text("result"));
            (what, text("outcome") != "delivered", false)
        } else {
            ("finished".to_owned(), false, true)
        };
        let mut counted = false;
        for (name, value) in line.iter().filter(|(name, _)| !PLACED.contains(&name.as_str())) {
            let is_figure = value.is_number() && !line.contains_key("message");
            if is_figure && (value.as_f64() == Some(0.0) || is_usual(name)) {
                continue;
            }
            counted |= is_figure;
            add(name, &shown(value));
        }
        if may_be_idle && !counted {
            return None;
        }
        let level = if is_failure { level.min(Level::WARN) } else { level };
        if line.contains_key("message") && level <= Level::WARN {
            add("module", module);
        }
        let function = line.get("function").map_or_else(|| OURSELVES.to_owned(), shown);
        let ms = ["attempt_ms", "duration_ms"].into_iter().find_map(|name| line.get(name)?.as_f64());
        Some(Self { level, function, what, ms, members })
    }

    fn render(&self, now: DateTime<Utc>, colours: bool) -> String {
        let painted = |text: &str, colour: &str| match colours {
            true if !colour.is_empty() => format!("\x1b[{colour}m{text}\x1b[0m"),
            _ => text.to_owned(),
        };
        let tone = match self.level {
            Level::ERROR => RED,
            Level::WARN => YELLOW,
            _ => "",
        };
        let Self { level, function, what, ms, members } = self;
        let time = painted(&now.format("%F %T%.3f").to_string(), DIM);
        let what = painted(&format!("{level:5} {function:NAME_WIDTH$} {what}"), tone);
        let ms = ms.map(|ms| format!(" {ms:.0} ms")).unwrap_or_default();
        format!("{time} {what}{}", painted(&format!("{ms}{members}"), DIM))
    }
}

/// Returns true for a figure that a readable line leaves out: a measured one, and a count that each line has.
fn is_usual(figure: &str) -> bool {
    ["_ms", "_s", "_units"].iter().any(|unit| figure.ends_with(unit)) || USUAL_COUNTS.contains(&figure)
}

/// Returns a member as text. A list's elements are separated by commas.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(line: Value, level: Level, colours: bool) -> Option<String> {
        let now = "2026-11-27T13:33:20.123Z".parse().unwrap();
        let Value::Object(line) = line else { panic!("no object: {line}") };
        Readable::of(&line, level, "store::claim").map(|readable| readable.render(now, colours))
    }

    /// A line with the figures that each invocation has, and more members.
    fn metrics(more: Value) -> Value {
        let mut line = json!({
            "_aws": { "Timestamp": 1, "CloudWatchMetrics": [] },
            "calls": 3, "duration_ms": 12.4, "function": "sweep", "invocations": 1, "read_units": 0.5, "request_id": "r1",
        });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    }

    #[rstest::rstest]
    #[case(
        metrics(json!({ "route": "GET /v1/ping", "status": "503", "failed": 2, "event_id": "e1" })),
        "WARN  sweep             GET /v1/ping 503 12 ms event_id=e1 failed=2 request_id=r1"
    )]
    #[case(
        metrics(json!({ "attempt": "2", "outcome": "retrying", "result": "timed out", "next_attempt_at": "T", "attempt_ms": 15000 })),
        "WARN  sweep             attempt 2 retrying: timed out, next at T 15000 ms request_id=r1"
    )]
    #[case(
        metrics(json!({ "failed": 1, "lag_s": 3, "event_ids": ["a", "b"] })),
        "INFO  sweep             finished 12 ms event_ids=a,b failed=1 request_id=r1"
    )]
    fn a_line_has_its_outcome_its_duration_and_its_ids(#[case] line: Value, #[case] expected: &str) {
        assert_eq!(rendered(line, Level::INFO, false).unwrap(), format!("2026-11-27 13:33:20.123 {expected}"));
    }

    #[test]
    fn an_invocation_that_counted_nothing_has_no_line() {
        assert_eq!(rendered(metrics(json!({ "failed": 0, "lag_s": 7 })), Level::INFO, false), None);
    }

    #[test]
    fn a_message_has_its_fields_and_a_warning_its_module() {
        let line = json!({ "message": "a claim expires", "function": "ping", "error": "gone", "level": "WARN", "duration_ms": 3 });
        for (level, expected) in [
            (Level::WARN, "WARN  ping              a claim expires 3 ms error=gone module=store::claim"),
            (Level::DEBUG, "DEBUG ping              a claim expires 3 ms error=gone"),
        ] {
            let line = rendered(line.clone(), level, false).unwrap();
            assert_eq!(line, format!("2026-11-27 13:33:20.123 {expected}"));
        }
        let own = rendered(json!({ "message": "the clock is moving" }), Level::INFO, false).unwrap();
        assert!(own.ends_with("INFO  local-stack       the clock is moving"), "{own}");
    }

    #[test]
    fn a_terminal_shows_colours() {
        let line = rendered(json!({ "message": "broken", "id": "x" }), Level::ERROR, true).unwrap();
        let expected = "\u{1b}[2m2026-11-27 13:33:20.123\u{1b}[0m \u{1b}[31mERROR local-stack       broken\u{1b}[0m\
            \u{1b}[2m id=x module=store::claim\u{1b}[0m";
        assert_eq!(line, expected);
    }
}
