//! AWS prices in dollars for a million: us-east-1, on demand, as of November 2025, without free tiers.
//!
//! Source: on <https://aws.amazon.com> the pages `/api-gateway/pricing`, `/lambda/pricing`,
//! `/dynamodb/pricing/on-demand`, `/sqs/pricing` and `/eventbridge/pricing`.

use std::time::Duration;

pub(crate) const API_REQUEST: f64 = 1.00;
pub(crate) const INVOCATION: f64 = 0.20;
/// On arm64.
pub(crate) const GB_SECOND: f64 = 13.333_4;
pub(crate) const READ_UNIT: f64 = 0.125;
pub(crate) const WRITE_UNIT: f64 = 0.625;
pub(crate) const QUEUE_REQUEST: f64 = 0.40;
pub(crate) const FIFO_QUEUE_REQUEST: f64 = 0.50;
pub(crate) const BUS_EVENT: f64 = 1.00;

/// Memory at which Lambda gives a function a whole core
/// (<https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>).
const CORE_MB: f64 = 1_769.0;

/// Returns the GB-seconds of an invocation, which Lambda bills by the millisecond. Its CPU time is stretched by the
/// function's share of a core.
pub(crate) fn gb_seconds(function: &str, wall: Duration, cpu: Duration) -> f64 {
    // `MemorySize` in template.yaml.
    let memory_mb: f64 = if function == "clients" { 1_024.0 } else { 256.0 };
    let billed_s = wall.saturating_sub(cpu).as_secs_f64() + cpu.as_secs_f64() * CORE_MB / memory_mb;
    (billed_s * 1_000.0).ceil() / 1_000.0 * memory_mb / 1_024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../guides/capacity.md");
    const TEMPLATE: &str = include_str!("../../../template.yaml");

    #[test]
    fn prices_are_those_of_the_capacity_guide() {
        for (name, dollars) in [
            ("API Gateway (HTTP), a million requests", API_REQUEST),
            ("Lambda, a million invocations", INVOCATION),
            ("Lambda on arm64, a GB-second", GB_SECOND / 1e6),
            ("DynamoDB, a million read units", READ_UNIT),
            ("DynamoDB, a million write units", WRITE_UNIT),
            ("SQS, a million requests", QUEUE_REQUEST),
            ("SQS, a million requests to a FIFO queue", FIFO_QUEUE_REQUEST),
            ("EventBridge, a million custom events", BUS_EVENT),
        ] {
            let row = GUIDE.lines().find_map(|line| line.strip_prefix(&format!("| {name} | $"))).unwrap();
            let guide: f64 = row.trim_end_matches(" |").parse().unwrap();
            assert!((guide - dollars).abs() < 1e-12, "{name}");
        }
        assert!(GUIDE.contains("us-east-1, on demand, as of November 2025"));
    }

    #[test]
    fn memory_sizes_are_those_of_the_template() {
        let sizes: Vec<&str> = TEMPLATE.lines().filter_map(|line| line.trim().strip_prefix("MemorySize: ")).collect();
        assert_eq!(sizes, ["256", "1024"]);
        let clients = TEMPLATE.split("\n  ClientsFunction:\n").nth(1).unwrap().split("Events:").next().unwrap();
        assert!(clients.contains("MemorySize: 1024"));
    }
}
