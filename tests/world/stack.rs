//! The process under test.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::caller::Addresses;

/// Longest start-up, generous because the machine may be busy.
const START_DEADLINE: Duration = Duration::from_secs(60);
const LOG_FILE: &str = "stack.log";
const DATA_DIR: &str = "data";
/// File in which a stack keeps the lead of its clock, in milliseconds.
const CLOCK_FILE: &str = "clock";
/// Number of log lines that a failed test shows.
const SHOWN_LINES: usize = 20;

/// Arguments of the test runner that do not filter tests.
const FULL_RUN_ARGUMENTS: [&str; 4] = ["-q", "--quiet", "--nocapture", "--show-output"];

/// File of the permissions that functions and roles use, written in full runs only: the `policies` tests count missing
/// entries as unused. Its first line holds the digest of template.yaml.
static RECORDING: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let is_full_run =
        |argument: String| FULL_RUN_ARGUMENTS.contains(&argument.as_str()) || argument.starts_with("--test-threads=");
    if !std::env::args().skip(1).all(is_full_run) {
        return None;
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("permissions-used");
    let template = hex::encode(Sha256::digest(include_str!("../../template.yaml")));
    std::fs::write(&file, format!("template {template}\n")).unwrap();
    Some(file)
});

/// A stack. Dropping it kills the process and deletes its directory.
pub(crate) struct Stack {
    child: Child,
    /// Thread that copies the stack's output into its log.
    log_writer: Option<JoinHandle<()>>,
    dir: Option<TempDir>,
}

impl Stack {
    /// Starts a stack in a directory of its own.
    pub(crate) async fn start(addresses: &Addresses, options: &[String]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), addresses, options).await
    }

    /// Starts a stack on an earlier one's data, with new ports.
    pub(crate) async fn start_in(dir: TempDir, addresses: &Addresses, options: &[String]) -> Self {
        let log = File::options().create(true).append(true).open(dir.path().join(LOG_FILE)).unwrap();
        let printed_to = log.try_clone().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_stack-under-test"))
            .args(["--port", "0", "--aws-port", "0", "--no-demo"])
            .args(options)
            .arg("--data-dir")
            .arg(dir.path().join(DATA_DIR))
            .args(RECORDING.iter().flat_map(|file| [OsStr::new("--record-permissions"), file.as_os_str()]))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let (ready_sender, ready) = oneshot::channel();
        let printed = child.stdout.take().unwrap();
        let log_writer = std::thread::spawn(move || copy_to_log(printed, printed_to, ready_sender));
        let ready = tokio::time::timeout(START_DEADLINE, ready).await.expect("the stack comes up in time");
        let stack = Self { child, log_writer: Some(log_writer), dir: Some(dir) };
        let Ok(ready) = ready else { panic!("the stack ended instead of coming up:\n{}", stack.log()) };
        let ready: Value = serde_json::from_str(&ready).unwrap();
        addresses.set(ready["base_url"].as_str().unwrap(), ready["aws_url"].as_str().unwrap());
        stack
    }

    /// Kills the process and returns its data directory.
    pub(crate) fn kill(&mut self) -> TempDir {
        self.stop();
        self.dir.take().expect("a stack is killed once")
    }

    /// Kills the process and returns its log.
    pub(crate) fn stop(&mut self) -> String {
        // The process may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(log_writer) = self.log_writer.take() {
            log_writer.join().unwrap();
        }
        self.log()
    }

    /// Directory of the stack's stored data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.as_ref().expect("a killed stack is not asked").path().join(DATA_DIR)
    }

    /// Peak memory of the process so far.
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        let Some(dir) = &self.dir else { return String::new() };
        std::fs::read_to_string(dir.path().join(LOG_FILE)).unwrap()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
            let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
            eprintln!("warnings and errors of the stack, the latest:\n{shown}");
        }
    }
}

/// Advances the clock of a stack that does not run.
pub(crate) fn advance_clock(dir: &TempDir, time: TimeDelta) {
    let clock = dir.path().join(DATA_DIR).join(CLOCK_FILE);
    let ahead_ms: i64 = std::fs::read_to_string(&clock).unwrap().trim().parse().unwrap();
    std::fs::write(clock, format!("{:20}\n", ahead_ms + time.num_milliseconds())).unwrap();
}

/// Copies a stack's output to its log and sends the addresses of its "ready" line.
fn copy_to_log(printed: ChildStdout, mut log: File, ready: oneshot::Sender<String>) {
    let mut ready = Some(ready);
    for line in BufReader::new(printed).lines().map_while(Result::ok) {
        writeln!(log, "{line}").unwrap();
        if let Some(addresses) = line.strip_prefix("ready ")
            && let Some(ready) = ready.take()
        {
            // The receiver is gone if the start has timed out.
            let _ = ready.send(addresses.to_owned());
        }
    }
}

/// Options of a stack unless a test is about one of them.
pub(crate) fn usual() -> Vec<String> {
    json_log().into_iter().chain(slow_clock()).collect()
}

/// The options, with the mode that `SUITE_MODE` gives the suite unless a test chooses one: with `SUITE_MODE=test` all
/// worlds are sandboxes. Tests about prefixes of keys, sent mails and assertions fail then.
#[expect(clippy::disallowed_methods, reason = "the tests have no `runtime::Config`")]
pub(crate) fn in_the_suites_mode(options: &[String]) -> Vec<String> {
    let has_mode = options.iter().any(|option| option.starts_with("Mode="));
    let mode = std::env::var("SUITE_MODE").ok().filter(|_| !has_mode);
    let added = mode.map(|mode| ["--mode".to_owned(), mode]);
    options.iter().cloned().chain(added.into_iter().flatten()).collect()
}

/// Options for a clock on which no retry becomes due while a busy machine works on the step before.
pub(crate) fn slow_clock() -> [String; 2] {
    ["--slow-clock", "1000"].map(str::to_owned)
}

/// Options for the lines of functions in AWS, with everything that our crates can log in production at any level.
pub(crate) fn json_log() -> [String; 2] {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let crates = ["functions", "lib"].into_iter().flat_map(|kind| std::fs::read_dir(format!("{root}/{kind}")).unwrap());
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap().replace('-', "_"));
    ["--log".to_owned(), names.fold("json,info".to_owned(), |filter, name| format!("{filter},{name}=debug"))]
}
