//! AWS prices: us-east-1, on demand, as of November 2025, without free tiers. infra/guides/capacity.md has the same
//! prices.
//!
//! Source: on <https://aws.amazon.com> the pages `/api-gateway/pricing`, `/lambda/pricing`,
//! `/dynamodb/pricing/on-demand`, `/sqs/pricing` and `/eventbridge/pricing`.

/// Dollars for a million, each with the name of its row in infra/guides/capacity.md.
const API_REQUEST: Price = ("API Gateway (HTTP), a million requests", 1.00);
const INVOCATION: Price = ("Lambda, a million invocations", 0.20);
const GB_SECOND: Price = ("Lambda on arm64, a GB-second", 13.333_4);
const READ_UNIT: Price = ("DynamoDB, a million read units", 0.125);
const WRITE_UNIT: Price = ("DynamoDB, a million write units", 0.625);
const QUEUE_REQUEST: Price = ("SQS, a million requests", 0.40);
const BUS_EVENT: Price = ("EventBridge, a million custom events", 1.00);

type Price = (&'static str, f64);

/// Memory at which Lambda gives a function a whole core
/// (<https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>).
const CORE_MB: f64 = 1_769.0;

/// The billed amounts of one piece of work.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Amounts {
    pub(crate) api_requests: f64,
    pub(crate) invocations: f64,
    pub(crate) gb_seconds: f64,
    pub(crate) read_units: f64,
    pub(crate) write_units: f64,
    pub(crate) queue_requests: f64,
    pub(crate) bus_events: f64,
}

impl Amounts {
    /// Returns the dollars for a million pieces of such work.
    pub(crate) fn dollars_a_million(&self) -> f64 {
        let priced = [
            (self.api_requests, API_REQUEST),
            (self.invocations, INVOCATION),
            (self.gb_seconds, GB_SECOND),
            (self.read_units, READ_UNIT),
            (self.write_units, WRITE_UNIT),
            (self.queue_requests, QUEUE_REQUEST),
            (self.bus_events, BUS_EVENT),
        ];
        priced.iter().map(|(amount, (_, dollars))| amount * dollars).sum()
    }
}

/// Returns a function's `MemorySize` in template.yaml.
fn memory_mb(function: &str) -> f64 {
    if function == "clients" { 1_024.0 } else { 256.0 }
}

/// Returns the GB-seconds of an invocation, which Lambda bills by the millisecond. Its CPU time is stretched by the
/// function's share of a core.
pub(crate) fn gb_seconds(function: &str, wall_s: f64, cpu_s: f64) -> f64 {
    let memory_mb = memory_mb(function);
    let billed_s = (wall_s - cpu_s).max(0.0) + cpu_s * (CORE_MB / memory_mb).max(1.0);
    (billed_s * 1_000.0).ceil() / 1_000.0 * memory_mb / 1_024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../guides/capacity.md");
    const TEMPLATE: &str = include_str!("../../../template.yaml");

    #[test]
    fn the_capacity_guide_has_the_same_prices() {
        for (name, dollars) in [API_REQUEST, INVOCATION, GB_SECOND, READ_UNIT, WRITE_UNIT, QUEUE_REQUEST, BUS_EVENT] {
            let row = GUIDE.lines().find_map(|line| line.strip_prefix(&format!("| {name} | $"))).unwrap();
            let price: f64 = row.trim_end_matches(" |").parse().unwrap();
            let unit = if name.starts_with("Lambda on arm64") { 1e6 } else { 1.0 };
            assert!((price * unit - dollars).abs() < 1e-9, "{name}");
        }
        assert!(GUIDE.contains("us-east-1, on demand, as of November 2025"));
    }

    #[test]
    fn dollars_are_the_sum_of_amounts_and_prices() {
        let none = Amounts::default();
        for (amounts, dollars) in [
            (none, 0.0),
            (Amounts { api_requests: 1.0, invocations: 1.0, ..none }, 1.2),
            (Amounts { read_units: 2.0, write_units: 4.0, ..none }, 2.75),
            (Amounts { queue_requests: 3.0, bus_events: 2.0, ..none }, 3.2),
            (Amounts { gb_seconds: 0.003, ..none }, 0.040_000_2),
        ] {
            assert!((amounts.dollars_a_million() - dollars).abs() < 1e-9, "{amounts:?}");
        }
    }

    #[test]
    fn cpu_time_is_stretched_by_the_share_of_a_core() {
        for (function, wall_s, cpu_s, expected) in [
            ("ping", 0.010, 0.0, 0.010 * 0.25),
            // 9 ms of waiting, and 1 ms of CPU in 6.9 ms.
            ("ping", 0.010, 0.001, 0.016 * 0.25),
            ("clients", 0.110, 0.100, 0.183),
        ] {
            assert!((gb_seconds(function, wall_s, cpu_s) - expected).abs() < 1e-9, "{function} {wall_s} {cpu_s}");
        }
    }

    #[test]
    fn the_template_has_the_same_memory_sizes() {
        let sizes: Vec<&str> = TEMPLATE.lines().filter_map(|line| line.trim().strip_prefix("MemorySize: ")).collect();
        assert_eq!(sizes, ["256", "1024"]);
        let clients = TEMPLATE.split("\n  ClientsFunction:\n").nth(1).unwrap().split("Events:").next().unwrap();
        assert!(clients.contains("MemorySize: 1024"));
    }
}
