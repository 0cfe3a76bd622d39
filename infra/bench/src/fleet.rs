//! The functions of the local stack as processes. Each function environment is backed by a process of its program.
//! Usage is summed over all processes of a function, ended ones included.

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
use crate::process::{Mode, Process, Program, Timing};

/// All processes, and the mode and variables of the next ones.
#[derive(Clone)]
pub(crate) struct Fleet(Arc<FleetState>);

struct FleetState {
    binaries: PathBuf,
    /// Variables that override those of the stack.
    variables: Mutex<BTreeMap<String, String>>,
    mode: Mutex<Mode>,
    instances: Mutex<BTreeMap<&'static str, Vec<Arc<Instance>>>>,
    /// Usage of ended processes.
    ended: Mutex<BTreeMap<&'static str, Usage>>,
}

/// The resources that the processes of a function have used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) peak_memory_bytes: u64,
    pub(crate) starts: u32,
}

struct Instance {
    name: &'static str,
    variables: BTreeMap<String, String>,
    process: tokio::sync::Mutex<Option<Process>>,
    fleet: Fleet,
}

impl Fleet {
    /// Creates a fleet of the programs in a folder. A program has the name of its function's binary.
    pub(crate) fn new(binaries: &Path) -> Self {
        Self(Arc::new(FleetState {
            binaries: binaries.to_owned(),
            variables: Mutex::default(),
            mode: Mutex::default(),
            instances: Mutex::default(),
            ended: Mutex::default(),
        }))
    }

    /// Returns all of the product's functions for the local stack.
    pub(crate) fn functions(&self) -> Functions {
        linked::all().names().into_iter().fold(Functions::default(), |functions, name| {
            let fleet = self.clone();
            functions.with(name, move |environment: Environment| {
                let instance = fleet.instance(name, &environment);
                async move { Ok::<_, BoxError>(InstanceHandler(instance)) }
            })
        })
    }

    /// Sets the mode and the extra variables of processes that start from now on.
    pub(crate) fn run_as(&self, mode: Mode, variables: BTreeMap<String, String>) {
        *lock(&self.0.mode) = mode;
        *lock(&self.0.variables) = variables;
    }

    /// Returns the usage of a function's processes since the fleet was created.
    pub(crate) async fn usage(&self, name: &str) -> Usage {
        let mut usage = lock(&self.0.ended).get(name).copied().unwrap_or_default();
        for instance in self.instances(name) {
            if let Some(process) = &*instance.process.lock().await {
                usage.add(process);
            }
        }
        usage
    }

    /// Ends a function's processes. The next event starts a new one.
    pub(crate) async fn end(&self, name: &str) {
        for instance in self.instances(name) {
            instance.end().await;
        }
    }

    /// Ends all processes.
    pub(crate) async fn close(&self) {
        for name in linked::all().names() {
            self.end(name).await;
        }
    }

    /// Ends a function's processes, starts one and returns the time of its start.
    pub(crate) async fn restart(&self, name: &str) -> Result<Timing, BenchError> {
        self.end(name).await;
        let instances = self.instances(name);
        let instance = instances.last().ok_or_else(|| BenchError::new(format!("{name} has not run yet")))?;
        let process = instance.start().await?;
        let init = process.init;
        *instance.process.lock().await = Some(process);
        Ok(init)
    }

    fn instance(&self, name: &'static str, environment: &Environment) -> Arc<Instance> {
        let variables =
            environment.config().variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let instance = Instance { name, variables, process: tokio::sync::Mutex::default(), fleet: self.clone() };
        let instance = Arc::new(instance);
        lock(&self.0.instances).entry(name).or_default().push(Arc::clone(&instance));
        instance
    }

    fn instances(&self, name: &str) -> Vec<Arc<Instance>> {
        lock(&self.0.instances).get(name).cloned().unwrap_or_default()
    }
}

impl Usage {
    fn add(&mut self, process: &Process) {
        self.cpu += process.cpu();
        self.peak_memory_bytes = self.peak_memory_bytes.max(process.peak_memory_bytes());
        self.starts += 1;
    }
}

impl Instance {
    async fn start(&self) -> Result<Process, BenchError> {
        let mut variables = self.variables.clone();
        for (name, value) in &*lock(&self.fleet.0.variables) {
            // The path must still name the environment, by which the stack identifies the caller.
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
            lock(&self.fleet.0.ended).entry(self.name).or_default().add(&process);
        }
    }

    async fn handle(&self, event: Value) -> Result<Value, BoxError> {
        let mut process = self.process.lock().await;
        if process.is_none() {
            *process = Some(self.start().await?);
        }
        let process = process.as_ref().expect("the process was started");
        Ok(process.invoke(&event).await?)
    }
}

/// The handler that the stack holds for an instance. The stack drops idle environments, which ends their process.
struct InstanceHandler(Arc<Instance>);

impl Drop for InstanceHandler {
    fn drop(&mut self) {
        let instance = Arc::clone(&self.0);
        tokio::spawn(async move { instance.end().await });
    }
}

impl Handler for InstanceHandler {
    fn handle(&self, event: Value, _context: Context) -> BoxFuture<'_, Result<Value, BoxError>> {
        Box::pin(self.0.handle(event))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
