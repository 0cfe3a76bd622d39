//! The report: figures as Markdown tables with limits.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use local_stack::linked;

use crate::error::{BenchError, context};
use crate::fleet::Fleet;
use crate::size::Size;
use crate::{baseline, delivery, prices, routes, startup, sweep};

/// Limits of the figures. A figure above its limit is in bold type.
const START_INSTRUCTIONS: u64 = 8_000_000;
const START_CPU: Duration = Duration::from_millis(4);
const READ_INSTRUCTIONS: u64 = 1_800_000;
/// CPU seconds for 1,000 deliveries, with one endpoint an event and with ten.
const DELIVERY_CPU_S: [f64; 2] = [0.40, 0.40];
/// Write units of `deliver` for a delivery.
const DELIVERY_WRITE_UNITS: f64 = 3.5;

/// The file with the tables in the repository.
const README: &str = "infra/bench/README.md";
const INTRODUCTION: &str = "# Benchmark

The bench runs the release builds of the functions, each in its own process, against the local AWS. Counts do not depend
on the machine; times do. A figure in bold type is above its limit, which the column's header states.

```sh
cargo run --package bench                                        # all parts
cargo run --package bench -- --only startup,routes --route ping  # selected parts
cargo run --package bench -- --readme                            # all parts; updates these tables
```

";

/// Prints the tables and collects their text.
pub(crate) struct Report {
    commit: String,
    text: RefCell<String>,
}

impl Report {
    pub(crate) fn new(root: &Path) -> Self {
        let output = Command::new("git").current_dir(root).args(["rev-parse", "--short", "HEAD"]).output();
        let commit = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        Self { commit: commit.unwrap_or_default(), text: RefCell::default() }
    }

    fn print(&self, line: impl Display) {
        println!("{line}");
        self.text.borrow_mut().push_str(&format!("{line}\n"));
    }

    /// Writes all tables to [`README`].
    pub(crate) fn write(&self, root: &Path) -> Result<(), BenchError> {
        let text = format!("{INTRODUCTION}{}", self.text.borrow().trim_end());
        std::fs::write(root.join(README), text + "\n").map_err(context(README))
    }

    #[expect(clippy::disallowed_methods, reason = "the report contains its date")]
    pub(crate) fn machine(&self) {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("an unknown CPU");
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kb = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or_default();
        let kb: f64 = kb.trim().trim_end_matches(" kB").parse().unwrap_or_default();
        self.print(format!(
            "{}, commit {}: {} ({cores} cores, {:.0} GiB, {})\n",
            chrono::Utc::now().format("%Y-%m-%d"),
            self.commit,
            model.trim_start_matches(['\t', ' ', ':']),
            kb / 1_048_576.0,
            std::env::consts::ARCH,
        ));
    }

    pub(crate) fn sizes(&self, sizes: &[(&str, Size)]) {
        self.print("| Function | Binary, MB | Zip, MB |\n|---|---|---|");
        for (name, Size { binary, zip }) in sizes {
            self.print(format!("| {name} | {} | {} |", mb(*binary), mb(*zip)));
        }
        self.print("");
    }

    pub(crate) fn starts(&self, starts: &[(&str, startup::StartFigures)]) {
        self.print(
            "| Start and first request over TLS | Init, ms | Init, CPU ms | First, ms | First, CPU ms | CPU ms (≤ 4) | \
             Instructions, M (≤ 8) | Memory, MB |\n|---|---|---|---|---|---|---|---|",
        );
        for (name, start) in starts {
            let both = start.init.cpu + start.first.cpu;
            self.print(format!(
                "| {name} | {} | {} | {} | {} | {} | {} | {} |",
                ms(start.init.wall),
                ms(start.init.cpu),
                ms(start.first.wall),
                ms(start.first.cpu),
                within(both, START_CPU, ms),
                start.instructions.map_or("-".to_owned(), |count| within(count, START_INSTRUCTIONS, millions)),
                mb(start.peak_memory_bytes),
            ));
        }
        self.print("");
    }

    pub(crate) fn baselines(&self, start: &startup::StartFigures, cpu: Duration, others: &[baseline::BaselineFigures]) {
        self.print(
            "| `GET /v1/ping` | Start and first request, CPU ms | Start and first request, ms | Request, CPU ms | Memory, MB |\n\
             |---|---|---|---|---|",
        );
        let (start_cpu, wall) = (start.init.cpu + start.first.cpu, start.init.wall + start.first.wall);
        self.print(format!(
            "| this | {} | {} | {} | {} |",
            ms(start_cpu),
            ms(wall),
            ms(cpu),
            mb(start.peak_memory_bytes)
        ));
        for other in others {
            let (their_cpu, their_wall) = (other.init.cpu + other.first.cpu, other.init.wall + other.first.wall);
            self.print(format!(
                "| {} | {} ({}) | {} ({}) | {} ({}) | {} ({}) |",
                other.name,
                ms(their_cpu),
                times(their_cpu.as_secs_f64() / start_cpu.as_secs_f64()),
                ms(their_wall),
                times(their_wall.as_secs_f64() / wall.as_secs_f64()),
                ms(other.cpu),
                times(other.cpu.as_secs_f64() / cpu.as_secs_f64()),
                mb(other.peak_memory_bytes),
                times(other.peak_memory_bytes as f64 / start.peak_memory_bytes as f64),
            ));
        }
        self.print("");
    }

    pub(crate) fn routes(&self, figures: &[(&routes::Route, routes::RouteFigures)]) {
        self.print(
            "| Route | Calls | Read units | Write units | CPU, ms | Instructions, M (reads ≤ 1.8) | Of ping | Dollars a million |\n\
             |---|---|---|---|---|---|---|---|",
        );
        let ping = figures.first().and_then(|(_, figures)| figures.instructions);
        for (route, routes::RouteFigures { cost, cpu, instructions }) in figures {
            let is_read = route.name.starts_with("GET /v1");
            let limit = if is_read { READ_INSTRUCTIONS } else { u64::MAX };
            let memory_mb = if route.function == "clients" { 1024.0 } else { 256.0 };
            self.print(format!(
                "| `{}` | {:.1} | {:.1} | {:.1} | {} | {} | {} | {:.2} |",
                route.name,
                cost.calls,
                cost.read_units,
                cost.write_units,
                ms(*cpu),
                instructions.map_or("-".to_owned(), |count| within(count, limit, millions)),
                ping.zip(*instructions).map_or("-".to_owned(), |(ping, count)| times(count as f64 / ping as f64)),
                prices::million_requests(*cost, *cpu, memory_mb),
            ));
        }
        self.print("");
    }

    pub(crate) async fn memory(&self, fleet: &Fleet) {
        self.print("| Function | Peak memory, MB |\n|---|---|");
        for name in linked::all().names() {
            let usage = fleet.usage(name).await;
            if usage.starts > 0 {
                self.print(format!("| {name} | {} |", mb(usage.peak_memory_bytes)));
            }
        }
        self.print("");
    }

    pub(crate) fn deliveries(&self, figures: &[(delivery::DeliveryFigures, Option<u64>)]) {
        self.print(
            "| Endpoints an event | Deliveries/s | A batch | deliver: CPU s per 1,000 (≤ 0.40) | Instructions each, M | \
             relay: CPU s per 1,000 | Read units of deliver | Write units of deliver (≤ 3.5) | Units of relay | Memory, MB | Dollars a million |\n\
             |---|---|---|---|---|---|---|---|---|---|---|",
        );
        for ((figures, instructions), limit) in figures.iter().zip(DELIVERY_CPU_S) {
            let per_1000 = |cpu: Duration| cpu.as_secs_f64() * 1000.0 / figures.deliveries as f64;
            let units = |cost: crate::stack::Cost| format!("{:.2} r, {:.2} w", cost.read_units, cost.write_units);
            self.print(format!(
                "| {} | {:.0} | {:.1} | {} | {} | {:.3} | {:.2} | {} | {} | {} | {:.2} |",
                figures.endpoints,
                figures.deliveries as f64 / figures.wall.as_secs_f64(),
                1.0 / figures.deliver_invocations,
                within(per_1000(figures.deliver), limit, |s| format!("{s:.3}")),
                instructions.map_or("-".to_owned(), millions),
                per_1000(figures.relay),
                figures.deliver_cost.read_units,
                within(figures.deliver_cost.write_units, DELIVERY_WRITE_UNITS, |units| format!("{units:.2}")),
                units(figures.relay_cost),
                mb(figures.peak_memory_bytes),
                prices::million_deliveries(figures),
            ));
        }
        self.print("");
    }

    pub(crate) fn sweeps(&self, figures: &[sweep::SweepFigures]) {
        self.print(
            "| Clients | Due | CPU, ms | CPU ms each | Read units | Write units | Nobody due: CPU, ms | Read units | Memory, MB |\n\
             |---|---|---|---|---|---|---|---|---|",
        );
        for figures in figures {
            self.print(format!(
                "| {} | {} | {} | {} | {:.1} | {:.1} | {} | {:.1} | {} |",
                figures.roster,
                figures.due,
                ms(figures.cpu),
                ms(figures.cpu / u32::try_from(figures.due).unwrap_or(1)),
                figures.cost.read_units,
                figures.cost.write_units,
                ms(figures.idle_cpu),
                figures.idle_cost.read_units,
                mb(figures.peak_memory_bytes),
            ));
        }
        self.print("");
    }
}

/// Renders a figure, in bold type when it exceeds its limit.
fn within<T: PartialOrd + Copy>(figure: T, limit: T, render: impl Fn(T) -> String) -> String {
    if figure <= limit { render(figure) } else { format!("**{}**", render(figure)) }
}

fn mb(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e6)
}

fn ms(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

fn millions(count: u64) -> String {
    format!("{:.2}", count as f64 / 1e6)
}

fn times(ratio: f64) -> String {
    format!("{ratio:.1} x")
}
