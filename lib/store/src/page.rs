//! Pages of the CRM's lists: records of a coach by UUID, after a cursor whose record may be deleted by now.
//!
//! A list is the base table or a local index. So a list shows a record as soon as it is written, and skips merged
//! contacts and cancelled bookings. The cost: DynamoDB limits the items of a coach to 10 GB in all.

use domain::id::CoachId;
use uuid::Uuid;

use crate::db::{Item, StoreError, Table, query_up_to, s};
use crate::workspace::partition;

/// Most bytes of a page as JSON. Lambda's answers end at 6 MB, and escaping doubles the quotation marks.
pub const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// The range of a coach's partition that a list shows.
pub(crate) struct Listing<'a> {
    pub(crate) table: &'a Table,
    /// A local index whose range key is the attribute of the same name; `None`: the table itself, by `sk`.
    pub(crate) index: Option<&'a str>,
    /// Prefix of the range keys, with `#` at its end. A UUID follows.
    pub(crate) prefix: &'a str,
}

/// The page of a list that a caller asks for.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest {
    /// The page begins after this record.
    pub after: Option<Uuid>,
    /// The most records of the page.
    pub limit: u32,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    pub records: Vec<T>,
    /// True if more records follow.
    pub more: bool,
}

impl Listing<'_> {
    /// Reads a page of items, consistently.
    pub(crate) async fn page(&self, coach: &CoachId, request: PageRequest) -> Result<Listed<Item>, StoreError> {
        // `!` sorts after the whole key of the cursor's record, and `~` after all keys with the prefix.
        let from = request.after.map_or_else(|| self.prefix.to_owned(), |after| format!("{}{after}!", self.prefix));
        let values = [(":pk", s(partition(coach))), (":from", s(from)), (":to", s(format!("{}~", self.prefix)))];
        let range = self.index.unwrap_or("sk");
        let query = self.table.query(&format!("pk = :pk AND #{range} BETWEEN :from AND :to"), values);
        let query = query.set_index_name(self.index.map(str::to_owned)).consistent_read(true);
        let wanted = request.limit + 1;
        let query = query.limit(i32::try_from(wanted).unwrap_or(i32::MAX));
        Ok(Listed::new(query_up_to(query, wanted as usize).await?, request.limit))
    }
}

impl<T> Listed<T> {
    /// Builds a page of `limit` records from a query that asked for one more, which shows whether more follow.
    pub(crate) fn new(mut records: Vec<T>, limit: u32) -> Self {
        let more = records.len() > limit as usize;
        records.truncate(limit as usize);
        Self { records, more }
    }

    /// Converts the records.
    pub(crate) fn try_map<U, E>(self, to: impl FnMut(T) -> Result<U, E>) -> Result<Listed<U>, E> {
        let records = self.records.into_iter().map(to).collect::<Result<_, E>>()?;
        Ok(Listed { records, more: self.more })
    }
}
