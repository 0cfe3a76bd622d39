//! Erasure of a person's deliveries: removes the rendered bodies, their signatures, and the receivers' answers, which
//! may repeat the bodies. With a signature and the endpoint's secret, guesses of a body could be confirmed. Ids, times
//! and statuses stay in the log. A pending delivery ends. An attempt under way is still recorded.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::delivery::{DeliveryState, DeliveryStatus};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Deliveries;
use super::record::{DeliveryItem, ENTITY, StoredAttempt};
use crate::db::{Item, MAX_ROUNDS, StoreError, Table, Written, backoff, from_item, query_page, s, sk_of};

/// Deliveries per page: each may hold excerpts of some sixty answers.
const PAGE_ITEMS: i32 = 100;
/// Pages that one call erases.
const MAX_PAGES: usize = 3;
/// Concurrent updates.
const CONCURRENT_UPDATES: usize = 16;
/// The log's line for a delivery that an erasure ends.
const REASON: &str = "not sent: client erased";

/// The progress of an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasureProgress {
    Done,
    /// Done up to this sort key. More follow.
    Until(String),
}

/// An index that leads from a person to deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectIndex {
    /// Deliveries that name the client or contact.
    Named,
    /// Deliveries about records of a contact that name the contact into which it was merged.
    Merged,
}

impl SubjectIndex {
    pub fn name(self) -> &'static str {
        match self {
            Self::Named => "by_subject",
            Self::Merged => "by_merged_contact",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Named => "subject_ref",
            Self::Merged => "merged_contact_ref",
        }
    }

    /// The query of the keys of a person's deliveries after a sort key, or of all. The person is a client (its id) or a
    /// contact (its [`ContactRef`](crate::contact_ref::ContactRef)).
    pub(crate) fn query(self, table: &Table, subject: &str, after: &str) -> QueryFluentBuilder {
        // DynamoDB has no empty key values.
        let after = if after.is_empty() { " " } else { after };
        let values = [(":subject", s(subject)), (":after", s(after))];
        let query = table.query(&format!("{} = :subject AND sk > :after", self.key()), values);
        query.index_name(self.name()).projection_expression("pk, sk")
    }
}

impl Deliveries {
    /// Removes all content from the deliveries that an index has for a client (its id) or a contact (its
    /// [`ContactRef`](crate::contact_ref::ContactRef)): at most three pages, after `after`.
    pub async fn erase(
        &self,
        index: SubjectIndex,
        subject: &str,
        after: Option<&str>,
        now: Timestamp,
    ) -> Result<ErasureProgress, StoreError> {
        let mut after = after.unwrap_or_default().to_owned();
        for _ in 0..MAX_PAGES {
            let page = query_page(index.query(&self.table, subject, &after).limit(PAGE_ITEMS)).await?;
            let keys = page.items;
            after = keys.last().map(|key| sk_of(key).to_owned()).unwrap_or(after);
            let items = self.table.read(keys).await?;
            let erased = items.into_iter().map(|item| self.erase_body(item, now));
            stream::iter(erased).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
            if page.next.is_none() {
                return Ok(ErasureProgress::Done);
            }
        }
        Ok(ErasureProgress::Until(after))
    }

    /// Erases one delivery. If the delivery changes meanwhile, it is read again.
    async fn erase_body(&self, item: Item, now: Timestamp) -> Result<(), StoreError> {
        let mut record: DeliveryItem = from_item(ENTITY, item)?;
        for round in 0..MAX_ROUNDS {
            if record.erased {
                return Ok(());
            }
            backoff(round).await;
            match self.replace(record.without_content(now)).put_now().await? {
                Written::Done(()) | Written::Refused(None) => return Ok(()),
                Written::Refused(Some(item)) => record = from_item(ENTITY, item)?,
            }
        }
        Err(StoreError::contention("the erasure of a delivery"))
    }
}

impl DeliveryItem {
    /// The record without content. A pending delivery ends.
    fn without_content(&self, now: Timestamp) -> Self {
        let mut attempts: Vec<StoredAttempt> = self.attempts.iter().map(StoredAttempt::without_excerpt).collect();
        let mut state = self.state();
        if state.status == DeliveryStatus::Pending {
            let end = StoredAttempt::unsent(now, REASON);
            attempts.push(end.not_before(attempts.last().map_or(now, StoredAttempt::at)));
            state = DeliveryState { status: DeliveryStatus::Failed, next_attempt_at: None, ..state };
        }
        Self { attempts, erased: true, sealed: Vec::new(), signature: None, ..self.clone() }.in_state(&state)
    }
}
