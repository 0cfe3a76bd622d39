//! The cost of a kind of work: what its functions used, and AWS's bill for it.

use std::fmt;
use std::time::Duration;

use local_aws::Call;

use crate::environments::Handled;
use crate::prices::{self, gb_seconds};

/// The sums over all repeats of a kind of work. Displays as a row of the table, without its name.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    store_calls: usize,
    read_units: f64,
    write_units: f64,
    cpu: Duration,
    latencies: Vec<Duration>,
    /// For a million.
    dollars: f64,
}

impl Cost {
    /// Adds a repeat: the events that the functions handled, and their calls to AWS.
    pub(crate) fn add(&mut self, handled: &[Handled], calls: &[Call]) {
        for event in handled {
            self.cpu += event.cpu;
            let gb_seconds = gb_seconds(event.function, event.ended - event.began, event.cpu);
            self.dollars += prices::INVOCATION + prices::GB_SECOND * gb_seconds;
            self.dollars += if event.is_request { prices::API_REQUEST } else { 0.0 };
            // A batch is received with one request, and deleted with another.
            let request = if event.function == "deliver" { prices::FIFO_QUEUE_REQUEST } else { prices::QUEUE_REQUEST };
            self.dollars += if event.messages > 0 { 2.0 * request } else { 0.0 };
            // A fact comes to its queue by the bus.
            let facts = if event.function == "ingest" { event.messages } else { 0 };
            self.dollars += facts as f64 * (prices::BUS_EVENT + prices::QUEUE_REQUEST);
        }
        for call in calls {
            self.store_calls += usize::from(!call.tables.is_empty());
            self.read_units += call.read_units;
            self.write_units += call.write_units;
            self.dollars += call.read_units * prices::READ_UNIT + call.write_units * prices::WRITE_UNIT;
            // Batches go to the FIFO queue of deliveries.
            self.dollars += match &*call.operation {
                "SendMessageBatch" => prices::FIFO_QUEUE_REQUEST,
                "SendMessage" => prices::QUEUE_REQUEST,
                _ => 0.0,
            };
        }
        let first = handled.iter().map(|event| event.began).min();
        let last = handled.iter().map(|event| event.ended).max();
        self.latencies.extend(first.zip(last).map(|(first, last)| last - first));
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeats = self.latencies.len();
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        // The smallest that so many percent of all do not exceed.
        let percentile = |percent: usize| latencies[(repeats * percent).div_ceil(100) - 1];
        let each = |sum: f64| sum / repeats as f64;
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        write!(
            f,
            "| {repeats} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {:.2} |",
            each(self.store_calls as f64),
            each(self.read_units),
            each(self.write_units),
            each(ms(self.cpu)),
            ms(percentile(50)),
            ms(percentile(99)),
            each(self.dollars),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_row_has_the_means_percentiles_and_dollars_of_all_repeats() {
        let began = Instant::now();
        let call = |operation: &str, tables: &[&str], read_units, write_units| {
            let tables = tables.iter().map(|&table| table.to_owned()).collect();
            let operation = operation.to_owned();
            Call { operation, tables, read_units, write_units, started_us: 0, ended_us: 0, status: 200 }
        };
        let (write, send) = (call("PutItem", &["keys"], 2.0, 4.0), call("SendMessage", &[], 0.0, 0.0));
        for (function, is_request, messages, cpu_ms, calls, row) in [
            // At a quarter of a GB, 9 ms of waiting, and 1 ms of CPU in 6.9 ms.
            ("ping", true, 0, 1, vec![], "0.0 | 0.0 | 0.0 | 1.00 | 10.0 | 20.0 | 1.25"),
            // At one GB, 10 ms of CPU in 17.3 ms.
            ("clients", true, 0, 10, vec![], "0.0 | 0.0 | 0.0 | 10.00 | 10.0 | 20.0 | 1.44"),
            ("relay", false, 0, 0, vec![write, send], "1.0 | 2.0 | 4.0 | 0.00 | 10.0 | 20.0 | 3.38"),
            ("deliver", false, 3, 0, vec![], "0.0 | 0.0 | 0.0 | 0.00 | 10.0 | 20.0 | 1.23"),
            ("ingest", false, 1, 0, vec![], "0.0 | 0.0 | 0.0 | 0.00 | 10.0 | 20.0 | 2.43"),
        ] {
            let mut cost = Cost::default();
            for wall_ms in std::iter::repeat_n(10, 98).chain([20; 2]) {
                let (ended, cpu) = (began + Duration::from_millis(wall_ms), Duration::from_millis(cpu_ms));
                cost.add(&[Handled { function, is_request, messages, began, ended, cpu }], &calls);
            }
            assert_eq!(cost.to_string(), format!("| 100 | {row} |"));
        }
    }
}
