//! Measures a function's start and its first request over a new TLS connection.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::fleet::Fleet;
use crate::process::{Mode, Timing, instructions};
use crate::stack::{ApiCall, BenchStack, Variables};

/// Unmeasured starts, after which the program is in the page cache.
const WARM_UP: usize = 10;
/// Measured starts, of which the median is reported.
const STARTS: usize = 15;

/// The measured cost of a start and its first request.
pub(crate) struct StartFigures {
    /// The time from the start of the process to its first poll for an event.
    pub(crate) init: Timing,
    /// The time of the first request, TLS handshake included.
    pub(crate) first: Timing,
    /// Instructions of both. `None` without valgrind.
    pub(crate) instructions: Option<u64>,
    pub(crate) peak_memory_bytes: u64,
}

/// Restarts a function repeatedly and measures each start with one request.
pub(crate) async fn measure(
    function: &str,
    call: impl Fn(usize) -> ApiCall,
    stack: &BenchStack,
    fleet: &Fleet,
    tls: &Variables,
    counts: Option<&Path>,
) -> Result<StartFigures, BenchError> {
    // The first call makes the stack create an environment.
    stack.call(call(0)).await?;
    fleet.run_as(Mode::Plain, tls.clone());
    let (mut inits, mut firsts, mut memory) = (Vec::new(), Vec::new(), 0);
    for n in 0..WARM_UP {
        fleet.restart(function).await?;
        stack.call(call(n)).await?;
    }
    for n in WARM_UP..WARM_UP + STARTS {
        let init = fleet.restart(function).await?;
        let (before, began) = (fleet.usage(function).await, Instant::now());
        stack.call(call(n)).await?;
        let wall = began.elapsed();
        let after = fleet.usage(function).await;
        inits.push(init);
        firsts.push(Timing { wall, cpu: after.cpu.saturating_sub(before.cpu) });
        memory = after.peak_memory_bytes;
    }
    let counted = match counts {
        None => None,
        Some(dir) => {
            let file = dir.join(format!("callgrind.out.start_{function}"));
            fleet.run_as(Mode::Counted(file.clone()), tls.clone());
            fleet.restart(function).await?;
            stack.call(call(WARM_UP + STARTS)).await?;
            fleet.end(function).await;
            Some(instructions(&file)?)
        }
    };
    fleet.run_as(Mode::Plain, Variables::new());
    fleet.restart(function).await?;
    Ok(StartFigures { init: median(inits), first: median(firsts), instructions: counted, peak_memory_bytes: memory })
}

pub(crate) fn median(timings: Vec<Timing>) -> Timing {
    let middle = |mut values: Vec<Duration>| {
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Timing {
        wall: middle(timings.iter().map(|timing| timing.wall).collect()),
        cpu: middle(timings.iter().map(|timing| timing.cpu).collect()),
    }
}
