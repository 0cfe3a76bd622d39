//! The cost of a kind of work: what its functions used, and AWS's bill for it.

use std::fmt;
use std::time::Duration;

use local_aws::Call;

use crate::bench::Work;
use crate::environments::{Cause, Handled};
use crate::prices::{Amounts, gb_seconds};

/// Requests for each batch of a queue: one receives the messages, one deletes them.
const REQUESTS_A_BATCH: f64 = 2.0;
/// The function whose messages are facts. The bus has sent each of them to its queue.
const TAKES_FACTS: &str = "ingest";

/// The cost of all repeats of a kind of work. Displays as a row of the table, for one repeat.
pub(crate) struct Cost {
    work: Work,
    amounts: Amounts,
    store_calls: usize,
    cpu: Duration,
    latencies: Vec<Duration>,
}

impl Cost {
    pub(crate) fn new(work: Work) -> Self {
        Self { work, amounts: Amounts::default(), store_calls: 0, cpu: Duration::ZERO, latencies: Vec::new() }
    }

    /// Adds a repeat: the events that the functions handled, and their calls to AWS.
    pub(crate) fn add(&mut self, handled: &[Handled], calls: &[Call]) {
        let sum = &mut self.amounts;
        for Handled { function, cause, began, ended, cpu } in handled {
            self.cpu += *cpu;
            sum.invocations += 1.0;
            sum.gb_seconds += gb_seconds(function, (*ended - *began).as_secs_f64(), cpu.as_secs_f64());
            match *cause {
                Cause::Request => sum.api_requests += 1.0,
                Cause::Messages(count) => {
                    sum.queue_requests += REQUESTS_A_BATCH;
                    if *function == TAKES_FACTS {
                        sum.bus_events += count as f64;
                        sum.queue_requests += count as f64;
                    }
                }
                Cause::Other => {}
            }
        }
        for call in calls {
            self.store_calls += usize::from(!call.tables.is_empty());
            sum.read_units += call.read_units;
            sum.write_units += call.write_units;
            sum.queue_requests += f64::from(u8::from(call.operation.starts_with("SendMessage")));
        }
        let first = handled.iter().map(|handled| handled.began).min();
        let last = handled.iter().map(|handled| handled.ended).max();
        self.latencies.extend(first.zip(last).map(|(first, last)| last - first));
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeats = self.latencies.len();
        let each = |sum: f64| sum / repeats as f64;
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        write!(
            f,
            "| {} | {repeats} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {:.2} |",
            self.work.name,
            each(self.store_calls as f64),
            each(self.amounts.read_units),
            each(self.amounts.write_units),
            each(ms(self.cpu)),
            ms(percentile(&sorted, 50)),
            ms(percentile(&sorted, 99)),
            each(self.amounts.dollars_a_million()),
        )
    }
}

/// Returns the smallest of the sorted durations that at least `percent` of them do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_durations() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        for (count, percent, expected_ms) in [(200, 50, 100), (200, 99, 198), (20, 99, 20), (1, 50, 1), (0, 50, 0)] {
            assert_eq!(percentile(&sorted[..count], percent), Duration::from_millis(expected_ms), "{count} {percent}");
        }
    }
}
