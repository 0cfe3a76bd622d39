//! The running stack: it assembles what the template declares, serves it, and shuts it down in order.

use std::fmt::Display;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn;
use axum::serve::ListenerExt;
use domain::mode::Mode;
use local_aws::{Aws, DataDir};
use runtime::Clock;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::advance::Timeline;
use crate::call_history::CallHistory;
use crate::clock::{ClockError, StackClock};
use crate::control;
use crate::environments::{Pool, PoolContext};
use crate::functions::Functions;
use crate::gateway::{Gateway, SigningKey};
use crate::loopback;
use crate::mappings::{SqsMapping, StreamMapping};
use crate::options::{InvalidMode, Options};
use crate::permissions;
use crate::receiver::Receiver;
use crate::schedule::Schedules;
use crate::stack::Stack;
use crate::state_dir::StateDir;
use crate::template::{STACK_NAME, Template, TemplateError, Trigger};
use crate::template_file;
use crate::work::Work;

const SIGNING_KEY_FILE: &str = "signing-key";
const PORTS_FILE: &str = "ports.json";
const MODE_FILE: &str = "mode";
/// Time for running requests and invocations to finish at shutdown.
const GRACE: Duration = Duration::from_secs(3);
/// Functions that may send webhooks to this machine, which production never allows.
const LOOPBACK_SENDERS: [&str; 2] = ["deliver", "settings"];

/// The reason why a stack does not start, as one line for the user.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port cannot be bound.
    #[error("port {port} of 127.0.0.1 cannot be used: {reason}; choose another with {option}")]
    Port {
        /// The port.
        port: u16,
        /// The system's error.
        reason: String,
        /// The option that chooses another port.
        option: &'static str,
    },
    /// The options name no mode, or two.
    #[error("{0}")]
    Mode(#[from] InvalidMode),
    /// The data directory is of a stack of the other mode.
    #[error(
        "the data directory {dir} is of mode {kept}, and this stack would be of mode {mode}: name another with \
         --data-dir, or start with --mode {kept}"
    )]
    OtherMode {
        /// The directory.
        dir: String,
        /// The directory's mode.
        kept: &'static str,
        /// The mode of the options.
        mode: &'static str,
    },
    /// The data directory cannot be used.
    #[error("{0}")]
    DataDir(#[from] local_aws::OpenError),
    /// A file in the data directory cannot be used.
    #[error("cannot use {file} in the data directory: {reason}")]
    State {
        /// The file's name.
        file: &'static str,
        /// The error.
        reason: String,
    },
    /// The clock's offset cannot be used.
    #[error("{0}")]
    Clock(#[from] ClockError),
    /// The local stack does not support the template.
    #[error("{0}")]
    Template(#[from] TemplateError),
    /// A resource cannot be created.
    #[error("{0}")]
    Setup(#[from] local_aws::SetupError),
    /// The template names a function that is not linked in.
    #[error("template.yaml {resource}: there is no function {binary}; linked in are {linked}")]
    NoSuchFunction {
        /// The function's logical id.
        resource: String,
        /// The binary that the template names.
        binary: String,
        /// The binaries that are linked in.
        linked: String,
    },
}

/// A running stack with its servers and pollers.
pub struct Running {
    /// The stack itself.
    pub stack: Arc<Stack>,
    /// The port of the API.
    pub port: u16,
    /// The port of the AWS endpoint.
    pub aws_port: u16,
    /// The mode of the stack.
    pub mode: Mode,
    router: Router,
    ending: watch::Sender<bool>,
    server: JoinHandle<io::Result<()>>,
    aws_ending: watch::Sender<bool>,
    aws_server: JoinHandle<io::Result<()>>,
    pollers: Vec<JoinHandle<()>>,
}

impl Running {
    /// Starts the stack that the options and the template describe.
    pub async fn start(options: &Options, functions: &Functions) -> Result<Self, StartError> {
        let mode = options.stack_mode()?;
        let (listener, port) = listen(options.port, "--port").await?;
        let (aws_listener, aws_port) = listen(options.aws_port, "--aws-port").await?;
        let base_url = format!("http://127.0.0.1:{port}");
        let aws_url = format!("http://127.0.0.1:{aws_port}");
        let state = StateDir::new(options.data_dir(mode));
        let mut template = template_file::load(mode, &base_url, &aws_url, &options.parameters)?;

        check_mode(&state, mode)?;
        let clock = Arc::new(StackClock::load(state.path(), options.slow_clock)?);
        let dir = state.path().map_or(DataDir::Ephemeral, |path| DataDir::Persistent(path.to_owned()));
        let aws = Aws::open(&dir, Arc::clone(&clock) as Arc<dyn Clock>).await?;
        aws.sqs().set_port(aws_port);
        state.write(MODE_FILE, mode.as_str()).map_err(|error| state_error(MODE_FILE, error))?;
        if let Some(path) = state.path() {
            clock.persist_in(path)?;
        }
        if let Some(file) = &options.record_permissions {
            aws.access().record_to(file)?;
        }
        set_up(&aws, &mut template).await?;

        // The endpoint serves before functions start, since they may call it during their start.
        let (ending, aws_ending) = (watch::Sender::new(false), watch::Sender::new(false));
        let aws_server = serve(aws_listener, aws.router().layer(from_fn(loopback::guard)), &aws_ending);
        let parts = Parts { aws, clock, state, base_url, aws_url, port };
        let (stack, pollers) = assemble(&template, functions, parts)?;
        let router = router(Arc::clone(&stack));
        let server = serve(listener, router.clone(), &ending);
        Ok(Self { stack, port, aws_port, mode, router, ending, server, aws_ending, aws_server, pollers })
    }

    /// Returns the router of the API and `/_local`, for calls from within the process.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Marks the stack as ready and writes its ports to the data directory.
    pub fn set_ready(&self) -> Result<(), StartError> {
        let ports = json!({ "port": self.port, "aws_port": self.aws_port, "pid": std::process::id() });
        let written = self.stack.state.write(PORTS_FILE, &ports.to_string());
        written.map_err(|error| state_error(PORTS_FILE, error))?;
        self.stack.set_ready();
        Ok(())
    }

    /// Shuts down in order: stops accepting requests, waits up to `GRACE` for running work, then closes the stores.
    pub async fn end(self) {
        self.stack.state.remove(PORTS_FILE);
        self.ending.send_replace(true);
        self.pollers.iter().for_each(JoinHandle::abort);
        let finished = async {
            let mut activity = self.stack.timeline.work.watch();
            // An error means that the counter is gone, and no invocation runs.
            let _ = activity.wait_for(|activity| activity.running == 0).await;
            if let Ok(Err(error)) = self.server.await {
                tracing::warn!(%error, "the server ended with an error");
            }
        };
        if tokio::time::timeout(GRACE, finished).await.is_err() {
            tracing::warn!("some requests or invocations were cut short");
        }
        tracing::debug!("requests and invocations are done");
        // The endpoint ends last, since functions call it until now.
        self.aws_ending.send_replace(true);
        self.stack.timeline.aws.close().await;
        self.aws_server.abort();
        tracing::debug!("the stores are closed");
    }
}

async fn listen(port: u16, option: &'static str) -> Result<(TcpListener, u16), StartError> {
    let refused = |error: io::Error| {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => "it is in use".to_owned(),
            _ => error.to_string(),
        };
        StartError::Port { port, reason, option }
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(refused)?;
    let port = listener.local_addr().map_err(refused)?.port();
    Ok((listener, port))
}

fn state_error(file: &'static str, reason: impl Display) -> StartError {
    StartError::State { file, reason: reason.to_string() }
}

/// Refuses a data directory of the other mode. A directory that was in use before it had a mode is live.
fn check_mode(state: &StateDir, mode: Mode) -> Result<(), StartError> {
    let read = |file| state.read(file).map_err(|error| state_error(file, error));
    let kept = match read(MODE_FILE)? {
        Some(text) => Mode::parse(text.trim()).map_err(|rule| state_error(MODE_FILE, rule))?,
        None if read(SIGNING_KEY_FILE)?.is_some() => Mode::Live,
        None => mode,
    };
    if kept == mode {
        return Ok(());
    }
    let dir = state.path().map_or_else(String::new, |path| path.display().to_string());
    Err(StartError::OtherMode { dir, kept: kept.as_str(), mode: mode.as_str() })
}

/// Creates the template's resources that do not exist yet, and sets all permissions.
async fn set_up(aws: &Aws, template: &mut Template) -> Result<(), StartError> {
    for queue in template.queues()? {
        aws.sqs().add_queue(&queue)?;
    }
    for bus in template.buses() {
        aws.bus().add_bus(&bus);
    }
    for rule in template.rules()? {
        aws.bus().add_rule(&rule)?;
    }
    for (logical_id, secret) in template.secrets()? {
        let arn = aws.secrets().ensure(&logical_id, &secret).await?;
        template.set_secret_arn(&logical_id, arn);
    }
    for table in template.tables()? {
        aws.dynamodb().ensure_table(&table).await?;
    }
    aws.cloudformation().set_stack(STACK_NAME, template.stack_resources());
    permissions::grant(aws.access(), template)?;
    Ok(())
}

struct Parts {
    aws: Aws,
    clock: Arc<StackClock>,
    state: StateDir,
    base_url: String,
    aws_url: String,
    port: u16,
}

/// Assembles functions, routes, mappings and schedules.
fn assemble(
    template: &Template,
    functions: &Functions,
    parts: Parts,
) -> Result<(Arc<Stack>, Vec<JoinHandle<()>>), StartError> {
    let Parts { aws, clock, state, base_url, aws_url, port } = parts;
    let stack_clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let history = Arc::new(CallHistory::default());
    let pool_context = PoolContext {
        aws: aws.clone(),
        clock: Arc::clone(&clock),
        aws_url: aws_url.clone(),
        history: Arc::clone(&history),
    };
    let api = template.api()?.ok_or_else(|| TemplateError::new("has no HTTP API"))?;
    let mut gateway = Gateway::new(api, signing_key(&state)?, Arc::clone(&stack_clock), port);
    let work = Work::default();
    let (mut schedules, mut pools, mut queues, mut streams) =
        (Schedules::default(), Vec::new(), Vec::new(), Vec::new());
    for function in template.functions()? {
        let start = functions.find(&function.binary).ok_or_else(|| StartError::NoSuchFunction {
            resource: function.logical_id.clone(),
            binary: function.binary.clone(),
            linked: functions.names().join(", "),
        })?;
        let mut variables = function.variables;
        if LOOPBACK_SENDERS.contains(&function.binary.as_str()) {
            variables.insert("ALLOW_LOOPBACK_RECEIVERS".to_owned(), "true".to_owned());
        }
        let pool = Arc::new(Pool::new(&function.binary, start, variables, function.timeout, pool_context.clone()));
        for (name, trigger) in function.triggers {
            let (pool, aws, work) = (Arc::clone(&pool), aws.clone(), work.clone());
            match trigger {
                Trigger::Http(route) => gateway.add(&route, pool)?,
                Trigger::Sqs(source) => {
                    queues.push(Arc::new(SqsMapping { source, pool, aws, work }));
                }
                Trigger::Stream(source) => {
                    streams.push(Arc::new(StreamMapping::new(&name, source, pool, aws, work)?));
                }
                Trigger::Schedule(source) => schedules.add(&name, &source, pool, clock.now())?,
            }
        }
        pools.push(pool);
    }
    let readers = streams.iter().map(|stream| stream.reader().clone()).collect();
    let timeline = Timeline { clock, aws, schedules, work, readers, pools, advancing: Mutex::new(()) };
    let receiver = Arc::new(Receiver::new(stack_clock));
    let ready = AtomicBool::new(false);
    let stack = Arc::new(Stack { timeline, gateway, receiver, history, base_url, aws_url, state, ready });
    let mut pollers: Vec<JoinHandle<()>> = Vec::new();
    pollers.extend(queues.into_iter().map(|queue| tokio::spawn(queue.run())));
    pollers.extend(streams.into_iter().map(|stream| tokio::spawn(stream.run())));
    let timed = Arc::clone(&stack);
    pollers.push(tokio::spawn(async move { timed.timeline.run().await }));
    Ok((stack, pollers))
}

/// Loads or creates the key that signs settings tokens. It is stored, so that a token outlives a restart.
fn signing_key(state: &StateDir) -> Result<SigningKey, StartError> {
    if let Some(text) = state.read(SIGNING_KEY_FILE).map_err(|error| state_error(SIGNING_KEY_FILE, error))? {
        return SigningKey::decode(&text).ok_or_else(|| state_error(SIGNING_KEY_FILE, "it holds no key"));
    }
    let key = SigningKey::generate();
    state.write(SIGNING_KEY_FILE, &key.encode()).map_err(|error| state_error(SIGNING_KEY_FILE, error))?;
    Ok(key)
}

/// Routes `/_local` to the control routes and everything else to the gateway.
fn router(stack: Arc<Stack>) -> Router {
    let gateway = Arc::clone(&stack);
    control::router(stack).fallback(move |request: Request| {
        let stack = Arc::clone(&gateway);
        async move { stack.gateway.serve(request).await }
    })
}

fn serve(listener: TcpListener, router: Router, ending: &watch::Sender<bool>) -> JoinHandle<io::Result<()>> {
    let mut ending = ending.subscribe();
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
    });
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        // An error means that the sender was dropped, which ends the server too.
        let _ = ending.wait_for(|ending| *ending).await;
    });
    tokio::spawn(server.into_future())
}
