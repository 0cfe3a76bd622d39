//! The function's process, started as Lambda starts it.

use std::process::Command;

/// A fatal error is in the log. All functions share `runtime::run`, so one of them is tested.
#[test]
fn an_error_at_the_start_is_one_line_of_the_log() {
    let ended = Command::new(env!("CARGO_BIN_EXE_ping")).env_clear().output().unwrap();
    assert!(!ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    let line: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&line["level"], &line["message"]), (&"ERROR".into(), &"the function cannot run".into()));
    assert_eq!(line["error"], "environment variable AWS_ACCESS_KEY_ID: is not set");
}
