//! Doses. A repeated log with the same id is the same log. A deleted log stays deleted, even if the deletion arrives
//! first. The transaction that writes a log changes the counts of its months.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use domain::compliance::Window;
use domain::dose::{DoseSchedule, Month};
use domain::fact::DoseLogged;
use domain::fact_time::FactTime;
use domain::id::{ClientId, DoseId, DoseLogId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{RecordReader, Records, key, partition, take_item};
use crate::db::{StoreError, Write, b, from_item, n, query_page, s, to_item};
use crate::doses::{DOSES_PREFIX, Doses, SCHEDULE, StoredDoseSchedule, StoredMonth, month_sk};
use crate::watch::{DueMark, WatchUpdate};

/// Prefix of the sort keys of logs.
pub(super) const LOG_PREFIX: &str = "DOSELOG#";

/// A log of a dose as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredDoseLog {
    pk: String,
    sk: String,
    dose: Option<DoseId>,
    date: Option<NaiveDate>,
    set_at: Option<FactTime>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    version: u64,
}

impl StoredDoseLog {
    /// The log after a fact of that time; `None` if it stays as it is. A repeated log takes the time of the latest
    /// fact, so a fact of a time in between no longer changes it.
    pub fn logged(&self, logged: &DoseLogged, at: FactTime) -> Option<Self> {
        let (dose, date, set_at) = (Some(logged.dose.clone()), Some(logged.date), Some(at));
        let next = Self { dose, date, set_at, ..self.clone() };
        (!self.deleted && self.set_at <= Some(at) && next != *self).then_some(next)
    }

    /// The tombstone of the log; `None` if it is one.
    pub fn tombstone(&self) -> Option<Self> {
        let next = Self { deleted: true, dose: None, date: None, set_at: None, ..self.clone() };
        (!self.deleted).then_some(next)
    }

    fn day(&self) -> Option<(&DoseId, NaiveDate)> {
        self.dose.as_ref().zip(self.date)
    }
}

/// A log of a dose, and the counts of the months that a change of the log may move.
pub struct FoundDoseLog {
    pub log: StoredDoseLog,
    months: BTreeMap<Month, StoredMonth>,
}

impl RecordReader {
    /// Reads a client's dose schedule, and the logs of a window of dates that ends today, in any time zone. One query,
    /// and one page beyond the window if its months have no logs.
    pub async fn doses(&self, client: &ClientId, now: Timestamp, window_days: u32) -> Result<Doses, StoreError> {
        let earliest = Window::earliest_since(now, window_days);
        let first_month = Month::of(earliest);
        let mut doses = Doses::default();
        let mut start = None;
        // The schedule and the months of the window. The window may touch two more months with a single date each.
        let mut limit = 1 + 2 + i32::try_from(window_days / 28).unwrap_or(0);
        let values = [(":pk", s(partition(client))), (":prefix", s(DOSES_PREFIX))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :prefix)", values).scan_index_forward(false);
        loop {
            let page = query_page(query.clone().limit(limit).set_exclusive_start_key(start)).await?;
            page.items.into_iter().try_for_each(|item| doses.add(item))?;
            let back_to = doses.logged.0.keys().next();
            let enough = back_to.is_some_and(|month| *month <= first_month) && doses.logged.last_logged_on().is_some();
            start = page.next;
            if start.is_none() || enough {
                return Ok(doses);
            }
            limit = 100;
        }
    }
}

impl Records {
    /// Reads a client's dose schedule as stored.
    pub async fn dose_schedule(&self, client: &ClientId) -> Result<Option<StoredDoseSchedule>, StoreError> {
        self.table.get("dose schedule", key(client, SCHEDULE)).await
    }

    /// Parts of a transaction: store a schedule in the place of the one that was read, and make the client due.
    pub fn put_dose_schedule(
        &self,
        client: &ClientId,
        schedule: &DoseSchedule,
        found: Option<&StoredDoseSchedule>,
        at: FactTime,
        mark: DueMark,
    ) -> [Write; 2] {
        let version = found.map_or(0, |found| found.version);
        let next = StoredDoseSchedule {
            pk: partition(client),
            sk: SCHEDULE.to_owned(),
            doses: schedule.clone(),
            saved_at: at,
            version: version + 1,
        };
        let change = WatchUpdate::doses(&[(SCHEDULE.to_owned(), next.version)].into());
        [self.put_version(to_item(&next), version), self.watches.change(client, change, mark)]
    }

    /// Reads a log, a new one if it is not stored, with the counts of its month and of the month that it may enter.
    pub async fn dose_log(
        &self,
        client: &ClientId,
        id: &DoseLogId,
        enters: Option<Month>,
    ) -> Result<FoundDoseLog, StoreError> {
        let sk = format!("{LOG_PREFIX}{id}");
        let keys = std::iter::once(key(client, &sk)).chain(enters.map(|month| key(client, &month_sk(month))));
        let mut items = self.table.read(keys.collect()).await?;
        let log: StoredDoseLog = match take_item(&mut items, &sk) {
            Some(item) => from_item("dose log", item)?,
            None => StoredDoseLog {
                pk: partition(client),
                sk,
                dose: None,
                date: None,
                set_at: None,
                deleted: false,
                version: 0,
            },
        };
        let leaves = log.date.map(Month::of);
        if let Some(left) = leaves.filter(|left| enters != Some(*left)) {
            items.extend(self.table.read(vec![key(client, &month_sk(left))]).await?);
        }
        let mut months = BTreeMap::new();
        for month in leaves.into_iter().chain(enters) {
            if let Some(item) = take_item(&mut items, &month_sk(month)) {
                months.insert(month, StoredMonth::from_item(&item)?);
            }
        }
        Ok(FoundDoseLog { log, months })
    }

    /// Parts of a transaction: store a log in the place of the one that was read, and move the counts of the months
    /// that it leaves and enters.
    pub fn put_dose_log(
        &self,
        client: &ClientId,
        found: FoundDoseLog,
        next: StoredDoseLog,
        mark: DueMark,
    ) -> Vec<Write> {
        let FoundDoseLog { log, mut months } = found;
        let mut writes =
            vec![self.put_version(to_item(&StoredDoseLog { version: log.version + 1, ..next.clone() }), log.version)];
        if log.day() == next.day() {
            writes.push(self.clients.lookup.check_not_erased(client));
            return writes;
        }
        let mut versions = BTreeMap::new();
        let touched: BTreeSet<Month> = [&log, &next].into_iter().filter_map(|log| log.date).map(Month::of).collect();
        for month in touched {
            let mut stored = months.remove(&month).unwrap_or_default();
            let of_month = |log: &StoredDoseLog| {
                log.day().filter(|(_, date)| Month::of(*date) == month).map(|(dose, date)| (dose.clone(), date))
            };
            if let Some((dose, date)) = of_month(&log) {
                stored.counts.remove(&dose, date);
            }
            if let Some((dose, date)) = of_month(&next) {
                stored.counts.add(&dose, date);
            }
            versions.insert(month_sk(month), stored.version + 1);
            writes.push(self.month_write(client, month, &stored));
        }
        writes.push(self.watches.change(client, WatchUpdate::doses(&versions), mark));
        writes
    }

    /// The write of a month's counts. The item of a month without logs stays, so that its version only rises.
    fn month_write(&self, client: &ClientId, month: Month, stored: &StoredMonth) -> Write {
        let StoredMonth { counts, version } = stored;
        let counts = counts.to_bytes().map(|(dose, bytes)| (dose.as_str().to_owned(), b(bytes)));
        let mut item = key(client, &month_sk(month));
        item.insert("counts".to_owned(), AttributeValue::M(counts.collect()));
        item.insert("version".to_owned(), n(version + 1));
        self.put_version(item, *version)
    }
}
