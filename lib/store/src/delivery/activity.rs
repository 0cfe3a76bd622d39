//! Hourly counts of an endpoint's deliveries. pk `ENDPOINT#<endpoint_id>`, sk `ACTIVITY#<day>`: the counts of a UTC
//! day's hours, such as `h07_delivered`. An absent count is 0.
//!
//! Counts are added after the deliveries are recorded. A crash leaves the counts a little short, and a repeated write
//! whose answer was lost leaves them too high: the log is the truth. The days of an endpoint are small items side by
//! side, so one query reads a month for about as many units as a few days.

use std::collections::HashMap;

use chrono::NaiveDate;
use domain::delivery::{ACTIVITY_RETENTION, ActivityPeriod, Hour, HourCounts};
use domain::id::EndpointId;
use domain::time::Timestamp;
use runtime::error_chain;

use super::Deliveries;
use super::record::partition;
use crate::db::{self, Item, StoreError, n, number, query_all, s, sk_of};

impl Deliveries {
    /// Adds to the counts of the hour of `at`. A failure is logged only: nothing depends on a count.
    pub async fn count(&self, endpoint: &EndpointId, at: Timestamp, counts: HourCounts) {
        if counts == HourCounts::NOTHING {
            return;
        }
        let hour = Hour::of(at);
        let day = self.table.write(db::key(partition(endpoint), sort_key(hour.day())));
        let day = day.set("expires_at", n((hour.begin() + ACTIVITY_RETENTION).unix_s()));
        let attributes = attributes(hour).into_iter().zip([counts.delivered, counts.failed_attempts, counts.failed]);
        let added = attributes.filter(|(_, count)| *count > 0).fold(day, |day, (name, count)| day.add(&name, n(count)));
        if let Err(error) = added.update_now().await {
            tracing::warn!(endpoint_id = %endpoint, error = error_chain(&error), "could not count deliveries");
        }
    }

    /// Reads the counts of an endpoint for each hour of a period, oldest first.
    pub async fn activity(&self, endpoint: &EndpointId, period: ActivityPeriod) -> Result<Vec<HourCounts>, StoreError> {
        let [from, to] = [period.days().start(), period.days().end()].map(|day| s(sort_key(*day)));
        let values = [(":pk", s(partition(endpoint))), (":from", from), (":to", to)];
        let items = query_all(self.table.query("pk = :pk AND sk BETWEEN :from AND :to", values)).await?;
        let days: HashMap<&str, &Item> = items.iter().map(|item| (sk_of(item), item)).collect();
        let of_hour =
            |hour: Hour| days.get(&*sort_key(hour.day())).map_or(HourCounts::NOTHING, |day| counts(day, hour));
        Ok(period.hours().map(of_hour).collect())
    }
}

fn counts(day: &Item, hour: Hour) -> HourCounts {
    let [delivered, failed_attempts, failed] = attributes(hour).map(|name| number(day, &name).unwrap_or_default());
    HourCounts { delivered, failed_attempts, failed }
}

/// The attributes with an hour's counts.
fn attributes(hour: Hour) -> [String; 3] {
    ["delivered", "failed_attempts", "failed"].map(|name| format!("h{:02}_{name}", hour.of_day()))
}

fn sort_key(day: NaiveDate) -> String {
    format!("ACTIVITY#{day}")
}
