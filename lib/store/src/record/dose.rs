//! Doses. A log's id is its identity for good: logged once more it is the same log, and deleted it stays deleted, even where the deletion
//! is told first. Counts by month are moved in the transaction that writes the log.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use chrono::NaiveDate;
use domain::compliance::Window;
use domain::dose::{DoseSchedule, DosesLogged, Month, MonthOfDoses};
use domain::fact::DoseLogged;
use domain::fact_time::FactTime;
use domain::id::{ClientId, DoseId, DoseLogId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{MAX_ROUNDS, RecordReader, Recorded, Records, Telling, key, known, partition, take};
use crate::db::{Ask, Item, StoreError, Transacted, b, failed, from_item, n, s, stand_back, to_item};
use crate::fact_order::{SaidAt, SavedAt};

/// What the sort keys of doses begin with: months, then the schedule.
pub(crate) const DOSES_PREFIX: &str = "DOSES#";
const SCHEDULE: &str = "DOSES#SCHEDULE";

/// What compliance is computed from.
#[derive(Debug, Default)]
pub struct Doses {
    pub schedule: DoseSchedule,
    /// At least the window's months, and the last month with a log.
    pub logged: DosesLogged,
}

impl Doses {
    /// What these items of a client hold.
    pub(crate) fn of(items: Vec<Item>) -> Result<Self, StoreError> {
        let mut doses = Self::default();
        items.into_iter().try_for_each(|item| read_into(&mut doses, item))?;
        Ok(doses)
    }
}

/// A log, or what is left of one that was deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Log {
    pk: String,
    sk: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dose: Option<DoseId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    date: Option<NaiveDate>,
    #[serde(flatten)]
    said_at: Option<SaidAt>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    version: u64,
}

/// What a client is to take.
#[derive(Serialize, Deserialize)]
struct Schedule {
    pk: String,
    sk: String,
    doses: DoseSchedule,
    #[serde(flatten)]
    saved_at: SavedAt,
    version: u64,
}

/// A month's counts, and the version of its item, 0 for none.
type StoredMonth = (MonthOfDoses, u64);

impl RecordReader {
    /// What a client is to take, and what was logged in a window of so many dates that ends today, wherever the client is. One query, at
    /// most a page beyond the window's months where nothing was logged of late.
    pub async fn doses(&self, client: &ClientId, now: Timestamp, window_days: u32) -> Result<Doses, StoreError> {
        let earliest = Window::earliest_since(now, window_days);
        let first_month = Month::of(earliest);
        let mut doses = Doses::default();
        let mut start = None;
        // The schedule and the window's months, two of which it may touch with a single date.
        let mut limit = 1 + 2 + i32::try_from(window_days / 28).unwrap_or(0);
        loop {
            let query = self.db.client().query().table_name(&self.table).scan_index_forward(false).limit(limit);
            let page = query
                .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
                .expression_attribute_values(":pk", s(partition(client)))
                .expression_attribute_values(":prefix", s(DOSES_PREFIX))
                .set_exclusive_start_key(start)
                .ask()
                .await
                .map_err(|error| failed("Query", error))?;
            for item in page.items.unwrap_or_default() {
                read_into(&mut doses, item)?;
            }
            let back_to = doses.logged.0.keys().next();
            let enough = back_to.is_some_and(|month| *month <= first_month) && doses.logged.last_logged_on().is_some();
            start = page.last_evaluated_key;
            if start.is_none() || enough {
                return Ok(doses);
            }
            limit = 100;
        }
    }
}

fn read_into(doses: &mut Doses, item: Item) -> Result<(), StoreError> {
    let sk = item.get("sk").and_then(|sk| sk.as_s().ok()).cloned().unwrap_or_default();
    if sk == SCHEDULE {
        doses.schedule = from_item::<Schedule>("dose schedule", item)?.doses;
        return Ok(());
    }
    let month = sk.strip_prefix(DOSES_PREFIX).and_then(Month::parse);
    let month = month.ok_or_else(|| StoreError::corrupt("month of doses", "its key has another form"))?;
    doses.logged.0.insert(month, read_month(&item)?.0);
    Ok(())
}

impl Records {
    /// Stores what a client is to take, unless something newer is stored.
    pub async fn save_dose_schedule(
        &self,
        client: &ClientId,
        schedule: &DoseSchedule,
        said: Telling,
    ) -> Result<Recorded, StoreError> {
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let mut ready = match known(self.clients.ready(client, said).await?) {
                Ok(ready) => ready,
                Err(outcome) => return Ok(outcome),
            };
            let mut items = self.db.read(&self.table, vec![key(client, SCHEDULE)]).await?;
            let found = take(&mut items, SCHEDULE).map(|item| from_item::<Schedule>("dose schedule", item));
            let found = found.transpose()?;
            if found.as_ref().is_some_and(|found| FactTime::from(found.saved_at) > said.at) {
                return Ok(Recorded::Done);
            }
            let version = found.map_or(0, |found| found.version);
            let next = Schedule {
                pk: partition(client),
                sk: SCHEDULE.to_owned(),
                doses: schedule.clone(),
                saved_at: said.at.into(),
                version: version + 1,
            };
            let watch = ready.change_doses([(SCHEDULE.to_owned(), next.version)].into());
            let mut writes = vec![self.put_version(to_item(&next), version), self.clients.still_there(client)];
            writes.extend(watch);
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(Recorded::Done);
            }
        }
        Err(StoreError::kept_changing("the dose schedule"))
    }

    /// Stores a log. Said again it counts once; said differently, what was said last counts.
    pub async fn log_dose(
        &self,
        client: &ClientId,
        logged: &DoseLogged,
        said: Telling,
    ) -> Result<Recorded, StoreError> {
        let change = |found: &Log| {
            let (dose, date, said_at) = (Some(logged.dose.clone()), Some(logged.date), Some(said.at.into()));
            let changed = Log { dose, date, said_at, ..found.clone() };
            // Said again it counts from then on: what was said between the two is not the last word.
            let is_last_word = !found.deleted && found.said_at.map(FactTime::from) <= Some(said.at);
            (is_last_word && changed != *found).then_some(changed)
        };
        self.change_log(client, &logged.dose_log, Some(Month::of(logged.date)), said, change).await
    }

    /// Deletes a log for good.
    pub async fn delete_dose_log(
        &self,
        client: &ClientId,
        log: &DoseLogId,
        said: Telling,
    ) -> Result<Recorded, StoreError> {
        let change = |found: &Log| {
            let tombstone = Log { deleted: true, dose: None, date: None, said_at: None, ..found.clone() };
            (!found.deleted).then_some(tombstone)
        };
        self.change_log(client, log, None, said, change).await
    }

    /// Writes what `change` makes of a log, and moves the counts of the months that it leaves and enters.
    async fn change_log(
        &self,
        client: &ClientId,
        id: &DoseLogId,
        expected: Option<Month>,
        said: Telling,
        change: impl Fn(&Log) -> Option<Log>,
    ) -> Result<Recorded, StoreError> {
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let log_sk = format!("DOSELOG#{id}");
            let mut keys = vec![key(client, &log_sk)];
            keys.extend(expected.map(|month| key(client, &month_sk(month))));
            let mut ready = match known(self.clients.ready(client, said).await?) {
                Ok(ready) => ready,
                Err(outcome) => return Ok(outcome),
            };
            // Right before it is written: of many logs of a month that are told at once, one at a time goes through.
            let mut items = self.db.read(&self.table, keys).await?;
            let found: Log = match take(&mut items, &log_sk) {
                Some(item) => from_item("dose log", item)?,
                None => Log {
                    pk: partition(client),
                    sk: log_sk,
                    dose: None,
                    date: None,
                    said_at: None,
                    deleted: false,
                    version: 0,
                },
            };
            let Some(changed) = change(&found) else { return Ok(Recorded::Done) };
            let (mut writes, versions) = match (&found.dose, found.date) == (&changed.dose, changed.date) {
                true => Default::default(),
                false => self.month_writes(client, &found, &changed, items).await?,
            };
            let version = found.version;
            if !versions.is_empty() {
                writes.extend(ready.change_doses(versions));
            }
            writes.push(self.put_version(to_item(&Log { version: version + 1, ..changed }), version));
            writes.push(self.clients.still_there(client));
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(Recorded::Done);
            }
        }
        Err(StoreError::kept_changing("the dose log"))
    }

    /// Writes of the months that a log leaves and enters, and the versions that they come to. `items`: months that have been read.
    async fn month_writes(
        &self,
        client: &ClientId,
        from: &Log,
        to: &Log,
        mut items: Vec<Item>,
    ) -> Result<(Vec<TransactWriteItem>, BTreeMap<String, u64>), StoreError> {
        let months: BTreeSet<Month> = [from, to].into_iter().filter_map(|log| log.date).map(Month::of).collect();
        let mut stored: BTreeMap<Month, StoredMonth> = BTreeMap::new();
        for month in months {
            let sk = month_sk(month);
            let item = match take(&mut items, &sk) {
                Some(item) => Some(item),
                None => self.db.read(&self.table, vec![key(client, &sk)]).await?.pop(),
            };
            stored.insert(month, item.as_ref().map(read_month).transpose()?.unwrap_or_default());
        }
        for (log, add) in [(from, false), (to, true)] {
            if let (Some(dose), Some(date)) = (&log.dose, log.date)
                && let Some((month, _)) = stored.get_mut(&Month::of(date))
            {
                if add { month.add(dose, date) } else { month.remove(dose, date) }
            }
        }
        let versions = stored.iter().map(|(month, stored)| (month_sk(*month), stored.1 + 1)).collect();
        let writes = stored.iter().map(|(month, stored)| self.month_write(client, *month, stored));
        Ok((writes.collect(), versions))
    }

    /// A month without logs stays, so that its version only goes up.
    fn month_write(&self, client: &ClientId, month: Month, (counts, version): &StoredMonth) -> TransactWriteItem {
        let counts = counts.to_bytes().map(|(dose, bytes)| (dose.as_str().to_owned(), b(bytes)));
        let mut item = key(client, &month_sk(month));
        item.insert("counts".to_owned(), AttributeValue::M(counts.collect()));
        item.insert("version".to_owned(), n(version + 1));
        self.put_version(item, *version)
    }
}

fn month_sk(month: Month) -> String {
    format!("{DOSES_PREFIX}{month}")
}

fn read_month(item: &Item) -> Result<StoredMonth, StoreError> {
    let corrupt = || StoreError::corrupt("month of doses", "its counts have another form");
    let counts = item.get("counts").and_then(|counts| counts.as_m().ok()).ok_or_else(corrupt)?;
    let doses = counts.iter().map(|(dose, bytes)| {
        Ok((DoseId::parse(dose).map_err(|_| corrupt())?, bytes.as_b().map_err(|_| corrupt())?.as_ref()))
    });
    let doses = doses.collect::<Result<Vec<_>, StoreError>>()?;
    let month = MonthOfDoses::from_bytes(doses.into_iter()).ok_or_else(corrupt)?;
    let version = item.get("version").and_then(|version| version.as_n().ok()).and_then(|version| version.parse().ok());
    Ok((month, version.ok_or_else(corrupt)?))
}
