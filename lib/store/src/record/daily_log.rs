//! The daily log's dates. Saving and deleting a date are one conditional update each: what was said last, by the time at which it was
//! said, counts, in whatever order it comes.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{Datelike, NaiveDate};
use domain::daily_log::DateRange;
use domain::fact_time::FactTime;
use domain::id::ClientId;

use super::{RecordReader, Recorded, Records, key, known, partition};
use crate::db::{Ask, Item, StoreError, Written, failed, n, s, write};
use crate::fact::FactContext;
use crate::watch::{Changed, WatchUpdate};

const SORT_PREFIX: &str = "LOGS#";
/// Dates that a year is expected to hold at least, for a client who keeps the log every other day: what the first query reads.
const FEW_DATES_A_YEAR: u32 = 183;

impl RecordReader {
    /// Dates of a client's daily log within the range, newest first, at most `limit`. One query, unless the log has long gaps.
    pub async fn logged_dates(
        &self,
        client: &ClientId,
        range: DateRange,
        limit: u32,
    ) -> Result<Vec<NaiveDate>, StoreError> {
        let mut dates: Vec<NaiveDate> = Vec::new();
        let mut start = None;
        let mut years = Some(1 + limit.div_ceil(FEW_DATES_A_YEAR));
        loop {
            let (items, next) = self.years(client, range, years, start).await?;
            for item in &items {
                let mut of_year = dates_of(item)?;
                of_year.retain(|date| range.contains(*date));
                of_year.sort_unstable_by(|a, b| b.cmp(a));
                dates.extend(of_year);
            }
            dates.truncate(limit as usize);
            start = next;
            if start.is_none() || dates.len() == limit as usize {
                return Ok(dates);
            }
            years = None;
        }
    }

    /// The last date that is logged, of whatever year.
    pub async fn last_logged_date(&self, client: &ClientId) -> Result<Option<NaiveDate>, StoreError> {
        let query = self.db.client().query().table_name(&self.table).consistent_read(true).scan_index_forward(false);
        let query = query
            .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
            .expression_attribute_values(":pk", s(partition(client)))
            .expression_attribute_values(":prefix", s(SORT_PREFIX))
            .projection_expression("sk, logged");
        let mut start = None;
        loop {
            // Years whose every log was deleted are few.
            let page = query.clone().limit(1).set_exclusive_start_key(start);
            let page = page.ask().await;
            let page = page.map_err(|error| failed("Query", error))?;
            let dates = page.items.unwrap_or_default().iter().map(dates_of).collect::<Result<Vec<_>, _>>()?;
            let last = dates.into_iter().flatten().max();
            start = page.last_evaluated_key;
            if last.is_some() || start.is_none() {
                return Ok(last);
            }
        }
    }

    async fn years(
        &self,
        client: &ClientId,
        range: DateRange,
        limit: Option<u32>,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let years = range.years();
        if years.is_empty() {
            return Ok((Vec::new(), None));
        }
        let query = self.db.client().query().table_name(&self.table);
        let page = query
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":pk", s(partition(client)))
            .expression_attribute_values(":first", s(sk(*years.start())))
            .expression_attribute_values(":last", s(sk(*years.end())))
            .projection_expression("sk, logged")
            .scan_index_forward(false)
            .set_limit(limit.and_then(|limit| i32::try_from(limit).ok()))
            .set_exclusive_start_key(start)
            .ask()
            .await
            .map_err(|error| failed("Query", error))?;
        Ok((page.items.unwrap_or_default(), page.last_evaluated_key))
    }
}

impl Records {
    /// Notes that the daily log was kept on a date.
    pub async fn save_daily_log(
        &self,
        client: &ClientId,
        date: NaiveDate,
        fact: FactContext,
    ) -> Result<Recorded, StoreError> {
        self.apply_to_date(client, date, fact, true).await
    }

    /// Notes that a date's log was deleted.
    pub async fn delete_daily_log(
        &self,
        client: &ClientId,
        date: NaiveDate,
        fact: FactContext,
    ) -> Result<Recorded, StoreError> {
        self.apply_to_date(client, date, fact, false).await
    }

    /// First the date, then the client's watch: a year's item is too large for a transaction. A fact that fails in between comes again and
    /// does both again.
    async fn apply_to_date(
        &self,
        client: &ClientId,
        date: NaiveDate,
        fact: FactContext,
        logged: bool,
    ) -> Result<Recorded, StoreError> {
        let stored = match known(self.clients.standing(client).await?) {
            Ok(stored) => stored,
            Err(outcome) => return Ok(outcome),
        };
        if !self.write_date(client, date, fact.occurred_at, logged).await? {
            return Ok(Recorded::Done);
        }
        let change = || if logged { WatchUpdate::daily_log(date) } else { WatchUpdate::daily_log_deleted() };
        if self.watches.change_alone(client, change(), fact.marked()).await? == Changed::Missing {
            // A restored watch looks its daily logs up.
            self.clients.restore_watch(&stored, fact.now).await?;
        }
        Ok(Recorded::Done)
    }

    /// False: a later fact has set the date.
    async fn write_date(
        &self,
        client: &ClientId,
        date: NaiveDate,
        said_at: FactTime,
        logged: bool,
    ) -> Result<bool, StoreError> {
        // A time before 1970 has no sign to spare: it counts as the beginning of time.
        let at = said_at.max(FactTime::from_ms(1)).decimal_ms();
        let minus_at = format!("-{at}");
        let (change, said) = match logged {
            true => ("SET #date = :said ADD logged :day", &at),
            false => ("SET #date = :said DELETE logged :day", &minus_at),
        };
        let day = (100 * date.month() + date.day()).to_string();
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table);
            update
                .set_key(Some(key(client, &sk(date.year()))))
                .update_expression(change)
                .condition_expression("attribute_not_exists(#date) OR #date BETWEEN :minus_at AND :at")
                .expression_attribute_names("#date", date.format("d%m%d").to_string())
                .expression_attribute_values(":day", AttributeValue::Ns(vec![day.clone()]))
                .expression_attribute_values(":said", n(said))
                .expression_attribute_values(":at", n(&at))
                .expression_attribute_values(":minus_at", n(&minus_at))
                .ask()
        });
        Ok(matches!(written.await?, Written::Done(_)))
    }
}
fn sk(year: i32) -> String {
    format!("{SORT_PREFIX}{year:04}")
}

/// The dates of a year's item that are logged.
fn dates_of(item: &HashMap<String, AttributeValue>) -> Result<Vec<NaiveDate>, StoreError> {
    let corrupt = || StoreError::corrupt("year of daily logs", "its key has another form");
    let sk = item.get("sk").and_then(|sk| sk.as_s().ok());
    let year: i32 = sk.and_then(|sk| sk.strip_prefix(SORT_PREFIX)?.parse().ok()).ok_or_else(corrupt)?;
    let date = |day: &String| {
        let day: u32 = day.parse().ok()?;
        NaiveDate::from_ymd_opt(year, day / 100, day % 100)
    };
    let days = item.get("logged").and_then(|logged| logged.as_ns().ok());
    Ok(days.into_iter().flatten().filter_map(date).collect())
}
