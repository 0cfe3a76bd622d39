//! The daily log's dates. A save or deletion of a date is one conditional update: the fact with the latest time counts,
//! in any order of arrival.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{Datelike, NaiveDate};
use domain::daily_log::DateRange;
use domain::fact_time::FactTime;
use domain::id::ClientId;
use domain::time::Timestamp;

use super::{RecordReader, Records, key, partition};
use crate::db::{Item, ItemWrite, Part, StoreError, Write, n, query_page, s, sk_of};

const SORT_PREFIX: &str = "LOGS#";
/// Expected dates in a year, for a client who keeps the log every other day. Sizes the first query.
const FEW_DATES_A_YEAR: u32 = 183;

impl RecordReader {
    /// Reads dates of a client's daily log within the range, newest first, at most `limit`. One query, unless the log
    /// has long gaps.
    pub async fn logged_dates(
        &self,
        client: &ClientId,
        range: DateRange,
        limit: u32,
    ) -> Result<Vec<NaiveDate>, StoreError> {
        let years = range.years();
        if years.is_empty() {
            return Ok(Vec::new());
        }
        let values = [(":pk", s(partition(client))), (":first", s(sk(*years.start()))), (":last", s(sk(*years.end())))];
        let query = self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values);
        let query = query.projection_expression("sk, logged").scan_index_forward(false);
        let few_years = i32::try_from(1 + limit.div_ceil(FEW_DATES_A_YEAR)).ok();
        let mut page = query_page(query.clone().set_limit(few_years)).await?;
        let mut dates: Vec<NaiveDate> = Vec::new();
        loop {
            for item in &page.items {
                let mut of_year = dates_of(item)?;
                of_year.retain(|date| range.contains(*date));
                of_year.sort_unstable_by(|a, b| b.cmp(a));
                dates.extend(of_year);
            }
            dates.truncate(limit as usize);
            if page.next.is_none() || dates.len() == limit as usize {
                return Ok(dates);
            }
            page = query_page(query.clone().set_exclusive_start_key(page.next)).await?;
        }
    }

    /// Reads the latest date of a client's daily log.
    pub async fn last_logged_date(&self, client: &ClientId) -> Result<Option<NaiveDate>, StoreError> {
        let values = [(":pk", s(partition(client))), (":prefix", s(SORT_PREFIX))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :prefix)", values).consistent_read(true);
        // Years without a remaining log are few.
        let query = query.scan_index_forward(false).projection_expression("sk, logged").limit(1);
        let mut start = None;
        loop {
            let page = query_page(query.clone().set_exclusive_start_key(start)).await?;
            let dates = page.items.iter().map(dates_of).collect::<Result<Vec<_>, _>>()?;
            let last = dates.into_iter().flatten().max();
            start = page.next;
            if last.is_some() || start.is_none() {
                return Ok(last);
            }
        }
    }
}

impl Records {
    /// Stores a date of the daily log at once. Returns false if a later fact has set the date.
    pub async fn save_date_now(&self, client: &ClientId, date: NaiveDate, at: FactTime) -> Result<bool, StoreError> {
        Ok(self.date(client, date, at, true).update_now().await?.is_done())
    }

    /// Part of a transaction: deletes a date's log, unless a later fact has set the date.
    pub fn delete_date(&self, client: &ClientId, date: NaiveDate, at: FactTime) -> Write {
        self.date(client, date, at, false).update(Part::LaterFact)
    }

    /// Sets or deletes a date, unless a later fact has set it.
    fn date(&self, client: &ClientId, date: NaiveDate, at: FactTime, logged: bool) -> ItemWrite<'_> {
        // The sign marks a deletion, so a time before 1970 counts as 1 ms after the epoch.
        let at = at.max(FactTime::from_ms(1)).decimal_ms();
        let minus_at = format!("-{at}");
        let attribute = date.format("d%m%d").to_string();
        let day = AttributeValue::Ns(vec![(100 * date.month() + date.day()).to_string()]);
        let year = self.table.write(key(client, &sk(date.year()))).when(
            format!("attribute_not_exists(#{attribute}) OR #{attribute} BETWEEN :minus_at AND :at"),
            [(":at", n(&at)), (":minus_at", n(&minus_at))],
        );
        match logged {
            true => year.set(&attribute, n(at)).add("logged", day),
            false => year.set(&attribute, n(minus_at)).take_out("logged", day),
        }
    }
}

fn sk(year: i32) -> String {
    format!("{SORT_PREFIX}{year:04}")
}

/// The dates in the item of a year, each with the time of its last fact, and true unless that was a deletion. Empty for
/// another item.
pub(super) fn last_facts_of(item: &Item) -> Vec<(NaiveDate, Timestamp, bool)> {
    let Some(year) = sk_of(item).strip_prefix(SORT_PREFIX) else { return Vec::new() };
    let facts = item.iter().filter_map(|(name, at)| {
        let date = NaiveDate::parse_from_str(&format!("{year}{}", name.strip_prefix('d')?), "%Y%m%d").ok()?;
        let at = at.as_n().ok()?;
        let ms = at.trim_start_matches('-').split('.').next()?.parse().ok()?;
        Some((date, Timestamp::from_ms(ms), !at.starts_with('-')))
    });
    facts.collect()
}

/// The logged dates in the item of a year.
fn dates_of(item: &Item) -> Result<Vec<NaiveDate>, StoreError> {
    let corrupt = || StoreError::corrupt("year of daily logs", "its key has another form");
    let year = sk_of(item).strip_prefix(SORT_PREFIX).and_then(|year| year.parse().ok());
    let year: i32 = year.ok_or_else(corrupt)?;
    let date = |day: &String| {
        let day: u32 = day.parse().ok()?;
        NaiveDate::from_ymd_opt(year, day / 100, day % 100)
    };
    let days = item.get("logged").and_then(|logged| logged.as_ns().ok());
    Ok(days.into_iter().flatten().filter_map(date).collect())
}
