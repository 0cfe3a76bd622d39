//! Table `requests`: the request log of each coach. Kept for 14 days.
//! pk `COACH#<coach_id>`, sk `<milliseconds>#<request id>`: the order of the log.
//!
//! 1. `put` PutItem, without a condition: the key of a request's record is its own.
//! 2. `page` Query, consistent, newest first: a limited number of records, of which a filter shows some.
//! 3. `summary` Query, consistent, newest first.
//! 4. `query_about` Query of a coach's whole log, consistent, for operators: the requests whose path names some ids.

use std::time::Duration;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::id::CoachId;
use domain::request_log::{
    MAX_READ_RECORDS, MAX_SUMMED_RECORDS, REQUEST_RETENTION, RequestFilter, RequestPosition, RequestRecord,
    RequestSummary, SummaryPeriod,
};
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{Db, Item, StoreError, Table, from_item, query_page, query_up_to, s, to_item};

const ENTITY: &str = "request record";
/// Records that are read at once while a filter looks for some.
const FILTERED_AT_ONCE: usize = 500;
/// Time limit of keeping a record. The request's answer waits for it.
const KEEP_WITHIN: Duration = Duration::from_millis(300);

/// The requests table.
#[derive(Clone)]
pub struct Requests {
    table: Table,
}

/// A record as stored.
#[derive(Serialize, Deserialize)]
struct StoredRequest {
    pk: String,
    sk: String,
    expires_at: i64,
    #[serde(flatten)]
    record: RequestRecord,
}

/// The part of a log that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct RequestsWanted<'a> {
    pub coach: &'a CoachId,
    pub filter: &'a RequestFilter,
    /// The page begins after this record.
    pub after: Option<&'a RequestPosition>,
    /// The most records of the page.
    pub limit: usize,
}

/// A page of the log.
#[derive(Debug, Default)]
pub struct RequestsRead {
    pub records: Vec<RequestRecord>,
    /// The end of the page, if more records may follow.
    pub next: Option<RequestPosition>,
}

impl Requests {
    /// The table that `REQUESTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "REQUESTS_TABLE")? })
    }

    /// The same table for `put` alone, which is tried once and for a limited time.
    pub fn to_keep(env: &Environment) -> Result<Self, BoxError> {
        Self::new(env, &Db::with_one_try(env, KEEP_WITHIN))
    }

    /// Keeps the record of a request.
    pub async fn put(&self, coach: &CoachId, record: RequestRecord) -> Result<(), StoreError> {
        let stored = StoredRequest {
            pk: partition(coach),
            sk: position_of(&record).to_string(),
            expires_at: (record.at + REQUEST_RETENTION).unix_s(),
            record,
        };
        self.table.write(to_item(&stored)).put_now().await.map(drop)
    }

    /// Reads a page, newest first. A page before the end may be shorter than `limit`.
    pub async fn page(&self, wanted: &RequestsWanted<'_>, now: Timestamp) -> Result<RequestsRead, StoreError> {
        let RequestsWanted { coach, filter, after, limit } = *wanted;
        let last = filter.until.map(RequestPosition::begin).into_iter().chain(after.map(ToString::to_string)).min();
        let mut query = match self.newest_first(coach, kept_since(filter.since, now), last) {
            Some(query) => query,
            None => return Ok(RequestsRead::default()),
        };
        let at_once = if *filter == RequestFilter::default() { limit + 2 } else { FILTERED_AT_ONCE };
        let (mut found, mut passed, mut read) = (RequestsRead::default(), None, 0);
        loop {
            let page = query_page(query.clone().limit(count(at_once.min(MAX_READ_RECORDS - read)))).await?;
            read += page.items.len();
            for record in records(page.items)? {
                let position = position_of(&record);
                if after == Some(&position) || !filter.includes(&record) {
                    passed = Some(position);
                    continue;
                }
                if found.records.len() == limit {
                    found.next = found.records.last().map(position_of);
                    return Ok(found);
                }
                passed = Some(position);
                found.records.push(record);
            }
            match page.next {
                None => return Ok(found),
                Some(_) if read >= MAX_READ_RECORDS => return Ok(RequestsRead { next: passed, ..found }),
                Some(start) => query = query.set_exclusive_start_key(Some(start)),
            }
        }
    }

    /// Counts the requests of each key in a period. Reads a limited number of records, the latest.
    pub async fn summary(
        &self,
        coach: &CoachId,
        period: SummaryPeriod,
        now: Timestamp,
    ) -> Result<RequestSummary, StoreError> {
        let Some(query) = self.newest_first(coach, kept_since(Some(period.since), now), None) else {
            return Ok(RequestSummary::of([], true));
        };
        // One more than are counted shows whether others follow.
        let query = query.limit(count(MAX_SUMMED_RECORDS + 1));
        let mut records = records(query_up_to(query, MAX_SUMMED_RECORDS + 1).await?)?;
        let complete = records.len() <= MAX_SUMMED_RECORDS;
        records.truncate(MAX_SUMMED_RECORDS);
        Ok(RequestSummary::of(records, complete))
    }

    /// The query of a log from a time to the text of a position, or to its end. `None`: nothing can lie in between.
    fn newest_first(&self, coach: &CoachId, since: Timestamp, last: Option<String>) -> Option<QueryFluentBuilder> {
        /// A text above all positions.
        const END: &str = "~";
        let (first, last) = (RequestPosition::begin(since), last.unwrap_or_else(|| END.to_owned()));
        if first > last {
            return None;
        }
        let values = [(":pk", s(partition(coach))), (":first", s(first)), (":last", s(last))];
        let query = self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values);
        Some(query.consistent_read(true).scan_index_forward(false))
    }
}

/// The query of a coach's requests whose paths name these ids, at most a hundred.
pub(crate) fn query_about(table: &Table, coach: &CoachId, targets: &[String]) -> QueryFluentBuilder {
    let names: Vec<String> = (0..targets.len()).map(|i| format!(":target{i}")).collect();
    let query = table.query("pk = :pk", [(":pk", s(partition(coach)))]).consistent_read(true);
    let query = query.filter_expression(format!("#target IN ({})", names.join(", ")));
    let query = query.expression_attribute_names("#target", "target");
    let values = names.into_iter().zip(targets);
    values.fold(query, |query, (name, target)| query.expression_attribute_values(name, s(target)))
}

/// The earliest arrival whose record is kept and wanted. The TTL removes records some time after their end.
fn kept_since(since: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let kept = now + -REQUEST_RETENTION;
    since.map_or(kept, |since| since.max(kept))
}

fn records(items: Vec<Item>) -> Result<Vec<RequestRecord>, StoreError> {
    items.into_iter().map(|item| from_item::<StoredRequest>(ENTITY, item).map(|stored| stored.record)).collect()
}

fn position_of(record: &RequestRecord) -> RequestPosition {
    RequestPosition { at: record.at, id: record.id.clone() }
}

fn partition(coach: &CoachId) -> String {
    format!("COACH#{coach}")
}

fn count(items: usize) -> i32 {
    i32::try_from(items).unwrap_or(i32::MAX)
}
