//! The functions of the local stack as processes: the stack asks for an environment, and a program is started behind it. What a
//! function's processes have used is added up, also of those that are gone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use lambda_runtime::Context;
use local_stack::functions::{Functions, Handler};
use local_stack::linked;
use runtime::{BoxError, Environment};
use serde_json::Value;

use crate::error::BenchError;
use crate::process::{Mode, Process, Program, Spent};

/// All processes, and how the next ones are to be run.
#[derive(Clone)]
pub(crate) struct Fleet(Arc<Shared>);

struct Shared {
    binaries: PathBuf,
    /// Replaces what the stack says, by name.
    variables: Mutex<BTreeMap<String, String>>,
    mode: Mutex<Mode>,
    members: Mutex<BTreeMap<&'static str, Vec<Arc<Member>>>>,
    gone: Mutex<BTreeMap<&'static str, Used>>,
}

/// What the processes of a function have used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    pub(crate) peak_memory_bytes: u64,
    pub(crate) starts: u32,
}

struct Member {
    name: &'static str,
    variables: BTreeMap<String, String>,
    process: tokio::sync::Mutex<Option<Process>>,
    fleet: Fleet,
}

impl Fleet {
    /// Functions whose programs are in a folder, by the names of their binaries.
    pub(crate) fn new(binaries: &Path) -> Self {
        Self(Arc::new(Shared {
            binaries: binaries.to_owned(),
            variables: Mutex::default(),
            mode: Mutex::default(),
            members: Mutex::default(),
            gone: Mutex::default(),
        }))
    }

    /// All of the product's functions, as the local stack takes them.
    pub(crate) fn functions(&self) -> Functions {
        linked::all().names().into_iter().fold(Functions::default(), |functions, name| {
            let fleet = self.clone();
            functions.with(name, move |environment: Environment| {
                let member = fleet.member(name, &environment);
                async move { Ok::<_, BoxError>(Slot(member)) }
            })
        })
    }

    /// How processes are run that start from now on, and with which variables besides.
    pub(crate) fn run_as(&self, mode: Mode, variables: BTreeMap<String, String>) {
        *lock(&self.0.mode) = mode;
        *lock(&self.0.variables) = variables;
    }

    /// What a function's processes have used so far, counted from the beginning.
    pub(crate) async fn used(&self, name: &str) -> Used {
        let mut used = lock(&self.0.gone).get(name).copied().unwrap_or_default();
        for member in self.members(name) {
            if let Some(process) = &*member.process.lock().await {
                used.add(process);
            }
        }
        used
    }

    /// Ends a function's processes; the next event starts one.
    pub(crate) async fn end(&self, name: &str) {
        for member in self.members(name) {
            member.end().await;
        }
    }

    /// Ends all processes.
    pub(crate) async fn close(&self) {
        for name in linked::all().names() {
            self.end(name).await;
        }
    }

    /// Ends a function's processes and starts one. Says what the start took.
    pub(crate) async fn restart(&self, name: &str) -> Result<Spent, BenchError> {
        self.end(name).await;
        let members = self.members(name);
        let member = members.last().ok_or_else(|| BenchError::new(format!("{name} has not run yet")))?;
        let process = member.start().await?;
        let init = process.init;
        *member.process.lock().await = Some(process);
        Ok(init)
    }

    fn member(&self, name: &'static str, environment: &Environment) -> Arc<Member> {
        let variables =
            environment.config().variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let member = Member { name, variables, process: tokio::sync::Mutex::default(), fleet: self.clone() };
        let member = Arc::new(member);
        lock(&self.0.members).entry(name).or_default().push(Arc::clone(&member));
        member
    }

    fn members(&self, name: &str) -> Vec<Arc<Member>> {
        lock(&self.0.members).get(name).cloned().unwrap_or_default()
    }
}

impl Used {
    fn add(&mut self, process: &Process) {
        self.cpu += process.cpu();
        self.peak_memory_bytes = self.peak_memory_bytes.max(process.peak_memory_bytes());
        self.starts += 1;
    }
}

impl Member {
    async fn start(&self) -> Result<Process, BenchError> {
        let mut variables = self.variables.clone();
        for (name, value) in &*lock(&self.fleet.0.variables) {
            // The path names the environment, which is how the stack knows whose call it is.
            let value = match variables.get(name).and_then(|url| url.split_once("/env/")) {
                Some((_, environment)) if name == "AWS_ENDPOINT_URL" => format!("{value}/env/{environment}"),
                _ => value.clone(),
            };
            variables.insert(name.clone(), value);
        }
        let mode = lock(&self.fleet.0.mode).clone();
        let program = Program { path: self.fleet.0.binaries.join(self.name), arguments: Vec::new(), variables };
        Process::start(&program, &mode).await
    }

    async fn end(&self) {
        if let Some(process) = self.process.lock().await.take() {
            lock(&self.fleet.0.gone).entry(self.name).or_default().add(&process);
        }
    }

    async fn handle(&self, event: Value) -> Result<Value, BoxError> {
        let mut process = self.process.lock().await;
        if process.is_none() {
            *process = Some(self.start().await?);
        }
        let process = process.as_ref().expect("it was started");
        Ok(process.invoke(&event).await?)
    }
}

/// What the stack holds of a member. The stack lets environments go that are idle for a while; the process then ends too.
struct Slot(Arc<Member>);

impl Drop for Slot {
    fn drop(&mut self) {
        let member = Arc::clone(&self.0);
        tokio::spawn(async move { member.end().await });
    }
}

impl Handler for Slot {
    fn handle(&self, event: Value, _context: Context) -> BoxFuture<'_, Result<Value, BoxError>> {
        Box::pin(self.0.handle(event))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
