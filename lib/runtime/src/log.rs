//! The log: one JSON object per line on standard output, where AWS Lambda collects it.
//!
//! A metrics line is the tracing event's field `line`, unchanged. Every other line carries the function, the request id
//! and the coach of the event that is being handled.

use std::fmt::{self, Write as _};

use chrono::SecondsFormat;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use crate::Config;
use crate::clock::{Clock, SystemClock};
use crate::invocation::{EventContext, event_context};
use crate::metric;

/// The crates of this workspace that functions link. `LOG_LEVEL` applies to them. All other crates log warnings and
/// errors.
pub const OUR_CRATES: [&str; 27] = [
    "client_records",
    "clients",
    "crm_bookings",
    "crm_contacts",
    "crm_opportunities",
    "crm_workflows",
    "deliver",
    "docs",
    "domain",
    "edge",
    "evaluation",
    "events",
    "facts",
    "ingest",
    "login_links",
    "mcp",
    "outbound",
    "ping",
    "portal",
    "relay",
    "runtime",
    "sandbox",
    "settings",
    "store",
    "sweep",
    "webhook",
    "wipe",
];

/// Starts logging for the process. `LOG_LEVEL` is `error`, `warn`, `info` or `debug`; the default is `info`. Metrics
/// are written at any level.
pub(crate) fn log_json(config: &Config) {
    let level = config.find("LOG_LEVEL").and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::INFO);
    // A process that has a subscriber keeps it.
    let _ = tracing::subscriber::set_global_default(lines_to(std::io::stdout, level));
}

/// A subscriber that writes lines to this writer.
fn lines_to<W>(writer: W, level: LevelFilter) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_targets(OUR_CRATES.map(|name| (name, level)))
        .with_target(metric::TARGET, LevelFilter::INFO);
    tracing_subscriber::registry().with(layer().event_format(Lines).with_writer(writer)).with(filter)
}

/// Renders an error with its source chain on one line. An error's own text stops at the first cause.
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The format of the log lines.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writeln!(writer, "{}", json_line(event))
    }
}

/// The JSON line of a tracing event, without the line break. For a host that runs several functions in one process and
/// writes their lines beside its own.
pub fn json_line(event: &Event<'_>) -> String {
    line_of(event, event_context().as_ref())
}

fn line_of(event: &Event<'_>, context: Option<&EventContext>) -> String {
    if event.metadata().target() == metric::TARGET {
        let mut line = WholeLine::default();
        event.record(&mut line);
        return line.0;
    }
    let now = context.map_or_else(|| SystemClock.now(), |context| context.now);
    let mut line = format!("{{\"timestamp\":{}", json!(now.to_rfc3339_opts(SecondsFormat::Millis, true)));
    member(&mut line, "level", event.metadata().level().as_str());
    event.record(&mut Fields(&mut line));
    if let Some(EventContext { function, request_id, coach_id, .. }) = context {
        member(&mut line, "function", &**function);
        member(&mut line, "request_id", request_id.as_str());
        // A tracing event's own `coach_id` takes precedence.
        if let Some(coach_id) = coach_id.as_ref().filter(|_| event.metadata().fields().field("coach_id").is_none()) {
            member(&mut line, "coach_id", coach_id.as_str());
        }
    }
    line.push('}');
    line
}

fn member(line: &mut String, name: &str, value: impl Into<Value>) {
    write!(line, ",\"{name}\":{}", value.into()).expect("a string takes text");
}

/// Collects the field `line` of a metrics event.
#[derive(Default)]
struct WholeLine(String);

impl Visit for WholeLine {
    fn record_str(&mut self, _: &Field, value: &str) {
        value.clone_into(&mut self.0);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// Appends an event's fields as members of a JSON object.
struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        member(self.0, field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        member(self.0, field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        member(self.0, field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        member(self.0, field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        member(self.0, field.name(), format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{Line, Metric, Unit};
    use crate::{Environment, add, add_call, note, write_line};
    use std::sync::{Arc, Mutex};

    async fn collected<T>(level: LevelFilter, work: impl Future<Output = T>) -> Vec<String> {
        let (lines, writer) = std::io::pipe().unwrap();
        let guard = tracing::subscriber::set_default(lines_to(Mutex::new(writer), level));
        work.await;
        drop(guard);
        std::io::read_to_string(lines).unwrap().lines().map(str::to_owned).collect()
    }

    fn environment() -> Environment {
        let variables = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_LAMBDA_FUNCTION_NAME"];
        let config = Config::from_vars(variables.map(|name| (name.to_owned(), "ping".to_owned())));
        Environment::new(config, Arc::new(SystemClock)).unwrap()
    }

    fn logs() {
        tracing::error!(target: "hyper", "from below");
        tracing::info!(target: "aws_smithy_runtime::client", "from below");
        tracing::info!(target: "store::db", count = 3, yes = true, %LINE, "from us: {}", 1);
        tracing::debug!(target: "edge", "from us");
    }

    const LINE: &str = "a \"b\"";

    #[tokio::test]
    async fn the_level_applies_to_our_crates_and_others_log_warnings_and_errors() {
        for (level, count) in
            [(LevelFilter::ERROR, 1), (LevelFilter::WARN, 1), (LevelFilter::INFO, 2), (LevelFilter::DEBUG, 3)]
        {
            assert_eq!(collected(level, async { logs() }).await.len(), count, "{level}");
        }
    }

    #[tokio::test]
    async fn lines_within_an_event_carry_its_ids_and_its_own_line_comes_last_at_any_level() {
        let env = environment();
        let observer = env.observer();
        let work = observer.request("req-1", async {
            tracing::error!(target: "store", code = 7, "nobody is known yet");
            note("coach_id", "ada");
            tracing::error!(target: "store", code = 7, said = ?"x", "somebody is");
            tracing::error!(target: "store", coach_id = "bob", "somebody else is meant");
            add_call(0.5, 0.0);
            add_call(0.0, 2.0);
            let mut line = Line::default();
            line.add(Metric::new("part", Unit::Seconds), 1.5);
            write_line(&line);
            add(Metric::new("lag_s", Unit::Seconds), 4.0);
            note("route", "GET /v1/ping");
            note("status", "200");
        });
        let lines = collected(LevelFilter::ERROR, work).await;
        let after_time = |line: &str| line.split_once("Z\",").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        assert_eq!(
            lines[..3].iter().map(|line| after_time(line)).collect::<Vec<_>>(),
            [
                r#""level":"ERROR","message":"nobody is known yet","code":7,"function":"ping","request_id":"req-1"}"#,
                r#""level":"ERROR","message":"somebody is","code":7,"said":"\"x\"","function":"ping","request_id":"req-1","coach_id":"ada"}"#,
                r#""level":"ERROR","message":"somebody else is meant","coach_id":"bob","function":"ping","request_id":"req-1"}"#,
            ]
        );
        let beside: Value = serde_json::from_str(&lines[3]).unwrap();
        assert_eq!(
            (&beside["function"], &beside["request_id"], &beside["part"]),
            (&json!("ping"), &json!("req-1"), &json!(1.5))
        );
        let own: Value = serde_json::from_str(&lines[4]).unwrap();
        let expected = json!({
            "coach_id": "ada", "route": "GET /v1/ping", "status": "200", "lag_s": 4, "requests": 1, "calls": 2,
            "read_units": 0.5, "write_units": 2,
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(own[name], *value, "{name}");
        }
        assert_eq!(lines.len(), 5);
        assert!(collected(LevelFilter::DEBUG, async { note("coach_id", "nobody's") }).await.is_empty());
    }
}
