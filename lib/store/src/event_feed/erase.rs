//! Erasure of persons' events from a feed. An item stays, with the id and the time of its event: the next position
//! derives from it.
//!
//! No index leads from a person to events: it would double the cost of each event. An erasure reads the feeds of the
//! person's coaches instead, which hold two months at most.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::id::{ClientId, CoachId, ContactId};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{EventFeed, PREFIX, PREFIX_END};
use crate::db::{StoreError, Table, query_page, s, sk_of};
use crate::delivery::ErasureProgress;
use crate::workspace::{key_of, partition};

/// Pages of 1 MB that one call reads.
const MAX_PAGES: usize = 3;
const CONCURRENT_UPDATES: usize = 16;
/// Contacts per call: DynamoDB compares with a hundred values.
pub const MAX_ERASED_CONTACTS: usize = 40;

/// The query of a coach's events that name a client or contacts, at most [`MAX_ERASED_CONTACTS`], consistent. `None`:
/// there is nobody to be named.
pub(crate) fn query_naming(
    table: &Table,
    coach: &CoachId,
    client: Option<&ClientId>,
    contacts: &[ContactId],
) -> Option<QueryFluentBuilder> {
    let contact_values: Vec<_> =
        contacts.iter().enumerate().map(|(i, contact)| (format!(":contact{i}"), s(contact.to_string()))).collect();
    let names = contact_values.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let mut filters = Vec::new();
    filters.extend(client.map(|_| "client_id = :client".to_owned()));
    if !contacts.is_empty() {
        filters.extend(["contact_id", "merged_contact_id"].map(|member| format!("{member} IN ({names})")));
    }
    if filters.is_empty() {
        return None;
    }
    let values = [(":pk", s(partition(coach))), (":first", s(PREFIX)), (":last", s(PREFIX_END))];
    let query = table.query("pk = :pk AND sk BETWEEN :first AND :last", values).consistent_read(true);
    let query = query.filter_expression(filters.join(" OR "));
    let client_value = client.map(|client| (":client".to_owned(), s(client.as_str())));
    let values = client_value.into_iter().chain(contact_values);
    Some(values.fold(query, |query, (name, value)| query.expression_attribute_values(name, value)))
}

impl EventFeed {
    /// Removes the content of the events that name a client or contacts of a coach: at most three pages, after `after`.
    /// `contacts`: at most [`MAX_ERASED_CONTACTS`].
    pub async fn erase(
        &self,
        coach: &CoachId,
        client: Option<&ClientId>,
        contacts: &[ContactId],
        after: Option<&str>,
    ) -> Result<ErasureProgress, StoreError> {
        let Some(query) = query_naming(&self.table, coach, client, contacts) else { return Ok(ErasureProgress::Done) };
        let query = query.projection_expression("pk, sk");
        let mut start = after.map(|sk| key_of(coach, sk));
        for _ in 0..MAX_PAGES {
            let page = query_page(query.clone().set_exclusive_start_key(start)).await?;
            let erased = page.items.into_iter().map(|key| async {
                let item = self.table.write(key).when_present();
                let erased = item.remove(["sealed", "type_position", "client_id", "contact_id", "merged_contact_id"]);
                erased.update_now().await.map(drop)
            });
            stream::iter(erased).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
            start = page.next;
            if start.is_none() {
                return Ok(ErasureProgress::Done);
            }
        }
        Ok(ErasureProgress::Until(start.as_ref().map_or(PREFIX, sk_of).to_owned()))
    }
}
