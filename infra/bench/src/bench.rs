//! The running stack, and the measurement of a kind of work on it.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use axum::body::Body;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use edge::routes::{Access, Route, Routed, find};
use http::{Method, Request};
use indicatif::{ProgressBar, ProgressStyle};
use local_aws::FaultPlan;
use local_stack::demo::facts::{Fact, Start, group};
use local_stack::demo::{self, CALENDAR_ID, COACH_ID, Demo};
use local_stack::options::Options;
use local_stack::running::Running;
use runtime::{BoxError, Clock};
use serde_json::{Value, json};

use crate::cost::Cost;
use crate::environments::{Handled, on_threads};

/// Time that each DynamoDB request takes longer than here: some latency of DynamoDB within its region.
const STORE_LATENCY_MS: u32 = 4;
/// Measured repeats of most work.
pub(crate) const REPEATS: usize = 200;
/// Repeats for each minute of the stack's clock. Limits on requests are by the minute, and 20 is the lowest.
const REPEATS_A_MINUTE: usize = 20;
const STYLE: &str = "[{bar:30}] {pos}/{len} {msg} ({elapsed})";

/// The outcome of a step.
pub(crate) type Done = Result<(), BoxError>;

/// A kind of work.
pub(crate) struct Work {
    pub(crate) name: String,
    /// The functions whose cost counts.
    pub(crate) functions: &'static [&'static str],
    /// Number of measured repeats, after a tenth as many unmeasured ones.
    pub(crate) repeats: usize,
}

/// A local stack with the demo workspace, and the figures so far.
pub(crate) struct Bench {
    pub(crate) running: Running,
    pub(crate) demo: Demo,
    journal: Receiver<Handled>,
    only: String,
    bar: ProgressBar,
    rows: RefCell<String>,
}

impl Bench {
    /// Starts the stack, to measure work whose name contains `only`. `rows` is the number of all kinds of work.
    pub(crate) async fn start(only: String, rows: usize) -> Result<Self, BoxError> {
        let bar = ProgressBar::new(u64::try_from(rows)?).with_style(ProgressStyle::with_template(STYLE)?);
        bar.enable_steady_tick(Duration::from_secs(1));
        let options = ["local-stack", "--port", "0", "--aws-port", "0", "--ephemeral"];
        let (handled, journal) = channel();
        let running = Running::start(&Options::parse_from(options), &on_threads(&handled)).await?;
        let demo = demo::load_or_create(&running).await?;
        let bench = Self { running, demo, journal, only, bar, rows: RefCell::default() };
        // Room for all repeats: clients without a limit, and a calendar that is always open.
        let mut workspace = bench.demo_fact("workspace", |_| true);
        workspace.1["plan"]["client_cap"] = Value::Null;
        let mut calendar = bench.demo_fact("records", |detail| detail["calendar_id"] == CALENDAR_ID);
        calendar.1["horizon_days"] = json!(60);
        for day in ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] {
            calendar.1["weekly"][day] = json!([["00:00", "24:00"]]);
        }
        bench.put_facts([workspace, calendar]).await?;
        let latency = FaultPlan { store_latency_ms: Some(STORE_LATENCY_MS), ..FaultPlan::default() };
        bench.running.stack.timeline.aws.faults().set(latency);
        Ok(bench)
    }

    /// Ends the stack and returns the rows of the table.
    pub(crate) async fn end(self) -> String {
        self.bar.finish_and_clear();
        self.running.end().await;
        self.rows.into_inner()
    }

    /// Measures work. `prepare` precedes each repeat, unmeasured.
    pub(crate) async fn measure(
        &self,
        work: Work,
        prepare: impl AsyncFn(usize) -> Done,
        run: impl AsyncFn(usize) -> Done,
    ) -> Done {
        let Work { name, functions, repeats } = work;
        self.bar.inc(1);
        self.bar.set_message(name.clone());
        if !name.contains(&self.only) {
            return Ok(());
        }
        let warm_up = repeats / 10;
        let mut cost = Cost::default();
        let timeline = &self.running.stack.timeline;
        for n in 0..warm_up + repeats {
            if n.is_multiple_of(REPEATS_A_MINUTE) {
                self.advance(TimeDelta::minutes(1)).await?;
            }
            prepare(n).await?;
            timeline.settle().await?;
            self.journal.try_iter().for_each(drop);
            run(n).await?;
            timeline.settle().await?;
            let handled = self.journal.try_iter().filter(|event| functions.contains(&event.function));
            let handled: Vec<Handled> = handled.collect();
            let mut finished = self.running.stack.history.latest(None, usize::MAX);
            finished.retain(|invocation| functions.contains(&invocation.function.as_str()));
            if handled.is_empty() || finished.len() < handled.len() {
                return Err(format!("{} of {} invocations are known", finished.len(), handled.len()).into());
            }
            if n >= warm_up {
                let latest = finished.into_iter().take(handled.len());
                cost.add(&handled, &latest.flat_map(|invocation| invocation.calls).collect::<Vec<_>>());
            }
        }
        self.bar.suspend(|| eprintln!("| {name} {cost}"));
        self.rows.borrow_mut().push_str(&format!("| {name} {cost}\n"));
        Ok(())
    }

    /// Sends a request with the credential of its route, and returns the body of a 2xx answer. `null` is no body.
    pub(crate) async fn call(&self, method: &Method, path: &str, body: &Value) -> Result<Value, BoxError> {
        let credential = match route(method, path)?.access {
            Access::Public => String::new(),
            Access::Partner(_) => self.demo.partner_key.clone(),
            Access::Crm(_) => self.demo.crm_key.clone(),
            Access::Events | Access::AnyKey | Access::Sandbox | Access::Assistant => self.demo.partner_key.clone(),
            Access::Session => self.running.stack.gateway.token(COACH_ID).unwrap_or_default(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {credential}"))
            .header("content-type", "application/json")
            .header("idempotency-key", random_id());
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        Ok(demo::call(self.running.router(), request.body(body)?).await?)
    }

    /// Returns a fact of the demo.
    pub(crate) fn demo_fact(&self, name: &str, is_wanted: fn(&Value) -> bool) -> Fact {
        let start = Start { now: self.now(), base_url: &self.running.stack.base_url, endpoint_id: "" };
        let found = group(name, start).into_iter().find(|(_, detail)| is_wanted(detail));
        found.expect("the demo has the fact")
    }

    /// Puts facts that happen now on the bus, and waits for them and their consequences.
    pub(crate) async fn put_facts(&self, facts: impl IntoIterator<Item = Fact>) -> Done {
        let facts = facts.into_iter().map(|(name, mut detail)| {
            detail["id"] = json!(random_id());
            detail["occurred_at"] = json!(self.now());
            (name, detail)
        });
        Ok(demo::put_facts(&self.running, facts.collect()).await?)
    }

    /// Advances the stack's clock with everything that becomes due.
    pub(crate) async fn advance(&self, by: TimeDelta) -> Done {
        Ok(self.running.stack.timeline.advance(by).await.map(drop)?)
    }

    /// Returns the stack's time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.running.stack.timeline.clock.now()
    }
}

/// Returns the route of a request.
pub(crate) fn route(method: &Method, path: &str) -> Result<&'static Route, BoxError> {
    match find(method, path.split('?').next().unwrap_or_default()) {
        Routed::Known(route) => Ok(route),
        unknown => Err(format!("{method} {path}: {unknown:?}").into()),
    }
}

fn random_id() -> String {
    format!("bench-{:032x}", u128::from_be_bytes(runtime::random_bytes()))
}
