//! Measures the release builds of the functions: what a start takes, what each kind of request, delivery and sweep costs, how big they are,
//! and what the same work takes in Node and Python.
//!
//! The functions run as processes of their own below a small Lambda Runtime API; the stack that plays AWS is in this process. So the CPU time
//! of a function is its own. Counts (calls, capacity units, instructions) do not depend on the machine; times do.

mod baseline;
mod delivery;
mod error;
mod fleet;
mod prices;
mod process;
mod report;
mod routes;
mod runtime_api;
mod seed;
mod size;
mod stand;
mod startup;
mod sweep;
mod tls;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use local_stack::linked;
use local_stack::progress::Progress;
use tempfile::TempDir;

use crate::error::{BenchError, because};
use crate::fleet::Fleet;
use crate::report::Report;
use crate::stand::{Call, Stand};

/// Measures the functions.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench", version, about)]
struct Options {
    /// The folder with the functions' binaries. Without it they are built.
    #[arg(long)]
    binaries: Option<PathBuf>,

    /// What to measure.
    #[arg(long, value_delimiter = ',', default_value = "sizes,startup,routes,delivery,sweep")]
    only: Vec<Part>,

    /// How many clients the sweeps are among, in ascending order.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    rosters: Vec<usize>,

    /// Where callgrind's files are kept, for callgrind_annotate.
    #[arg(long)]
    counts: Option<PathBuf>,

    /// Writes the tables to infra/bench/README.md. Everything is measured then.
    #[arg(long, conflicts_with_all = ["only", "route", "rosters"])]
    readme: bool,

    /// Only routes, and starts of functions, whose name has this in it.
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

/// Starts that are measured, and the same in other languages.
const STARTS: u64 = 7;

/// The folders of a run.
struct Dirs {
    /// The repository.
    root: PathBuf,
    /// The functions' executables.
    binaries: PathBuf,
    /// Removed when the run ends.
    scratch: TempDir,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let quiet = tracing_subscriber::EnvFilter::new("dynoxide=error,warn");
    tracing_subscriber::fmt().with_env_filter(quiet).with_writer(std::io::stderr).init();
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
    let root = root.canonicalize().map_err(because(&root))?;
    let binaries = match &options.binaries {
        Some(binaries) => binaries.canonicalize().map_err(because(binaries))?,
        None => build(&root)?,
    };
    let report = Report::new(&root);
    let scratch = tempfile::tempdir().map_err(because("make a directory"))?;
    let dirs = Dirs { root, binaries, scratch };
    report.machine();
    let wanted = |part| options.only.contains(&part);
    if wanted(Part::Sizes) {
        sizes(&dirs, &report)?;
    }
    if [Part::Startup, Part::Routes, Part::Delivery].iter().any(|part| wanted(*part)) {
        on_a_stand(options, &dirs, &report).await?;
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

/// Builds all functions as they are deployed, but for this machine.
fn build(root: &Path) -> Result<PathBuf, BenchError> {
    let functions = linked::all();
    // Cargo unites the features of what it builds at once: together, all would have the HTTP/2 that one speaks.
    let (with_http2, others): (Vec<&str>, Vec<&str>) =
        functions.names().into_iter().partition(|name| *name == "deliver");
    for names in [others, with_http2] {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(root).args(["build", "--release", "--locked"]);
        names.iter().for_each(|name| {
            command.args(["--package", name]);
        });
        if !command.status().map_err(because("build"))?.success() {
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

async fn on_a_stand(options: &Options, dirs: &Dirs, report: &Report) -> Result<(), BenchError> {
    let fleet = Fleet::new(&dirs.binaries);
    let stand = Stand::start(&dirs.scratch.path().join("stand"), &fleet.functions()).await?;
    let result = measure(options, dirs, &stand, &fleet, report).await;
    stand.end().await;
    fleet.close().await;
    result
}

async fn measure(
    options: &Options,
    dirs: &Dirs,
    stand: &Stand,
    fleet: &Fleet,
    report: &Report,
) -> Result<(), BenchError> {
    let dir = dirs.scratch.path();
    let wanted = |part| options.only.contains(&part);
    let by = seed::seed(stand).await?;
    let counts = has_valgrind().then_some(options.counts.as_deref().unwrap_or(dir));
    if wanted(Part::Startup) {
        let tls = tls::serve(stand.aws_port(), dir).await?;
        let mut starts = Vec::new();
        let mut progress = Progress::new("starts", STARTS);
        for (function, path, key) in [
            ("ping", "/v1/ping".to_owned(), by.partner(0)),
            ("crm-workflows", "/v1/crm/workflows".to_owned(), by.crm(0)),
            ("client-records", format!("/v1/clients/{}/compliance", seed::CLIENT), by.partner(1)),
            ("clients", format!("/v1/clients/{}", seed::CLIENT), by.partner(2)),
            ("crm-bookings", "/v1/crm/calendars".to_owned(), by.crm(1)),
            ("settings", "/settings/keys".to_owned(), by.session.as_str()),
        ] {
            if !function.contains(&options.route) && !options.route.is_empty() {
                continue;
            }
            progress.show(starts.len() as u64, function);
            let call = |_| Call::get(&path).by(key);
            starts.push((function, startup::measure(function, call, stand, fleet, &tls, counts).await?));
        }
        report.starts(&starts);
        progress.show(starts.len() as u64, "Node and Python");
        let sources = dirs.root.join("infra/bench/baseline");
        let baselines = baseline::measure(stand, &dirs.root.join("target/bench"), &sources, &tls).await?;
        let ping = routes::ROUTES.iter().find(|route| route.function == "ping");
        if let (Some(ping), Some((_, start))) = (ping, starts.first()) {
            let figures = routes::measure(ping, stand, fleet, &by, None).await?;
            report.baselines(start, figures.cpu, &baselines);
        }
    }
    if wanted(Part::Routes) {
        let wanted: Vec<_> = routes::ROUTES.iter().filter(|route| route.name.contains(&options.route)).collect();
        let (mut figures, mut progress) = (Vec::new(), Progress::new("routes", wanted.len() as u64));
        for route in wanted {
            progress.show(figures.len() as u64, route.name);
            figures.push((route, routes::measure(route, stand, fleet, &by, counts).await?));
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
            figures.push((delivery::measure(endpoints, stand, fleet).await?, instructions));
        }
        report.deliveries(&figures);
    }
    Ok(())
}

fn has_valgrind() -> bool {
    let found = Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("there is no valgrind here: instructions are not counted");
    }
    found
}
