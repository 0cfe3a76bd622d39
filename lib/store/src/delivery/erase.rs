//! Erasure of a client's deliveries: removes the rendered bodies, their signatures, and the receivers' answers, which
//! may repeat the bodies. With a signature and the endpoint's secret, guesses of a body could be confirmed. Ids, times
//! and statuses stay in the log. A pending delivery ends. An attempt under way is still recorded.

use domain::delivery::DeliveryStatus;
use domain::id::ClientId;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Deliveries;
use super::record::{DeliveryItem, ENTITY, StoredAttempt};
use crate::db::{self, Item, StoreError, Written, b, from_item, n, query_page, s, sk_of, to_attribute};

/// Deliveries per page: each may hold excerpts of some sixty answers.
const PAGE_ITEMS: i32 = 100;
/// Pages that one call erases.
const MAX_PAGES: usize = 3;
/// Concurrent updates.
const CONCURRENT_UPDATES: usize = 16;
/// The log's line for a delivery that an erasure ends.
pub(super) const REASON: &str = "not sent: client erased";
/// The suffix of the lease owner of an attempt whose client has been erased since it began.
const ERASED: &str = "/erased";

/// The progress of an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasureProgress {
    Done,
    /// Done up to this delivery. More follow.
    Until(String),
}

impl Deliveries {
    /// Removes all content from the deliveries about a client: at most three pages, after `after`.
    pub async fn erase_client(
        &self,
        client: &ClientId,
        after: Option<&str>,
        now: Timestamp,
    ) -> Result<ErasureProgress, StoreError> {
        let mut after = after.unwrap_or_default().to_owned();
        for _ in 0..MAX_PAGES {
            // DynamoDB has no empty key values.
            let from = if after.is_empty() { " " } else { &after };
            let values = [(":client", s(client.as_str())), (":after", s(from))];
            let query = self.table.query("client_id = :client AND sk > :after", values).index_name("by_client");
            let page = query_page(query.projection_expression("pk, sk").limit(PAGE_ITEMS)).await?;
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

    /// Erases one delivery. An attempt that begins or ends meanwhile changes the delivery, which is then read again.
    async fn erase_body(&self, item: Item, now: Timestamp) -> Result<(), StoreError> {
        let mut record: DeliveryItem = from_item(ENTITY, item)?;
        loop {
            let has_no_excerpts = record.attempts.iter().all(StoredAttempt::has_no_excerpt);
            let has_no_content = record.sealed.is_empty() && record.signature.is_none() && has_no_excerpts;
            let is_left = record.under_way(now).is_some_and(|owner| owner.ends_with(ERASED));
            if has_no_content && (record.status != DeliveryStatus::Pending || is_left) {
                return Ok(());
            }
            match self.write_erased(&record, now).await? {
                Written::Done(_) | Written::Refused(None) => return Ok(()),
                Written::Refused(Some(item)) => record = from_item(ENTITY, item)?,
            }
        }
    }

    /// Removes the content, if the record is as it was read.
    async fn write_erased(&self, record: &DeliveryItem, now: Timestamp) -> Result<Written<Item>, StoreError> {
        const NOT_UNDER_WAY: &str = "#status <> :pending OR attribute_not_exists(lease_until) OR lease_until <= :now";
        let mut lines: Vec<StoredAttempt> = record.attempts.iter().map(StoredAttempt::without_excerpt).collect();
        let erased =
            self.table.write(db::key(&record.pk, &record.sk)).set("sealed", b(Vec::new())).remove(["signature"]);
        let erased = erased.when("size(attempts) = :made", [(":made", n(record.attempts.len()))]);
        let erased = if let Some(owner) = record.under_way(now) {
            // The changed owner informs the attempt that is under way.
            let erased = erased.set("lease_owner", s(erased_owner(owner)));
            erased.when("lease_owner = :owner", [(":owner", s(owner))])
        } else {
            let mut status = record.status;
            if status == DeliveryStatus::Pending {
                lines.push(StoredAttempt::unsent(now, REASON));
                status = DeliveryStatus::Failed;
            }
            erased
                .set("status", s(status.as_str()))
                .remove(["failed_at", "next_attempt_at", "lease_owner", "lease_until", "hop", "hop_owner"])
                .when("#status = :was", [(":was", s(record.status.as_str()))])
                .when(NOT_UNDER_WAY, [(":pending", s(DeliveryStatus::Pending.as_str())), (":now", n(now.ms()))])
        };
        erased.set("attempts", to_attribute(&lines)).update_now().await
    }
}

impl DeliveryItem {
    /// The lease owner of the attempt under way.
    fn under_way(&self, now: Timestamp) -> Option<&str> {
        let is_under_way = self.status == DeliveryStatus::Pending && self.lease_until > Some(now.ms());
        self.lease_owner.as_deref().filter(|_| is_under_way)
    }
}

/// The lease owner of an attempt whose client has been erased.
pub(super) fn erased_owner(owner: &str) -> String {
    format!("{}{ERASED}", owner.strip_suffix(ERASED).unwrap_or(owner))
}
