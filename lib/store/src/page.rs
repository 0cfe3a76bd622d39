//! Pages of the CRM's lists: records of a coach in the order of their UUIDs, after a cursor that need not exist any more.

use domain::id::CoachId;
use uuid::Uuid;

use crate::db::{Ask, Db, Item, StoreError, failed, s};
use crate::workspace::partition;

/// What a page has at most, as JSON: Lambda's answers end at 6 MB, in which the quotation marks of this are written with two characters.
pub const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// What of a coach's partition a list shows.
pub(crate) struct Listing<'a> {
    pub(crate) table: &'a str,
    /// A local index whose range key is the attribute of the same name; `None`: the table itself, by `sk`.
    pub(crate) index: Option<&'a str>,
    /// What the range keys begin with, `#` at its end; a UUID follows.
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
    /// Whether more follow.
    pub more: bool,
}

impl Listing<'_> {
    /// A page of items, read consistently.
    pub(crate) async fn page(
        &self,
        db: &Db,
        coach: &CoachId,
        request: PageRequest,
    ) -> Result<Listed<Item>, StoreError> {
        // What follows a record is above everything that begins with its key, and below the next character of the prefix.
        let from = request.after.map_or_else(|| self.prefix.to_owned(), |after| format!("{}{after}!", self.prefix));
        let to = format!("{}~", self.prefix);
        let wanted = request.limit as usize + 1;
        let mut records: Vec<Item> = Vec::new();
        let mut start = None;
        loop {
            let missing = i32::try_from(wanted - records.len()).unwrap_or(i32::MAX);
            let query = db.client().query().table_name(self.table).set_index_name(self.index.map(str::to_owned));
            let page = query
                .key_condition_expression("pk = :pk AND #range BETWEEN :from AND :to")
                .expression_attribute_names("#range", self.index.unwrap_or("sk"))
                .expression_attribute_values(":pk", s(partition(coach)))
                .expression_attribute_values(":from", s(&from))
                .expression_attribute_values(":to", s(&to))
                .consistent_read(true)
                .limit(missing)
                .set_exclusive_start_key(start)
                .ask()
                .await
                .map_err(|error| failed("Query", error))?;
            records.extend(page.items.unwrap_or_default());
            start = page.last_evaluated_key;
            if records.len() >= wanted || start.is_none() {
                let more = records.len() >= wanted;
                records.truncate(request.limit as usize);
                return Ok(Listed { records, more });
            }
        }
    }
}

impl<T> Listed<T> {
    /// The records as something else.
    pub(crate) fn try_map<U, E>(self, to: impl FnMut(T) -> Result<U, E>) -> Result<Listed<U>, E> {
        let records = self.records.into_iter().map(to).collect::<Result<_, E>>()?;
        Ok(Listed { records, more: self.more })
    }
}
