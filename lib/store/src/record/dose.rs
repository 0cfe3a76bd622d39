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
use crate::db::{Item, StoreError, Write, b, from_item, n, query_page, s, to_item};
use crate::doses::{DOSES_PREFIX, DoseScheduleItem, Doses, SCHEDULE, StoredMonth, month_sk};
use crate::fact::{FactContext, Halt};
use crate::unit::Unit;
use crate::watch::WatchUpdate;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct DoseLogItem {
    pk: String,
    sk: String,
    dose: Option<DoseId>,
    date: Option<NaiveDate>,
    set_at: Option<FactTime>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    version: u64,
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
    /// Stores a client's dose schedule, unless the stored one is newer.
    pub async fn save_dose_schedule(
        &self,
        client: &ClientId,
        schedule: &DoseSchedule,
        fact: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        let read = self.table.get::<DoseScheduleItem>("dose schedule", key(client, SCHEDULE));
        let (_, found) = self.with_client(client, read).await?;
        if found.as_ref().is_some_and(|found| found.saved_at > fact.occurred_at) {
            return Err(Halt::Done);
        }
        let version = found.map_or(0, |found| found.version);
        let next = DoseScheduleItem {
            pk: partition(client),
            sk: SCHEDULE.to_owned(),
            doses: schedule.clone(),
            saved_at: fact.occurred_at,
            version: version + 1,
        };
        let change = WatchUpdate::doses(&[(SCHEDULE.to_owned(), next.version)].into());
        let watch = self.watches.change(client, change, fact.due_mark());
        Ok(Unit::new().write([self.put_version(to_item(&next), version), watch]))
    }

    /// Stores a log. The same log counts once. Of facts that differ, the latest counts.
    pub async fn log_dose(&self, client: &ClientId, logged: &DoseLogged, fact: FactContext<'_>) -> Result<Unit, Halt> {
        let change = |found: &DoseLogItem| {
            let (dose, date, set_at) = (Some(logged.dose.clone()), Some(logged.date), Some(fact.occurred_at));
            let changed = DoseLogItem { dose, date, set_at, ..found.clone() };
            // A repeated log takes the time of the latest fact, so a fact of a time in between no longer changes it.
            let is_latest = !found.deleted && found.set_at <= Some(fact.occurred_at);
            (is_latest && changed != *found).then_some(changed)
        };
        self.change_log(client, &logged.dose_log, Some(Month::of(logged.date)), fact, change).await
    }

    /// Deletes a log for good.
    pub async fn delete_dose_log(
        &self,
        client: &ClientId,
        log: &DoseLogId,
        fact: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        let change = |found: &DoseLogItem| {
            let tombstone = DoseLogItem { deleted: true, dose: None, date: None, set_at: None, ..found.clone() };
            (!found.deleted).then_some(tombstone)
        };
        self.change_log(client, log, None, fact, change).await
    }

    /// Stores the log that `change` returns, and moves the counts of the months that the log leaves and enters.
    async fn change_log(
        &self,
        client: &ClientId,
        id: &DoseLogId,
        expected: Option<Month>,
        fact: FactContext<'_>,
        change: impl Fn(&DoseLogItem) -> Option<DoseLogItem>,
    ) -> Result<Unit, Halt> {
        let log_sk = &format!("DOSELOG#{id}");
        let keys = std::iter::once(key(client, log_sk)).chain(expected.map(|month| key(client, &month_sk(month))));
        let (_, mut items) = self.with_client(client, self.table.read(keys.collect())).await?;
        let found: DoseLogItem = match take_item(&mut items, log_sk) {
            Some(item) => from_item("dose log", item)?,
            None => DoseLogItem {
                pk: partition(client),
                sk: log_sk.clone(),
                dose: None,
                date: None,
                set_at: None,
                deleted: false,
                version: 0,
            },
        };
        let changed = change(&found).ok_or(Halt::Done)?;
        let version = found.version;
        let next = DoseLogItem { version: version + 1, ..changed.clone() };
        let unit = Unit::new().write([self.put_version(to_item(&next), version)]);
        if (&found.dose, found.date) == (&changed.dose, changed.date) {
            return Ok(unit.write([self.clients.lookup.check_not_erased(client)]));
        }
        let months = self.months(client, &found, &changed, items).await?;
        let versions = months.iter().map(|(month, stored)| (month_sk(*month), stored.version + 1)).collect();
        Ok(unit
            .write(months.iter().map(|(month, stored)| self.month_write(client, *month, stored)))
            .write([self.watches.change(client, WatchUpdate::doses(&versions), fact.due_mark())]))
    }

    /// The months that a log leaves and enters, with their counts after the change and their versions as stored.
    /// `items` are months that have been read already.
    async fn months(
        &self,
        client: &ClientId,
        from: &DoseLogItem,
        to: &DoseLogItem,
        mut items: Vec<Item>,
    ) -> Result<BTreeMap<Month, StoredMonth>, StoreError> {
        let months: BTreeSet<Month> = [from, to].into_iter().filter_map(|log| log.date).map(Month::of).collect();
        let mut stored: BTreeMap<Month, StoredMonth> = BTreeMap::new();
        for month in months {
            let sk = month_sk(month);
            let item = match take_item(&mut items, &sk) {
                Some(item) => Some(item),
                None => self.table.read(vec![key(client, &sk)]).await?.pop(),
            };
            stored.insert(month, item.as_ref().map(StoredMonth::from_item).transpose()?.unwrap_or_default());
        }
        for (log, add) in [(from, false), (to, true)] {
            if let (Some(dose), Some(date)) = (&log.dose, log.date)
                && let Some(StoredMonth { counts, .. }) = stored.get_mut(&Month::of(date))
            {
                if add { counts.add(dose, date) } else { counts.remove(dose, date) }
            }
        }
        Ok(stored)
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
