//! A function's process, and the resources that it uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use serde_json::Value;

use crate::error::{BenchError, context};
use crate::runtime_api::{InvocationResult, RuntimeApi};

/// Time limit of a start, which is slow under callgrind.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// Interval between checks whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The way in which a process is run.
#[derive(Debug, Clone, Default)]
pub(crate) enum Mode {
    /// Directly.
    #[default]
    Plain,
    /// Under callgrind, which writes its counts to this file when the process ends.
    Counted(PathBuf),
}

/// A program with its arguments and environment variables.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: BTreeMap<String, String>,
}

/// A running function.
pub(crate) struct Process {
    api: RuntimeApi,
    child: Child,
    is_counted: bool,
    /// The time from the start of the process to its first poll for an event.
    pub(crate) init: Timing,
}

/// Wall-clock and CPU time of a measured step.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    pub(crate) wall: Duration,
    /// User and system time of all threads, ended ones included.
    pub(crate) cpu: Duration,
}

impl Process {
    /// Starts a function and waits until it polls for an event.
    pub(crate) async fn start(program: &Program, mode: &Mode) -> Result<Self, BenchError> {
        let api = RuntimeApi::start().await.map_err(context("listen"))?;
        let mut command = match mode {
            Mode::Plain => Command::new(&program.path),
            Mode::Counted(file) => {
                let mut command = Command::new("valgrind");
                command.args(["--tool=callgrind", "--quiet"]);
                command.arg(format!("--callgrind-out-file={}", file.display())).arg(&program.path);
                command
            }
        };
        command.args(&program.arguments).env_clear().envs(&program.variables);
        command.env("AWS_LAMBDA_RUNTIME_API", &api.address).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        for (name, value) in [
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "bench"),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "bench"),
        ] {
            command.env(name, value);
        }
        let started = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(context(&program.path))?;
        let is_counted = matches!(mode, Mode::Counted(_));
        let mut process = Self { api, child, is_counted, init: Timing::default() };
        if tokio::time::timeout(START_DEADLINE, process.api.polled()).await.is_err() {
            return Err(BenchError::new(format!("{} did not start", program.path.display())));
        }
        process.init = Timing { wall: started.elapsed(), cpu: process.cpu() };
        Ok(process)
    }

    /// Sends an event and waits for the response.
    pub(crate) async fn invoke(&self, event: &Value) -> InvocationResult {
        tokio::select! {
            answer = self.api.invoke(event) => answer,
            () = self.exited() => Err("the process has ended".to_owned()),
        }
    }

    async fn exited(&self) {
        let stat = format!("/proc/{}/stat", self.child.id());
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the CPU time used so far, or zero for an ended process.
    pub(crate) fn cpu(&self) -> Duration {
        let clock = clock_getcpuclockid(self.pid()).and_then(|clock| clock.now());
        clock.map(Duration::from).unwrap_or_default()
    }

    /// Returns the peak memory so far in bytes. 0 under callgrind, which uses most of the memory itself.
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        if self.is_counted {
            return 0;
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kb.unwrap_or_default() * 1024
    }

    /// Ends the process and waits for its exit, at which callgrind writes its file.
    pub(crate) fn end(&mut self) {
        // The process may have ended by itself.
        let _ = kill(self.pid(), Signal::SIGTERM);
        let _ = self.child.wait();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads the instruction count from callgrind's file.
pub(crate) fn instructions(file: &Path) -> Result<u64, BenchError> {
    let text = std::fs::read_to_string(file).map_err(context(file))?;
    let mut counts = text.lines().filter_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    counts
        .next_back()
        .and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| BenchError::new("callgrind wrote no total"))
}
