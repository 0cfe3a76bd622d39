//! Pages of the CRM's lists: records of a coach by UUID in either direction, or by their last update, after a cursor
//! whose record may be deleted by now.
//!
//! A list is the base table or a local index. So a list shows a record as soon as it is written, and the list by UUID
//! skips merged contacts and cancelled bookings. The cost: DynamoDB limits the items of a coach to 10 GB in all.
//!
//! A list with a filter reads a limited number of records (`find_shown`, also for the list of clients). Its page may
//! be short or empty and yet not be the last one.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::booking::MAX_READ_BOOKINGS;
use domain::crm_list::{ById, ByUpdate, PageRequest, Position, Update, Walk};
use domain::id::{CoachId, parse_uuid};
use domain::list::Order;
use domain::name_filter::MAX_READ_FOR_NAME;
use uuid::Uuid;

use crate::db::{Item, StoreError, Table, query_page, query_up_to, s, text};
use crate::updated::UPDATED;
use crate::workspace::partition;

/// Most bytes of a page as JSON. Lambda's answers end at 6 MB, and escaping doubles the quotation marks.
pub const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// Queries of a list with a filter, one after the other. Each reads as many records, far less than 1 MB.
const FILTER_QUERIES: u32 = 4;

/// The range of a coach's partition that a list shows.
pub(crate) struct Listing<'a> {
    pub(crate) table: &'a Table,
    /// The local index of the list by UUID, whose range key is the attribute of the same name; `None`: the table
    /// itself, by `sk`.
    pub(crate) index: Option<&'a str>,
    /// Prefix of the range keys, with `#` at its end. A UUID follows, after the time in the index `by_update`.
    pub(crate) prefix: &'a str,
}

/// A condition on the records of a list. Each clause holds.
#[derive(Default)]
pub(crate) struct Filter {
    clauses: Vec<String>,
    values: Vec<(String, AttributeValue)>,
}

/// Items of a query that a filter shows.
pub(crate) struct Found {
    pub(crate) items: Vec<Item>,
    /// The key at which the reading ended; `None` at the end of the query.
    pub(crate) read_to: Option<Item>,
}

/// The first records of a list.
pub(crate) struct Listed<T> {
    pub(crate) records: Vec<T>,
    /// True if more records follow.
    pub(crate) more: bool,
}

/// A page of a list of the CRM.
#[derive(Debug, Clone)]
pub struct Page<T> {
    pub records: Vec<Placed<T>>,
    /// The end of the page, if more records may follow.
    pub next: Option<Position>,
}

/// A record with its position in the list.
#[derive(Debug, Clone)]
pub struct Placed<T> {
    pub position: Position,
    pub record: T,
}

impl Filter {
    /// Adds a clause with the value that it names, unless there is no value.
    pub(crate) fn clause(mut self, clause: &'static str, name: &'static str, value: Option<AttributeValue>) -> Self {
        if let Some(value) = value {
            self.clauses.push(clause.to_owned());
            self.values.push((name.to_owned(), value));
        }
        self
    }

    /// Adds a clause: the attribute has one of up to a hundred values. `None` adds nothing.
    pub(crate) fn one_of(mut self, attribute: &'static str, values: Option<Vec<AttributeValue>>) -> Self {
        if let Some(values) = values {
            let names: Vec<String> = (0..values.len()).map(|number| format!(":{attribute}_{number}")).collect();
            self.clauses.push(format!("{attribute} IN ({})", names.join(", ")));
            self.values.extend(names.into_iter().zip(values));
        }
        self
    }

    fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    fn apply(self, query: QueryFluentBuilder) -> QueryFluentBuilder {
        let query = query.filter_expression(self.clauses.join(" AND "));
        self.values.into_iter().fold(query, |query, (name, value)| query.expression_attribute_values(name, value))
    }
}

impl Listing<'_> {
    /// Reads a page of items, consistently.
    pub(crate) async fn page(&self, coach: &CoachId, request: &PageRequest<Walk>) -> Result<Page<Item>, StoreError> {
        let wanted = request.limit + 1;
        let query = self.query(coach, &request.walk).limit(count(wanted));
        let items = query_up_to(query, wanted as usize).await?;
        Ok(Page::first_of(self.placed(&request.walk, items)?, request.limit))
    }

    /// Reads a page of the items that a filter shows, consistently.
    pub(crate) async fn filtered_page(
        &self,
        coach: &CoachId,
        request: &PageRequest<Walk>,
        filter: Filter,
    ) -> Result<Page<Item>, StoreError> {
        if filter.is_empty() {
            return self.page(coach, request).await;
        }
        let query = filter.apply(self.query(coach, &request.walk));
        self.shown_page(query, request, MAX_READ_BOOKINGS, |_| true).await
    }

    /// Reads a page of the items that `is_shown` selects by a name, consistently. DynamoDB cannot fold one.
    pub(crate) async fn page_by_name(
        &self,
        coach: &CoachId,
        request: &PageRequest<Walk>,
        is_shown: impl Fn(&Item) -> bool,
    ) -> Result<Page<Item>, StoreError> {
        self.shown_page(self.query(coach, &request.walk), request, MAX_READ_FOR_NAME, is_shown).await
    }

    async fn shown_page(
        &self,
        query: QueryFluentBuilder,
        request: &PageRequest<Walk>,
        most_read: u32,
        is_shown: impl Fn(&Item) -> bool,
    ) -> Result<Page<Item>, StoreError> {
        let Found { items, read_to } = find_shown(query, most_read, request.limit, is_shown).await?;
        let read_to = read_to.map(|key| self.position(&request.walk, &key)).transpose()?;
        let mut listed = Page::first_of(self.placed(&request.walk, items)?, request.limit);
        listed.next = listed.next.or(read_to);
        Ok(listed)
    }

    fn query(&self, coach: &CoachId, walk: &Walk) -> QueryFluentBuilder {
        let [from, to] = match walk {
            Walk::ById(walk) => bounds(self.prefix, walk),
            Walk::ByUpdate(walk) => update_bounds(self.prefix, walk),
        };
        let range = self.range(walk);
        let values = [(":pk", s(partition(coach))), (":from", s(from)), (":to", s(to))];
        let query = self.table.query(&format!("pk = :pk AND #{range} BETWEEN :from AND :to"), values);
        let index = match walk {
            Walk::ById(_) => self.index,
            Walk::ByUpdate(_) => Some("by_update"),
        };
        let query = query.set_index_name(index.map(str::to_owned)).consistent_read(true);
        query.set_scan_index_forward(is_backward(walk).then_some(false))
    }

    /// The attribute by which a walk goes.
    fn range(&self, walk: &Walk) -> &str {
        match walk {
            Walk::ById(_) => self.index.unwrap_or("sk"),
            Walk::ByUpdate(_) => UPDATED,
        }
    }

    /// The items with their positions.
    fn placed(&self, walk: &Walk, items: Vec<Item>) -> Result<Vec<Placed<Item>>, StoreError> {
        items.into_iter().map(|record| Ok(Placed { position: self.position(walk, &record)?, record })).collect()
    }

    /// The position of an item, or of the end of a query.
    fn position(&self, walk: &Walk, item: &Item) -> Result<Position, StoreError> {
        let place = text(item, self.range(walk)).strip_prefix(self.prefix).unwrap_or_default();
        let position = match walk {
            Walk::ById(_) => parse_uuid(place).ok().map(Position::Id),
            Walk::ByUpdate(_) => Update::parse(place).map(Position::Update),
        };
        position.ok_or_else(|| StoreError::corrupt("record", "its place in the list"))
    }
}

/// Runs a query until it has found `wanted` items that are shown, has read `most_read` items, or has ended. It may find
/// more items than wanted.
pub(crate) async fn find_shown(
    mut query: QueryFluentBuilder,
    most_read: u32,
    wanted: u32,
    is_shown: impl Fn(&Item) -> bool,
) -> Result<Found, StoreError> {
    query = query.limit(count(most_read / FILTER_QUERIES));
    let mut found = Found { items: Vec::new(), read_to: None };
    for _ in 0..FILTER_QUERIES {
        let page = query_page(query.clone()).await?;
        found.items.extend(page.items.into_iter().filter(&is_shown));
        found.read_to = page.next;
        if found.read_to.is_none() || found.items.len() >= wanted as usize {
            break;
        }
        query = query.set_exclusive_start_key(found.read_to.clone());
    }
    Ok(found)
}

fn is_backward(walk: &Walk) -> bool {
    matches!(walk, Walk::ById(ById { order: Order::Desc, .. }))
}

fn count(records: u32) -> i32 {
    i32::try_from(records).unwrap_or(i32::MAX)
}

/// The first and the last range key of the records after a cursor.
pub(crate) fn bounds(prefix: &str, walk: &ById) -> [String; 2] {
    // `!` sorts after the whole key of the cursor's record, and `~` after all keys with the prefix.
    let (first, last) = (prefix.to_owned(), format!("{prefix}~"));
    match (walk.order, walk.after) {
        (Order::Asc | Order::Desc, None) => [first, last],
        (Order::Asc, Some(after)) => [format!("{prefix}{after}!"), last],
        (Order::Desc, Some(after)) => {
            let below = after.as_u128().checked_sub(1).map(Uuid::from_u128);
            // No key is the prefix alone.
            let last = below.map_or_else(|| first.clone(), |below| format!("{prefix}{below}"));
            [first, last]
        }
    }
}

fn update_bounds(prefix: &str, walk: &ByUpdate) -> [String; 2] {
    let since = format!("{prefix}{}", walk.since);
    let after = walk.after.map(|after| format!("{prefix}{after}!"));
    [after.map_or(since.clone(), |after| after.max(since)), format!("{prefix}~")]
}

impl<T> Listed<T> {
    /// Takes the first `limit` records. One more shows that others follow.
    pub(crate) fn new(mut records: Vec<T>, limit: u32) -> Self {
        let more = records.len() > limit as usize;
        records.truncate(limit as usize);
        Self { records, more }
    }
}

impl<T> Page<T> {
    /// Builds a page of the first `limit` records. One more shows that others follow.
    pub(crate) fn first_of(records: Vec<Placed<T>>, limit: u32) -> Self {
        let Listed { records, more } = Listed::new(records, limit);
        let next = records.last().map(|last| last.position).filter(|_| more);
        Self { records, next }
    }

    /// Converts the records, and leaves out those without a value.
    pub(crate) fn try_map<U, E>(self, mut to: impl FnMut(T) -> Result<Option<U>, E>) -> Result<Page<U>, E> {
        let convert = |Placed { position, record }| {
            to(record).transpose().map(|record| record.map(|record| Placed { position, record }))
        };
        let records = self.records.into_iter().filter_map(convert).collect::<Result<_, E>>()?;
        Ok(Page { records, next: self.next })
    }
}

#[cfg(test)]
mod tests {
    use domain::time::Timestamp;

    use super::*;

    #[test]
    fn the_bounds_of_a_page_exclude_the_cursors_record_and_are_in_order() {
        let key = |number: u128| format!("BOOKING#{}", Uuid::from_u128(number));
        let last = u128::MAX;
        for (order, after, inside, outside) in [
            (Order::Asc, None, vec![0, 1, last], vec![]),
            (Order::Desc, None, vec![0, 1, last], vec![]),
            (Order::Asc, Some(5), vec![6, last], vec![0, 4, 5]),
            (Order::Desc, Some(5), vec![0, 4], vec![5, 6, last]),
            (Order::Desc, Some(0), vec![], vec![0, 1]),
            (Order::Asc, Some(last), vec![], vec![0, last]),
        ] {
            let [from, to] = bounds("BOOKING#", &ById { order, after: after.map(Uuid::from_u128) });
            assert!(from <= to, "{from} {to}");
            let contains = |number: &u128| (from.clone()..=to.clone()).contains(&key(*number));
            assert!(inside.iter().all(contains) && !outside.iter().any(contains), "{order:?} {after:?}");
        }
    }

    #[test]
    fn the_bounds_of_updates_include_the_earliest_time_and_exclude_the_cursor() {
        let update = |ms, id| Update { at: Timestamp::from_ms(ms), id: Uuid::from_u128(id) };
        let walk = |since, after| ByUpdate { since: Timestamp::from_ms(since), after };
        for (walk, inside, outside) in [
            (walk(5, None), update(5, 0), update(4, u128::MAX)),
            (walk(5, Some(update(5, 7))), update(5, 8), update(5, 7)),
            (walk(9, Some(update(5, 7))), update(9, 0), update(8, 0)),
        ] {
            let [from, to] = update_bounds("CONTACT#", &walk);
            let contains = |update: Update| (from.clone()..=to.clone()).contains(&format!("CONTACT#{update}"));
            assert!(contains(inside) && !contains(outside), "{walk:?}");
        }
    }
}
