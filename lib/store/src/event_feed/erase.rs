//! Erasure of a subject's events from feeds. An item stays, with the id and the time of its event: the next position
//! derives from it.
//!
//! No index leads from a subject to its events: it would double the cost of each event. An erasure reads the feeds of
//! the subject's coaches instead, which hold two months at most.

use std::collections::BTreeSet;

use domain::id::CoachId;
use domain::subject::Subject;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{EventFeed, PREFIX, PREFIX_END};
use crate::db::{StoreError, query_page, s, sk_of};
use crate::delivery::ErasureProgress;
use crate::workspace::{key_of, partition};

/// Pages of 1 MB that one call reads.
const MAX_PAGES: usize = 3;
const CONCURRENT_UPDATES: usize = 16;
/// Separates coach and sort key in the progress of an erasure. No id has it.
const SEPARATOR: char = ' ';

impl EventFeed {
    /// Returns true for the progress of an erasure from feeds.
    pub fn is_erasure_progress(after: &str) -> bool {
        after.contains(SEPARATOR)
    }

    /// Removes the content of a subject's events from the feeds of these coaches: at most three pages, after `after`.
    pub async fn erase(
        &self,
        coaches: &BTreeSet<CoachId>,
        subject: &Subject,
        after: Option<&str>,
    ) -> Result<ErasureProgress, StoreError> {
        let (name, id) = match (&subject.client_id, &subject.contact_id) {
            (Some(client), _) => ("client_id", client.to_string()),
            (None, Some(contact)) => ("contact_id", contact.to_string()),
            (None, None) => return Ok(ErasureProgress::Done),
        };
        let (mut pages, after) = (0, after.and_then(|after| after.split_once(SEPARATOR)));
        for coach in coaches.iter().skip_while(|coach| after.is_some_and(|(last, _)| coach.as_str() < last)) {
            let mut start = after.filter(|(last, _)| coach.as_str() == *last).map(|(_, sk)| key_of(coach, sk));
            loop {
                if pages == MAX_PAGES {
                    let sk = start.as_ref().map_or(PREFIX, sk_of);
                    return Ok(ErasureProgress::Until(format!("{coach}{SEPARATOR}{sk}")));
                }
                let values =
                    [(":pk", s(partition(coach))), (":first", s(PREFIX)), (":last", s(PREFIX_END)), (":id", s(&id))];
                let query = self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values).consistent_read(true);
                let query = query.filter_expression(format!("{name} = :id")).projection_expression("pk, sk");
                let page = query_page(query.set_exclusive_start_key(start)).await?;
                let erased = page.items.into_iter().map(|key| async {
                    let item = self.table.write(key).when_present();
                    item.remove(["sealed", "client_id", "contact_id"]).update_now().await.map(drop)
                });
                stream::iter(erased).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
                (pages, start) = (pages + 1, page.next);
                if start.is_none() {
                    break;
                }
            }
        }
        Ok(ErasureProgress::Done)
    }
}
