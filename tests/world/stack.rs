//! The process under test.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::caller::Addresses;

/// Longest start. A busy machine is slow; a stack that does not come up at all is not waited for.
const START_DEADLINE: Duration = Duration::from_secs(60);
const LOG_FILE: &str = "stack.log";
const DATA_DIR: &str = "data";
/// Lines of the log that a failed test shows.
const SHOWN_LINES: usize = 20;

/// Arguments of the test runner with which all tests run all the same.
const OF_A_WHOLE_RUN: [&str; 4] = ["-q", "--quiet", "--nocapture", "--show-output"];

/// Where the permissions that functions use are recorded: in a whole run alone, since the `policies` tests take what is not there for
/// unused. Its first line names the template.
static RECORDING: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let whole =
        |argument: String| OF_A_WHOLE_RUN.contains(&argument.as_str()) || argument.starts_with("--test-threads=");
    if !std::env::args().skip(1).all(whole) {
        return None;
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("permissions-used");
    let template = hex::encode(Sha256::digest(include_str!("../../template.yaml")));
    std::fs::write(&file, format!("template {template}\n")).unwrap();
    Some(file)
});

/// A stack. Killed when dropped, its directory with it.
pub(crate) struct Stack {
    child: Child,
    /// Takes what the stack prints over into its log.
    printing: Option<JoinHandle<()>>,
    dir: Option<TempDir>,
}

impl Stack {
    /// A stack in a directory of its own.
    pub(crate) async fn start(addresses: &Addresses) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), addresses).await
    }

    /// A stack on what an earlier one has stored. Ports are new ones.
    pub(crate) async fn start_in(dir: TempDir, addresses: &Addresses) -> Self {
        let log = File::options().create(true).append(true).open(dir.path().join(LOG_FILE)).unwrap();
        let printed_to = log.try_clone().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_stack-under-test"))
            .args(["--port", "0", "--aws-port", "0", "--no-demo", "--log", &log_filter(), "--data-dir"])
            .arg(dir.path().join(DATA_DIR))
            .args(RECORDING.iter().flat_map(|file| [OsStr::new("--record-permissions"), file.as_os_str()]))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let (tell, told) = oneshot::channel();
        let printed = child.stdout.take().unwrap();
        let printing = std::thread::spawn(move || keep(printed, printed_to, tell));
        let ready = tokio::time::timeout(START_DEADLINE, told).await.expect("the stack comes up in time");
        let stack = Self { child, printing: Some(printing), dir: Some(dir) };
        let Ok(ready) = ready else { panic!("the stack ended instead of coming up:\n{}", stack.log()) };
        let ready: Value = serde_json::from_str(&ready).unwrap();
        addresses.set(ready["base_url"].as_str().unwrap(), ready["aws_url"].as_str().unwrap());
        stack
    }

    /// Kills the process and hands over what it had stored.
    pub(crate) fn kill(&mut self) -> TempDir {
        self.end();
        self.dir.take().expect("a stack is killed once")
    }

    /// Kills the process; all that it has written.
    pub(crate) fn end(&mut self) -> String {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(printing) = self.printing.take() {
            printing.join().unwrap();
        }
        self.log()
    }

    /// Where it keeps what it stores.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.as_ref().expect("a killed stack is not asked").path().join(DATA_DIR)
    }

    /// The most memory that its process has had so far.
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// What it has written so far.
    pub(crate) fn log(&self) -> String {
        let Some(dir) = &self.dir else { return String::new() };
        std::fs::read_to_string(dir.path().join(LOG_FILE)).unwrap()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
            let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
            eprintln!("warnings and errors of the stack, the latest:\n{shown}");
        }
    }
}

/// Appends what a stack prints to its log, and tells what it prints when it is ready.
fn keep(printed: ChildStdout, mut log: File, ready: oneshot::Sender<String>) {
    let mut ready = Some(ready);
    for line in BufReader::new(printed).lines().map_while(Result::ok) {
        writeln!(log, "{line}").unwrap();
        if let Some(addresses) = line.strip_prefix("ready ")
            && let Some(ready) = ready.take()
        {
            // Who waits no longer is told nothing.
            let _ = ready.send(addresses.to_owned());
        }
    }
}

/// Everything that our own crates could log in production, at whatever level it is set to.
fn log_filter() -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let crates = ["functions", "lib"].into_iter().flat_map(|kind| std::fs::read_dir(format!("{root}/{kind}")).unwrap());
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap().replace('-', "_"));
    names.fold("info".to_owned(), |filter, name| format!("{filter},{name}=debug"))
}
