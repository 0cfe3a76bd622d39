//! The bench: what requests, deliveries, sweeps and facts cost, on a local stack within this process. README.md says
//! what its figures include.

mod bench;
mod cost;
mod environments;
mod prices;
mod report;
mod routes;
mod work;

use clap::Parser;
use runtime::BoxError;

use crate::bench::Bench;

/// Measures requests, deliveries, sweeps and facts, and writes the table in infra/bench/README.md.
#[derive(Debug, Parser)]
#[command(name = "bench", version, about)]
struct Options {
    /// Measures only work whose name contains this text, and leaves the README as it is.
    #[arg(long, default_value = "")]
    only: String,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let Options { only } = Options::parse();
    let is_whole = only.is_empty();
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    let bench = Bench::start(only, routes::ROUTES.len() + work::ROWS).await?;
    routes::measure(&bench).await?;
    work::measure_facts(&bench).await?;
    work::measure_deliveries(&bench).await?;
    work::measure_sweeps(&bench).await?;
    let table = report::table(&bench.end().await);
    println!("{table}");
    if is_whole && cfg!(not(debug_assertions)) { report::write(&table) } else { Ok(()) }
}
