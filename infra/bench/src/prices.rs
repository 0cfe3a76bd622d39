//! AWS prices in dollars: us-east-1, on demand, as of November 2025. Free tiers are not considered.

use std::time::Duration;

use crate::delivery::DeliveryFigures;
use crate::stack::Cost;

/// Prices for a million of each.
pub(crate) const API_REQUEST: f64 = 1.00;
pub(crate) const LAMBDA_REQUEST: f64 = 0.20;
pub(crate) const WRITE_UNIT: f64 = 0.625;
pub(crate) const READ_UNIT: f64 = 0.125;
pub(crate) const SQS_REQUEST: f64 = 0.40;
/// Price of a GB-second on arm64.
pub(crate) const LAMBDA_GB_SECOND: f64 = 0.000_013_333_4;
/// Price of a gigabyte of logs.
pub(crate) const LOG_GB: f64 = 0.50;

/// Size of a request's log line.
const LOG_LINE_BYTES: f64 = 250.0;
/// Latency of a DynamoDB call within a region, used in place of the emulator's latency.
const CALL_WAIT: Duration = Duration::from_millis(4);

/// Returns the price of a million requests: gateway, function, store, log. All calls are assumed to run in sequence.
pub(crate) fn million_requests(cost: Cost, cpu: Duration, memory_mb: f64) -> f64 {
    let seconds = cpu.as_secs_f64() + cost.calls * CALL_WAIT.as_secs_f64();
    API_REQUEST
        + LAMBDA_REQUEST
        + store(cost)
        + 1e6 * seconds * memory_mb / 1024.0 * LAMBDA_GB_SECOND
        + LOG_LINE_BYTES * 1e6 / 1e9 * LOG_GB
}

/// Returns the price of a million deliveries: queue, invocations, store. It excludes the time that receivers take to
/// respond.
pub(crate) fn million_deliveries(figures: &DeliveryFigures) -> f64 {
    // One request sends the messages of an event. Two requests receive and delete a batch.
    let queue_requests = 1.0 / figures.endpoints as f64 + 2.0 * figures.deliver_invocations;
    queue_requests * SQS_REQUEST
        + (figures.deliver_invocations + figures.relay_invocations) * LAMBDA_REQUEST
        + store(figures.deliver_cost)
        + store(figures.relay_cost)
}

/// Returns the price of DynamoDB for a million.
pub(crate) fn store(cost: Cost) -> f64 {
    cost.read_units * READ_UNIT + cost.write_units * WRITE_UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../guides/capacity.md");

    /// Returns the price in the guide's row of this name.
    fn row(name: &str) -> f64 {
        let row = GUIDE.lines().find_map(|line| line.strip_prefix(&format!("| {name} | $"))).unwrap();
        row.trim_end_matches(" |").parse().unwrap()
    }

    #[test]
    fn the_capacity_guide_has_the_same_prices() {
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
