//! What it takes to start a function, and to answer its first request over a new TLS connection.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::fleet::Fleet;
use crate::process::{Mode, Spent, instructions};
use crate::stand::{Call, Stand, Variables};

/// Starts before those that count: the machine has the program in memory then, and room for its processes.
const WARM_UP: usize = 10;
/// Starts of which the median counts.
const STARTS: usize = 15;

/// A start, and the first request.
pub(crate) struct Start {
    /// From the start of the process to its first question for an event.
    pub(crate) init: Spent,
    /// The first request, TLS handshake included.
    pub(crate) first: Spent,
    /// Of both.
    pub(crate) instructions: Option<u64>,
    pub(crate) peak_memory_bytes: u64,
}

/// Starts a function over and over, each time for one request.
pub(crate) async fn measure(
    function: &str,
    call: impl Fn(usize) -> Call,
    stand: &Stand,
    fleet: &Fleet,
    tls: &Variables,
    counts: Option<&Path>,
) -> Result<Start, BenchError> {
    // The stack has an environment from here on.
    stand.call(call(0)).await?;
    fleet.run_as(Mode::Plain, tls.clone());
    let (mut inits, mut firsts, mut memory) = (Vec::new(), Vec::new(), 0);
    for n in 0..WARM_UP {
        fleet.restart(function).await?;
        stand.call(call(n)).await?;
    }
    for n in WARM_UP..WARM_UP + STARTS {
        let init = fleet.restart(function).await?;
        let (used, began) = (fleet.used(function).await, Instant::now());
        stand.call(call(n)).await?;
        let wall = began.elapsed();
        let after = fleet.used(function).await;
        inits.push(init);
        firsts.push(Spent { wall, cpu: after.cpu.saturating_sub(used.cpu) });
        memory = after.peak_memory_bytes;
    }
    let counted = match counts {
        None => None,
        Some(dir) => {
            let file = dir.join(format!("callgrind.out.start_{function}"));
            fleet.run_as(Mode::Counted(file.clone()), tls.clone());
            fleet.restart(function).await?;
            stand.call(call(WARM_UP + STARTS)).await?;
            fleet.end(function).await;
            Some(instructions(&file)?)
        }
    };
    fleet.run_as(Mode::Plain, Variables::new());
    fleet.restart(function).await?;
    Ok(Start { init: median(inits), first: median(firsts), instructions: counted, peak_memory_bytes: memory })
}

pub(crate) fn median(spent: Vec<Spent>) -> Spent {
    let middle = |mut values: Vec<Duration>| {
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Spent {
        wall: middle(spent.iter().map(|spent| spent.wall).collect()),
        cpu: middle(spent.iter().map(|spent| spent.cpu).collect()),
    }
}
