//! Pages of the CRM's lists: records of a coach by UUID, after a cursor that need not exist any more.

use domain::id::CoachId;
use uuid::Uuid;

use crate::db::{Item, StoreError, Table, query_up_to, s};
use crate::workspace::partition;

/// Most bytes of a page as JSON. Lambda's answers end at 6 MB, and escaping doubles the quotation marks.
pub const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// The part of a coach's partition that a list shows.
pub(crate) struct Listing<'a> {
    pub(crate) table: &'a Table,
    /// A local index whose range key is the attribute of the same name; `None`: the table itself, by `sk`.
    pub(crate) index: Option<&'a str>,
    /// Prefix of the range keys, with `#` at its end. A UUID follows.
    pub(crate) prefix: &'a str,
}

/// Which part of it.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest {
    /// Records after this one.
    pub after: Option<Uuid>,
    /// As many at most.
    pub limit: u32,
}

/// A part of a list.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    pub records: Vec<T>,
    /// True if more records follow.
    pub more: bool,
}

impl Listing<'_> {
    /// A page of items, read consistently.
    pub(crate) async fn page(&self, coach: &CoachId, request: PageRequest) -> Result<Listed<Item>, StoreError> {
        // Later keys are above everything that begins with the record's key, and below the end of the prefix.
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
    /// A page of `limit` records, where one more was asked for to see whether more follow.
    pub(crate) fn new(mut records: Vec<T>, limit: u32) -> Self {
        let more = records.len() > limit as usize;
        records.truncate(limit as usize);
        Self { records, more }
    }

    /// The records as something else.
    pub(crate) fn try_map<U, E>(self, to: impl FnMut(T) -> Result<U, E>) -> Result<Listed<U>, E> {
        let records = self.records.into_iter().map(to).collect::<Result<_, E>>()?;
        Ok(Listed { records, more: self.more })
    }
}
