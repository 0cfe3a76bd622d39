//! What AWS charges, in dollars: us-east-1, on demand, as of November 2025. Free tiers are left out.

use std::time::Duration;

use crate::delivery::Figures;
use crate::stand::Cost;

/// For a million of each.
pub(crate) const API_REQUEST: f64 = 1.00;
pub(crate) const LAMBDA_REQUEST: f64 = 0.20;
pub(crate) const WRITE_UNIT: f64 = 0.625;
pub(crate) const READ_UNIT: f64 = 0.125;
pub(crate) const SQS_REQUEST: f64 = 0.40;
/// For a second of 1 GB on arm64.
pub(crate) const LAMBDA_GB_SECOND: f64 = 0.000_013_333_4;
/// For a gigabyte of log.
pub(crate) const LOG_GB: f64 = 0.50;

/// A log line of a request.
const LOG_LINE_BYTES: f64 = 600.0;
/// What a call to DynamoDB takes within a region; the stand's emulator takes longer and is not counted.
const CALL_WAIT: Duration = Duration::from_millis(4);

/// A million requests through the API: gateway, function, store, log. Calls are taken to wait for one another, which some do not.
pub(crate) fn million_requests(cost: Cost, cpu: Duration, memory_mb: f64) -> f64 {
    let seconds = cpu.as_secs_f64() + cost.calls * CALL_WAIT.as_secs_f64();
    API_REQUEST
        + LAMBDA_REQUEST
        + store(cost)
        + 1e6 * seconds * memory_mb / 1024.0 * LAMBDA_GB_SECOND
        + LOG_LINE_BYTES * 1e6 / 1e9 * LOG_GB
}

/// A million deliveries: queue, functions by their number, store. What receivers take to answer comes on top.
pub(crate) fn million_deliveries(figures: &Figures) -> f64 {
    // The orders of an event are sent together; a batch is received and deleted.
    let queue_requests = 1.0 / figures.endpoints as f64 + 2.0 * figures.deliver_invocations;
    queue_requests * SQS_REQUEST
        + (figures.deliver_invocations + figures.relay_invocations) * LAMBDA_REQUEST
        + store(figures.deliver_cost)
        + store(figures.relay_cost)
}

/// The store's share of a million.
pub(crate) fn store(cost: Cost) -> f64 {
    cost.read_units * READ_UNIT + cost.write_units * WRITE_UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../guides/capacity.md");

    /// The price in the guide's row of this name.
    fn row(name: &str) -> f64 {
        let row = GUIDE.lines().find_map(|line| line.strip_prefix(&format!("| {name} | $"))).unwrap();
        row.trim_end_matches(" |").parse().unwrap()
    }

    #[test]
    fn the_capacity_guide_counts_with_the_same_prices() {
        for (name, price) in [
            ("DynamoDB, a million write units", WRITE_UNIT),
            ("DynamoDB, a million read units", READ_UNIT),
            ("Lambda on arm64, a GB-second", LAMBDA_GB_SECOND),
            ("Lambda, a million invocations", LAMBDA_REQUEST),
            ("API Gateway (HTTP), a million requests", API_REQUEST),
            ("SQS, a million requests", SQS_REQUEST),
            ("CloudWatch Logs, a GB", LOG_GB),
        ] {
            assert_eq!(row(name), price, "{name}");
        }
        let as_of = include_str!("prices.rs").lines().next().unwrap().split("as of ").nth(1).unwrap();
        assert!(GUIDE.contains(as_of.split('.').next().unwrap()), "{as_of}");
    }
}
