//! The running stack, and the measurement of a kind of work on it.

use std::cell::RefCell;
use std::time::Duration;

use axum::body::Body;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use http::{Method, Request};
use indicatif::{ProgressBar, ProgressStyle};
use local_aws::{Call, FaultPlan};
use local_stack::demo::facts::Fact;
use local_stack::demo::{self, COACH_ID, Demo};
use local_stack::options::Options;
use local_stack::stack::Running;
use runtime::{BoxError, Clock};
use serde_json::{Value, json};

use crate::cost::Cost;
use crate::environments::Journal;

/// Time that each DynamoDB request takes longer than here: some latency of DynamoDB within its region.
const STORE_LATENCY_MS: u32 = 4;
/// Repeats for each minute of the stack's clock. Limits on requests are by the minute, and 20 is the lowest.
const REPEATS_A_MINUTE: usize = 20;
const STYLE: &str = "[{bar:30}] {pos}/{len} {msg} ({elapsed})";

/// A kind of work.
pub(crate) struct Work {
    pub(crate) name: String,
    /// The functions whose cost counts.
    pub(crate) functions: &'static [&'static str],
    /// Number of measured repeats, after a tenth as many unmeasured ones.
    pub(crate) repeats: usize,
}

/// A local stack with the demo workspace, without a limit on clients.
pub(crate) struct Bench {
    running: Running,
    pub(crate) demo: Demo,
    journal: Journal,
    only: String,
    bar: ProgressBar,
    rows: RefCell<Vec<Cost>>,
}

impl Bench {
    /// Starts the stack, to measure work whose name contains `only`. `rows` is the number of all kinds of work.
    pub(crate) async fn start(only: String, rows: usize) -> Result<Self, BoxError> {
        let bar = ProgressBar::new(u64::try_from(rows)?).with_style(ProgressStyle::with_template(STYLE)?);
        bar.enable_steady_tick(Duration::from_secs(1));
        let options = ["local-stack", "--port", "0", "--aws-port", "0", "--ephemeral"];
        let journal = Journal::default();
        let running = Running::start(&Options::parse_from(options), &journal.functions()).await?;
        let demo = demo::load_or_create(&running).await?;
        let bench = Self { running, demo, journal, only, bar, rows: RefCell::default() };
        let (name, mut workspace) = demo::facts::workspace(bench.now(), bench.base_url());
        workspace["plan"]["client_cap"] = Value::Null;
        bench.put_facts(vec![bench.fact(name, workspace)]).await?;
        Ok(bench)
    }

    /// Ends the stack and returns the figures.
    pub(crate) async fn end(self) -> Vec<Cost> {
        self.bar.finish_and_clear();
        self.running.end().await;
        self.rows.into_inner()
    }

    /// Measures work.
    pub(crate) async fn measure(
        &self,
        work: Work,
        run: impl AsyncFn(usize) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        self.measure_prepared(work, async |_| Ok(()), run).await
    }

    /// Measures work. `prepare` precedes each repeat, unmeasured.
    pub(crate) async fn measure_prepared(
        &self,
        work: Work,
        prepare: impl AsyncFn(usize) -> Result<(), BoxError>,
        run: impl AsyncFn(usize) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        self.bar.inc(1);
        if !work.name.contains(&self.only) {
            return Ok(());
        }
        self.bar.set_message(work.name.clone());
        let Work { functions, repeats, .. } = work;
        let warm_up = repeats / 10;
        let mut cost = Cost::new(work);
        for n in 0..warm_up + repeats {
            if n.is_multiple_of(REPEATS_A_MINUTE) {
                self.advance(TimeDelta::minutes(1)).await?;
            }
            prepare(n).await?;
            self.settle().await?;
            self.journal.take();
            self.set_store_latency(STORE_LATENCY_MS);
            run(n).await?;
            self.settle().await?;
            self.set_store_latency(0);
            let mut handled = self.journal.take();
            handled.retain(|handled| functions.contains(&handled.function));
            let calls = self.latest_calls(functions, handled.len())?;
            if n >= warm_up {
                cost.add(&handled, &calls);
            }
        }
        self.bar.suspend(|| eprintln!("{cost}"));
        self.rows.borrow_mut().push(cost);
        Ok(())
    }

    /// Returns the calls of the functions' latest invocations.
    fn latest_calls(&self, functions: &[&str], invocations: usize) -> Result<Vec<Call>, BoxError> {
        let mut finished = self.running.stack.history.latest(None, usize::MAX);
        finished.retain(|one| functions.contains(&one.function.as_str()));
        if invocations == 0 || finished.len() < invocations {
            return Err(format!("{invocations} invocations, of which {} are in the history", finished.len()).into());
        }
        Ok(finished.into_iter().take(invocations).flat_map(|one| one.calls).collect())
    }

    fn set_store_latency(&self, ms: u32) {
        let plan = FaultPlan { store_latency_ms: Some(ms), ..FaultPlan::default() };
        self.running.stack.timeline.aws.faults().set(plan);
    }

    /// Sends a request to the API and expects a 2xx answer. `null` is no body.
    pub(crate) async fn call(
        &self,
        method: &Method,
        path: &str,
        bearer: &str,
        body: &Value,
    ) -> Result<Value, BoxError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {bearer}"))
            .header("content-type", "application/json")
            .header("idempotency-key", random_id());
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        Ok(demo::call(self.running.router(), request.body(body)?).await?)
    }

    /// Calls the settings API as the demo's coach.
    pub(crate) async fn settings(&self, method: &Method, path: &str, body: &Value) -> Result<Value, BoxError> {
        self.call(method, path, &self.session(), body).await
    }

    /// Returns a session token of the demo's coach.
    pub(crate) fn session(&self) -> String {
        self.running.stack.gateway.token(COACH_ID).unwrap_or_default()
    }

    /// Builds a fact that happens now.
    pub(crate) fn fact(&self, name: &'static str, mut detail: Value) -> Fact {
        detail["id"] = json!(random_id());
        detail["occurred_at"] = json!(self.now());
        (name, detail)
    }

    /// Puts facts on the bus, and waits for them and their consequences.
    pub(crate) async fn put_facts(&self, facts: Vec<Fact>) -> Result<(), BoxError> {
        Ok(demo::put_facts(&self.running, facts).await?)
    }

    /// Advances the stack's clock with everything that becomes due.
    pub(crate) async fn advance(&self, by: TimeDelta) -> Result<(), BoxError> {
        self.running.stack.timeline.advance(by).await?;
        Ok(())
    }

    async fn settle(&self) -> Result<(), BoxError> {
        Ok(self.running.stack.timeline.settle().await?)
    }

    /// Returns the stack's time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.running.stack.timeline.clock.now()
    }

    /// Returns the address of the API.
    pub(crate) fn base_url(&self) -> &str {
        &self.running.stack.base_url
    }
}

fn random_id() -> String {
    format!("bench-{:032x}", u128::from_be_bytes(runtime::random_bytes()))
}
