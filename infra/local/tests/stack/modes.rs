//! Tests of the mode: the functions have it, and a data directory keeps it.

use std::path::Path;

use axum::body::{Body, to_bytes};
use clap::Parser;
use http::Request;
use local_stack::linked;
use local_stack::options::Options;
use local_stack::running::{Running, StartError};
use tower::ServiceExt;

/// Starts a stack with the functions of production.
async fn start(options: &[&str]) -> Result<Running, StartError> {
    let common = ["local-stack", "--port", "0", "--aws-port", "0", "--no-demo"];
    Running::start(&Options::parse_from(common.iter().chain(options)), &linked::all()).await
}

/// Starts a stack of this mode on a data directory, and ends it. Returns the reason if the stack does not start.
async fn run_on(dir: &Path, mode: &str) -> Option<String> {
    match start(&["--data-dir", dir.to_str().unwrap(), "--mode", mode]).await {
        Ok(running) => {
            running.end().await;
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

#[track_caller]
fn assert_other_mode(refusal: Option<String>, kept: &str) {
    let line = refusal.unwrap();
    assert!(line.contains(&format!("is of mode {kept}, ")) && !line.contains('\n'), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_functions_have_the_mode_of_the_options() {
    for (options, is_sandbox) in [
        (&["--ephemeral"][..], false),
        (&["--ephemeral", "--mode", "test"], true),
        (&["--ephemeral", "--parameter", "Mode=test"], true),
    ] {
        let running = start(options).await.unwrap();
        let request = Request::get("/portal").body(Body::empty()).unwrap();
        let answer = running.router().oneshot(request).await.unwrap();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let page = String::from_utf8_lossy(&body);
        assert_eq!(page.contains("<title>Sandbox: "), is_sandbox, "{options:?}: {page}");
        running.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_keeps_its_mode() {
    for (kept, other) in [("live", "test"), ("test", "live")] {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            assert_eq!(run_on(dir.path(), kept).await, None);
            assert_other_mode(run_on(dir.path(), other).await, kept);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_from_before_there_were_modes_is_live() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run_on(dir.path(), "live").await, None);
    std::fs::remove_file(dir.path().join("mode")).unwrap();
    assert_other_mode(run_on(dir.path(), "test").await, "live");
    assert_eq!(run_on(dir.path(), "live").await, None);
}
