//! The operators' command, as a person types it.

mod acts;
mod client;
mod dead;
mod export;
mod feed;
mod guides;
mod incidents;
mod looks;
mod usage;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::Notify;

use crate::world::World;

/// The access key id of a caller with all permissions.
const DEVELOPER: &str = "developer";
/// The managed policies of the template, as access key ids of the local stack.
const READER: &str = "OperatorReadPolicy";
const ACTOR: &str = "OperatorReadPolicy+OperatorActPolicy";

/// A run of the command that has ended.
#[derive(Debug)]
struct Ran {
    /// The exit code.
    code: i32,
    stdout: String,
    stderr: String,
    /// The object on stdout. Null: there is none.
    json: Value,
}

impl Ran {
    /// The answer of a run that succeeded.
    #[track_caller]
    fn expect(self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        self.json
    }

    /// The text of a failure, with this exit code and `code`, in one line.
    #[track_caller]
    fn refused(self, exit: i32, code: &str) -> String {
        assert_eq!((self.code, self.json["code"].as_str()), (exit, Some(code)), "{self:?}");
        let error = self.json["error"].as_str().unwrap().to_owned();
        assert!(!error.contains('\n') && self.stdout.lines().count() == 1, "{self:?}");
        error
    }
}

/// Runs the command against a world's stack, with `--json` and the least policies.
async fn operate(world: &World, arguments: &[&str]) -> Ran {
    let acts = arguments.contains(&"--reason");
    operate_as(world, if acts { ACTOR } else { READER }, arguments).await
}

/// The same with an access key id.
async fn operate_as(world: &World, access_key: &str, arguments: &[&str]) -> Ran {
    run(&world.aws_url(), access_key, arguments, "").await
}

/// The same, with an answer at the terminal.
async fn answered(world: &World, arguments: &[&str], answer: &str) -> Ran {
    run(&world.aws_url(), ACTOR, arguments, answer).await
}

/// The same through a proxy that kills the process before the call after `calls` calls reaches the stack. Returns
/// `None` if the process made no such call and ended.
async fn killed_after(world: &World, calls: usize, arguments: &[&str]) -> Option<Ran> {
    let (proxy, reached) = proxy(world.aws_url(), calls).await;
    let address = format!("http://{proxy}");
    tokio::select! {
        ran = run(&address, ACTOR, arguments, "") => Some(ran),
        () = reached.notified() => None,
    }
}

/// Runs the command. The process is killed if the future is dropped.
async fn run(aws_url: &str, access_key: &str, arguments: &[&str], answer: &str) -> Ran {
    let port = aws_url.rsplit(':').next().unwrap();
    let mut child =
        command(access_key).args(["--local", "--aws-port", port, "--json"]).args(arguments).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(answer.as_bytes()).await.unwrap();
    drop(stdin);
    ran(child.wait_with_output().await.unwrap())
}

/// The command, without the machine's own AWS settings.
fn command(access_key: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_operate-under-test"));
    command
        .env_clear()
        .envs([
            ("AWS_ACCESS_KEY_ID", access_key),
            ("AWS_SECRET_ACCESS_KEY", "any"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn ran(output: std::process::Output) -> Ran {
    let stdout = String::from_utf8(output.stdout).unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        json: serde_json::from_str(&stdout).unwrap_or_default(),
        stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A proxy of the AWS endpoint that lets this number of calls pass. It notifies of the next one, and never answers it.
async fn proxy(aws_url: String, calls: usize) -> (SocketAddr, Arc<Notify>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (reached, passed) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let notify = Arc::clone(&reached);
    let forward = move |request: Request| {
        let (aws_url, notify, passed) = (aws_url.clone(), Arc::clone(&notify), Arc::clone(&passed));
        async move {
            if passed.fetch_add(1, Ordering::Relaxed) >= calls {
                notify.notify_one();
                std::future::pending::<()>().await;
            }
            forwarded(&aws_url, request).await
        }
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(forward)).await });
    (address, reached)
}

async fn forwarded(aws_url: &str, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    parts.uri = format!("{aws_url}{}", parts.uri.path()).parse().unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let answer = client.request(http::Request::from_parts(parts, Full::new(body))).await.unwrap();
    let (parts, body) = answer.into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes()).into_response()
}

/// The lines of a coach's audit trail that operators caused, oldest first: action, target, actor and reason.
async fn trail(world: &World, coach: &str) -> Vec<Value> {
    let page = world.settings_of(coach).await.get("/settings/audit?limit=100").await.expect(200).body;
    let lines = page["data"].as_array().unwrap().iter().rev();
    let of_operators = lines.filter(|line| line["actor"].as_str().unwrap().starts_with("operator:"));
    of_operators.map(|line| json!([line["action"], line["target"], line["actor"], line["detail"]["reason"]])).collect()
}
