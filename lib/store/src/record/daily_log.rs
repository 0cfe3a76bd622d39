//! The daily log's dates. Saving and deleting a date are one conditional update each: what was said last, by the time at which it was
//! said, counts, in whatever order it comes.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{Datelike, NaiveDate};
use domain::daily_log::DateRange;
use domain::fact_time::FactTime;
use domain::id::ClientId;
use futures::future::try_join;

use super::{RecordReader, Recorded, Records, key, known, partition};
use crate::db::{Ask, Item, ItemUpdate, Part, StoreError, Transacted, Written, failed, n, retry, s};
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
    /// Notes that the daily log was kept on a date: the date and the client's watch side by side, since a year's item
    /// is too large for a transaction on every day. A fact that fails in between comes again and does both again.
    pub async fn save_daily_log(
        &self,
        client: &ClientId,
        date: NaiveDate,
        fact: FactContext<'_>,
    ) -> Result<Recorded, StoreError> {
        let (is_seen, standing) = try_join(self.facts.is_seen(fact), self.clients.standing(client)).await?;
        let stored = match known(standing) {
            Ok(_) if is_seen => return Ok(Recorded::Applied),
            Ok(stored) => stored,
            Err(outcome) => return Ok(outcome),
        };
        let watch = self.watches.change_alone(client, WatchUpdate::daily_log(date), fact.marked());
        let (written, watched) = try_join(self.date(client, date, fact, true).alone(&self.db), watch).await?;
        if let Written::Refused(_) = written {
            // A later fact has set the date, and may have deleted its log: the next evaluation looks up the latest
            // date.
            self.watches.change_alone(client, WatchUpdate::daily_log_deleted(), fact.marked()).await?;
        }
        if watched == Changed::Missing {
            self.clients.restore_watch(&stored, fact.now).await?;
        }
        Ok(Recorded::Unchanged)
    }

    /// Notes that a date's log was deleted.
    pub async fn delete_daily_log(
        &self,
        client: &ClientId,
        date: NaiveDate,
        fact: FactContext<'_>,
    ) -> Result<Recorded, StoreError> {
        let stored = match known(self.clients.standing(client).await?) {
            Ok(stored) => stored,
            Err(outcome) => return Ok(outcome),
        };
        retry("the client's watch", || async {
            let date = self.date(client, date, fact, false).in_transaction(Part::Record);
            let watch = self.watches.change(client, WatchUpdate::daily_log_deleted(), fact.marked());
            let writes = [date, watch, self.facts.mark_once(fact)];
            Ok(match self.clients.commit(&stored, &writes, fact.now).await? {
                Transacted::Done => Some(Recorded::Applied),
                // Applied before, or a later fact has set the date.
                Transacted::Refused(refused) => {
                    (refused.is(Part::Fact) || refused.is(Part::Record)).then_some(Recorded::Unchanged)
                }
            })
        })
        .await
    }

    /// Sets a date, unless a later fact has set it.
    fn date(&self, client: &ClientId, date: NaiveDate, fact: FactContext<'_>, logged: bool) -> ItemUpdate<'_> {
        // A time before 1970 has no sign to spare: it counts as the beginning of time.
        let at = fact.occurred_at.max(FactTime::from_ms(1)).decimal_ms();
        let minus_at = format!("-{at}");
        let (update, set) = match logged {
            true => ("SET #date = :set ADD logged :day", &at),
            false => ("SET #date = :set DELETE logged :day", &minus_at),
        };
        let day = AttributeValue::Ns(vec![(100 * date.month() + date.day()).to_string()]);
        let values = [(":day", day), (":set", n(set)), (":at", n(&at)), (":minus_at", n(&minus_at))];
        ItemUpdate {
            table: &self.table,
            key: key(client, &sk(date.year())),
            update: update.to_owned(),
            condition: "attribute_not_exists(#date) OR #date BETWEEN :minus_at AND :at".to_owned(),
            names: HashMap::from([("#date".to_owned(), date.format("d%m%d").to_string())]),
            values: values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
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
