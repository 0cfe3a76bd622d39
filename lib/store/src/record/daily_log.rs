//! The daily log's dates. Saving and deleting a date are one conditional update each: what was said last, by the time at which it was
//! said, counts, in whatever order it comes.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{Datelike, NaiveDate};
use domain::daily_log::DateRange;
use domain::fact_time::FactTime;
use domain::id::ClientId;

use super::{MAX_ROUNDS, RecordReader, Recorded, Records, Telling, key, known, partition};
use crate::client::LastLog;
use crate::db::{Ask, Item, StoreError, failed, n, s, stand_back, write};

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
        said: Telling,
    ) -> Result<Recorded, StoreError> {
        self.say_of_date(client, date, said, true).await
    }

    /// Notes that a date's log was deleted.
    pub async fn delete_daily_log(
        &self,
        client: &ClientId,
        date: NaiveDate,
        said: Telling,
    ) -> Result<Recorded, StoreError> {
        self.say_of_date(client, date, said, false).await
    }

    /// First the date, then the client's watch, which has the last one: a year's item is large to be in a transaction. Whoever dies in
    /// between says it again.
    ///
    /// A date before the last one leaves the watch alone. Otherwise the last date is read back and stored, and unless nobody can have
    /// been at it meanwhile read once more.
    async fn say_of_date(
        &self,
        client: &ClientId,
        date: NaiveDate,
        said: Telling,
        logged: bool,
    ) -> Result<Recorded, StoreError> {
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let mut ready = match known(self.clients.ready(client, said).await?) {
                Ok(ready) => ready,
                Err(outcome) => return Ok(outcome),
            };
            let stored = ready.last_daily_log_on();
            if round == 0 {
                self.write_date(client, date, said.at, logged).await?;
                let is_earlier = |last: Option<NaiveDate>| last.is_some_and(|last| date < last);
                if is_earlier(stored) && is_earlier(self.clients.last_daily_log_on(client).await?) {
                    return Ok(Recorded::Done);
                }
            }
            let last = self.last_date(client).await?;
            if round > 0 && last == stored {
                return Ok(Recorded::Done);
            }
            let is_final = match ready.log_daily(last).await? {
                LastLog::Lost => false,
                // A date before it may have come that left the watch alone, or it may have been deleted.
                LastLog::Raised => self.last_date(client).await? == last,
                LastLog::Stored => last >= stored || self.last_date(client).await? == last,
            };
            if is_final {
                return Ok(Recorded::Done);
            }
        }
        Err(StoreError::kept_changing("the client"))
    }

    async fn write_date(
        &self,
        client: &ClientId,
        date: NaiveDate,
        said_at: FactTime,
        logged: bool,
    ) -> Result<(), StoreError> {
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
        // Refused: something later was said of the date.
        written.await?;
        Ok(())
    }

    /// The last date that is logged, of whatever year.
    async fn last_date(&self, client: &ClientId) -> Result<Option<NaiveDate>, StoreError> {
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
