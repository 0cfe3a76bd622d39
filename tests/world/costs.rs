//! Costs of invocations: calls to the store, the longest sequence of dependent calls, and capacity units.

use serde_json::{Value, json};

use super::{World, list};

/// Store calls of one invocation. Mails are not counted.
#[derive(Debug)]
pub(crate) struct Bill {
    pub(crate) calls: usize,
    /// Longest chain of calls in which each began after the previous had ended.
    pub(crate) in_sequence: usize,
    pub(crate) read_units: f64,
    pub(crate) write_units: f64,
}

impl Bill {
    pub(crate) fn of(invocation: &Value) -> Self {
        let mut calls = list(invocation["calls"].clone());
        calls.retain(|call| !call["tables"].as_array().unwrap().is_empty());
        let us = |call: &Value, name: &str| call[name].as_u64().unwrap();
        let mut intervals: Vec<(u64, u64)> =
            calls.iter().map(|call| (us(call, "ended_us"), us(call, "started_us"))).collect();
        intervals.sort_unstable();
        let (mut in_sequence, mut free_from) = (0, 0);
        for (ended, started) in intervals {
            if started >= free_from {
                in_sequence += 1;
                free_from = ended;
            }
        }
        let units = |name: &str| calls.iter().map(|call| call[name].as_f64().unwrap()).sum();
        Self { calls: calls.len(), in_sequence, read_units: units("read_units"), write_units: units("write_units") }
    }
}

/// Latency of the store during a measurement. Calls that do not wait for each other overlap for its length.
const LATENCY_MS: u32 = 5;

/// Repeats for the measurement of the sequence. A busy machine may serialise parallel calls, so the best repeat counts.
/// The number of calls and their units do not depend on the machine.
const MOST_REPEATS: usize = 40;

/// Repeats a request until one invocation has at most `in_sequence` calls in sequence. Every invocation has to be
/// `affordable`.
pub(crate) async fn assert_cost(
    world: &World,
    function: &str,
    request: impl AsyncFn(),
    affordable: impl Fn(&Bill) -> bool,
    in_sequence: usize,
) {
    world.faults(json!({ "function": function, "store_latency_ms": LATENCY_MS })).await;
    let mut bills = Vec::new();
    for _ in 0..MOST_REPEATS {
        request().await;
        let bill = Bill::of(&world.calls(function).await[0]);
        assert!(affordable(&bill), "{bill:?}");
        if bill.in_sequence <= in_sequence {
            return world.clear_faults().await;
        }
        bills.push(bill);
    }
    panic!("none of these has {in_sequence} in sequence: {bills:?}");
}
