//! Benchmark of the functions' release builds: sizes, starts, requests, deliveries and sweeps, and `GET /v1/ping` in
//! Node and Python.
//!
//! Each function runs in its own process against a small Lambda Runtime API, while the stack runs in this process. So a
//! process's CPU time belongs to its function alone. Counts (calls, capacity units, instructions) do not depend on the
//! machine; times do.

mod baseline;
mod delivery;
mod error;
mod fleet;
mod prices;
mod process;
mod progress;
mod report;
mod routes;
mod runtime_api;
mod seed;
mod size;
mod stack;
mod startup;
mod sweep;
mod tls;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use local_stack::linked;
use tempfile::TempDir;

use crate::error::{BenchError, context};
use crate::fleet::Fleet;
use crate::progress::Progress;
use crate::report::Report;
use crate::stack::{ApiCall, BenchStack};

/// Measures the functions.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench", version, about)]
struct Options {
    /// Folder with the functions' binaries. By default, they are built.
    #[arg(long)]
    binaries: Option<PathBuf>,

    /// Parts to measure.
    #[arg(long, value_delimiter = ',', default_value = "sizes,startup,routes,delivery,sweep")]
    only: Vec<Part>,

    /// Roster sizes of the sweeps, in ascending order.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    rosters: Vec<usize>,

    /// Folder that keeps callgrind's files, for callgrind_annotate.
    #[arg(long)]
    counts: Option<PathBuf>,

    /// Measures all parts and writes the tables to infra/bench/README.md.
    #[arg(long, conflicts_with_all = ["only", "route", "rosters"])]
    readme: bool,

    /// Only routes and functions whose name contains this text.
    #[arg(long, default_value = "")]
    route: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Sizes,
    Startup,
    Routes,
    Delivery,
    Sweep,
}

/// Steps of the startup part: six functions, and the baselines.
const STARTS: u64 = 7;

/// The folders of a run.
struct Dirs {
    /// The repository.
    root: PathBuf,
    /// The folder with the functions' executables.
    binaries: PathBuf,
    /// A temporary folder, removed when the run ends.
    scratch: TempDir,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    match run(&options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), BenchError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().map_err(context(&root))?;
    let binaries = match &options.binaries {
        Some(binaries) => binaries.canonicalize().map_err(context(binaries))?,
        None => build(&root)?,
    };
    let report = Report::new(&root);
    let scratch = tempfile::tempdir().map_err(context("make a directory"))?;
    let dirs = Dirs { root, binaries, scratch };
    report.machine();
    let wanted = |part| options.only.contains(&part);
    if wanted(Part::Sizes) {
        sizes(&dirs, &report)?;
    }
    if [Part::Startup, Part::Routes, Part::Delivery].iter().any(|part| wanted(*part)) {
        measure_on_stack(options, &dirs, &report).await?;
    }
    if wanted(Part::Sweep) {
        let mut progress = Progress::new("sweeps", options.rosters.len() as u64);
        let figures =
            sweep::measure(&mut progress, &options.rosters, &dirs.scratch.path().join("sweep"), &dirs.binaries).await?;
        report.sweeps(&figures);
    }
    if options.readme {
        report.write(&dirs.root)?;
    }
    Ok(())
}

/// Builds all functions for this machine with the profile of a deployment.
fn build(root: &Path) -> Result<PathBuf, BenchError> {
    let functions = linked::all();
    // Two builds, since Cargo unites features in one: all functions would include `deliver`'s HTTP/2.
    let (with_http2, others): (Vec<&str>, Vec<&str>) =
        functions.names().into_iter().partition(|name| *name == "deliver");
    for names in [others, with_http2] {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(root).args(["build", "--release", "--locked"]);
        names.iter().for_each(|name| {
            command.args(["--package", name]);
        });
        if !command.status().map_err(context("build"))?.success() {
            return Err(BenchError::new("the functions do not build"));
        }
    }
    Ok(root.join("target/release"))
}

fn sizes(dirs: &Dirs, report: &Report) -> Result<(), BenchError> {
    let names = linked::all().names();
    let (mut sizes, mut progress) = (Vec::new(), Progress::new("sizes", names.len() as u64));
    for name in names {
        progress.show(sizes.len() as u64, name);
        sizes.push((name, size::measure(&dirs.binaries.join(name), dirs.scratch.path())?));
    }
    report.sizes(&sizes);
    Ok(())
}

async fn measure_on_stack(options: &Options, dirs: &Dirs, report: &Report) -> Result<(), BenchError> {
    let fleet = Fleet::new(&dirs.binaries);
    let stack = BenchStack::start(&dirs.scratch.path().join("stack"), &fleet.functions()).await?;
    let result = measure(options, dirs, &stack, &fleet, report).await;
    stack.end().await;
    fleet.close().await;
    result
}

async fn measure(
    options: &Options,
    dirs: &Dirs,
    stack: &BenchStack,
    fleet: &Fleet,
    report: &Report,
) -> Result<(), BenchError> {
    let dir = dirs.scratch.path();
    let wanted = |part| options.only.contains(&part);
    let auth = seed::seed(stack).await?;
    let counts = has_valgrind().then_some(options.counts.as_deref().unwrap_or(dir));
    if wanted(Part::Startup) {
        let tls = tls::serve(stack.aws_port(), dir).await?;
        let mut starts = Vec::new();
        let mut progress = Progress::new("starts", STARTS);
        for (function, path, key) in [
            ("ping", "/v1/ping".to_owned(), auth.partner(0)),
            ("crm-workflows", "/v1/crm/workflows".to_owned(), auth.crm(0)),
            ("client-records", format!("/v1/clients/{}/compliance", seed::CLIENT), auth.partner(1)),
            ("clients", format!("/v1/clients/{}", seed::CLIENT), auth.partner(2)),
            ("crm-bookings", "/v1/crm/calendars".to_owned(), auth.crm(1)),
            ("settings", "/settings/keys".to_owned(), auth.session.as_str()),
        ] {
            if !function.contains(&options.route) && !options.route.is_empty() {
                continue;
            }
            progress.show(starts.len() as u64, function);
            let call = |_| ApiCall::get(&path).bearer(key);
            starts.push((function, startup::measure(function, call, stack, fleet, &tls, counts).await?));
        }
        report.starts(&starts);
        progress.show(starts.len() as u64, "Node and Python");
        let sources = dirs.root.join("infra/bench/baseline");
        let baselines = baseline::measure(stack, &dirs.root.join("target/bench"), &sources, &tls).await?;
        let ping = routes::ROUTES.iter().find(|route| route.function == "ping");
        if let (Some(ping), Some((_, start))) = (ping, starts.first()) {
            let figures = routes::measure(ping, stack, fleet, &auth, None).await?;
            report.baselines(start, figures.cpu, &baselines);
        }
    }
    if wanted(Part::Routes) {
        let wanted: Vec<_> = routes::ROUTES.iter().filter(|route| route.name.contains(&options.route)).collect();
        let (mut figures, mut progress) = (Vec::new(), Progress::new("routes", wanted.len() as u64));
        for route in wanted {
            progress.show(figures.len() as u64, route.name);
            figures.push((route, routes::measure(route, stack, fleet, &auth, counts).await?));
        }
        report.routes(&figures);
        report.memory(fleet).await;
    }
    if wanted(Part::Delivery) {
        let (mut figures, mut progress) = (Vec::new(), Progress::new("deliveries", 2));
        for endpoints in [1, 10] {
            progress.show(figures.len() as u64, &format!("{endpoints} endpoints an event"));
            let instructions = match counts {
                Some(counts) => Some(delivery::count(endpoints, &dirs.binaries, dir, counts).await?),
                None => None,
            };
            figures.push((delivery::measure(endpoints, stack, fleet).await?, instructions));
        }
        report.deliveries(&figures);
    }
    Ok(())
}

fn has_valgrind() -> bool {
    let found = Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("valgrind is not installed: instructions are not counted");
    }
    found
}
