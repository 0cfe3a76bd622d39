//! The process under test.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::caller::Addresses;

/// Longest start. A busy machine is slow; a stack that does not come up at all is not waited for.
const START_DEADLINE: Duration = Duration::from_secs(60);
const LOG_FILE: &str = "stack.log";
const DATA_DIR: &str = "data";
/// Lines of the log that a failed test shows.
const SHOWN_LINES: usize = 20;

/// A stack. Killed when dropped, its directory with it.
pub(crate) struct Stack {
    child: Child,
    /// Held open: the stack prints to it.
    _stdout: Lines<BufReader<ChildStdout>>,
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
        let mut child = Command::new(env!("CARGO_BIN_EXE_stack-under-test"))
            .args(["--port", "0", "--aws-port", "0", "--no-demo", "--log", "info", "--data-dir"])
            .arg(dir.path().join(DATA_DIR))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reading = tokio::task::spawn_blocking(move || {
            let ready =
                lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
            (ready, lines)
        });
        let (ready, lines) =
            tokio::time::timeout(START_DEADLINE, reading).await.expect("the stack comes up in time").unwrap();
        let stack = Self { child, _stdout: lines, dir: Some(dir) };
        let Some(ready) = ready else { panic!("the stack ended instead of coming up:\n{}", stack.log()) };
        let ready: Value = serde_json::from_str(&ready).unwrap();
        addresses.set(ready["base_url"].as_str().unwrap(), ready["aws_url"].as_str().unwrap());
        stack
    }

    /// Kills the process and hands over what it had stored.
    pub(crate) fn kill(&mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.dir.take().expect("a stack is killed once")
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

    /// What it has written to its standard error so far.
    pub(crate) fn log(&self) -> String {
        let Some(dir) = &self.dir else { return String::new() };
        std::fs::read_to_string(dir.path().join(LOG_FILE)).unwrap()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
            let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
            eprintln!("warnings and errors of the stack, the latest:\n{shown}");
        }
    }
}
