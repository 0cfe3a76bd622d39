//! Baselines: the work of `GET /v1/ping` in Node with the AWS SDK for JavaScript and in Python with boto3, on the same
//! stack.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{BenchError, context};
use crate::process::{Mode, Process, Program, Timing};
use crate::seed::COACH;
use crate::stack::{BenchStack, Variables};

const AWS_SDK: &str = "@aws-sdk/client-dynamodb@3";
const BOTO3: &str = "boto3";
const BEARER: &str = "a-key-of-the-bench";
const STARTS: usize = 5;
/// Unmeasured requests, during which the just-in-time compiler runs.
const WARM_UP: usize = 300;
const REPEATS: usize = 300;

/// The measured cost of a baseline.
pub(crate) struct BaselineFigures {
    pub(crate) name: String,
    pub(crate) init: Timing,
    pub(crate) first: Timing,
    pub(crate) cpu: Duration,
    pub(crate) peak_memory_bytes: u64,
}

/// Installs both baselines below `dir` and measures them. A baseline that cannot be installed is skipped with a
/// message.
pub(crate) async fn measure(
    stack: &BenchStack,
    dir: &Path,
    sources: &Path,
    tls: &Variables,
) -> Result<Vec<BaselineFigures>, BenchError> {
    let pk = format!("BENCH#{}", &hex::encode(Sha256::digest(BEARER))[..32]);
    let item = json!({ "pk": { "S": pk }, "sk": { "S": "KEY" }, "coach_id": { "S": COACH } });
    stack.put_items("keys", &[item]).await?;
    let mut figures = Vec::new();
    for (name, program) in [("Node", node(dir, sources)), ("Python", python(dir, sources))] {
        match program {
            Ok(program) => figures.push(function(name, program, stack, tls).await?),
            Err(error) => eprintln!("baseline {name} skipped: {error}"),
        }
    }
    Ok(figures)
}

async fn function(
    name: &str,
    mut program: Program,
    stack: &BenchStack,
    tls: &Variables,
) -> Result<BaselineFigures, BenchError> {
    let plain = format!("http://127.0.0.1:{}", stack.aws_port());
    program.variables.insert("AWS_ENDPOINT_URL".to_owned(), plain);
    let mut secured = program.clone();
    secured.variables.extend(tls.clone());

    let (mut inits, mut firsts) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let process = Process::start(&secured, &Mode::Plain).await?;
        let (before, began) = (process.cpu(), Instant::now());
        expect_ok(&process).await?;
        inits.push(process.init);
        firsts.push(Timing { wall: began.elapsed(), cpu: process.cpu().saturating_sub(before) });
    }
    let process = Process::start(&program, &Mode::Plain).await?;
    for _ in 0..WARM_UP {
        expect_ok(&process).await?;
    }
    let before = process.cpu();
    for _ in 0..REPEATS {
        expect_ok(&process).await?;
    }
    let cpu = process.cpu().saturating_sub(before) / REPEATS as u32;
    let version = version(&program)?;
    Ok(BaselineFigures {
        name: format!("{name} {version}"),
        init: crate::startup::median(inits),
        first: crate::startup::median(firsts),
        cpu,
        peak_memory_bytes: process.peak_memory_bytes(),
    })
}

async fn expect_ok(process: &Process) -> Result<(), BenchError> {
    let answer = process.invoke(&event()).await.map_err(context("the baseline"))?;
    if answer["statusCode"] == 200 { Ok(()) } else { Err(BenchError::new(format!("the baseline answered {answer}"))) }
}

/// API Gateway's event for `GET /v1/ping`.
fn event() -> Value {
    json!({
        "version": "2.0", "routeKey": "GET /v1/ping", "rawPath": "/v1/ping", "rawQueryString": "",
        "headers": {
            "authorization": format!("Bearer {BEARER}"), "host": "127.0.0.1:8080", "x-forwarded-for": "127.0.0.1",
            "x-forwarded-port": "8080", "x-forwarded-proto": "http",
        },
        "requestContext": {
            "accountId": "000000000000", "apiId": "local", "domainName": "localhost", "domainPrefix": "localhost",
            "http": {
                "method": "GET", "path": "/v1/ping", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "bench",
            },
            "requestId": "JKJaXmPLvHcESHA=", "routeKey": "GET /v1/ping", "stage": "$default",
            "time": "04/Mar/2020:19:03:58 +0000", "timeEpoch": 1_583_348_638_390_i64,
        },
        "isBase64Encoded": false,
    })
}

fn variables() -> Variables {
    [
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("KEYS_TABLE", "partner-api-keys"),
        ("WORKSPACES_TABLE", "partner-api-workspaces"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn node(dir: &Path, sources: &Path) -> Result<Program, BenchError> {
    let dir = dir.join("node");
    std::fs::create_dir_all(&dir).map_err(context(&dir))?;
    let source = dir.join("function.mjs");
    std::fs::copy(sources.join("function.mjs"), &source).map_err(context(&source))?;
    if !dir.join("node_modules/@aws-sdk/client-dynamodb").exists() {
        run(Command::new("npm").current_dir(&dir).args(["install", "--silent", "--no-audit", "--no-fund", AWS_SDK]))?;
    }
    Ok(Program { path: find_program("node")?, arguments: vec![source.display().to_string()], variables: variables() })
}

fn python(dir: &Path, sources: &Path) -> Result<Program, BenchError> {
    let dir = dir.join("python");
    if !dir.join("bin/python").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
        run(Command::new(dir.join("bin/pip")).args(["install", "--quiet", "--disable-pip-version-check", BOTO3]))?;
    }
    let source = sources.join("function.py").display().to_string();
    Ok(Program { path: dir.join("bin/python"), arguments: vec![source], variables: variables() })
}

fn version(program: &Program) -> Result<String, BenchError> {
    let output = Command::new(&program.path).arg("--version").output().map_err(context(&program.path))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("Python ").to_owned())
}

fn run(command: &mut Command) -> Result<(), BenchError> {
    let status = command.status().map_err(context(format!("{command:?}")))?;
    if status.success() { Ok(()) } else { Err(BenchError::new(format!("{command:?} failed"))) }
}

/// Finds a program on the search path.
fn find_program(name: &str) -> Result<PathBuf, BenchError> {
    let output = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().map_err(context(name))?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if path.is_empty() { Err(BenchError::new(format!("{name} is not installed"))) } else { Ok(path.into()) }
}
