//! Sends outbox entries and deletes them.
//!
//! The entries of a batch are sent together, in few requests. Kinds of entries do not wait for each other: a slow bus
//! holds up no webhooks.
//!
//! Only the schedule repeats a mail: a mail that SES refuses would hold up the webhooks behind it in the stream. An
//! entry is looked up before it is mailed, since the stream may bring it twice.

use std::borrow::Cow;

use chrono::TimeDelta;
use domain::change::Change;
use domain::email::Email;
use domain::notice::EndpointNotice;
use domain::time::Timestamp;
use futures::future::join_all;
use futures::stream::{self, StreamExt};
use outbound::mail::MailError;
use runtime::{BoxError, Metric, Unit, add, error_chain, note_each};
use store::outbox::{Content, Entry};

use crate::App;

/// Time for which a coach's mail is retried.
const MAIL_RETRY_TIME: TimeDelta = TimeDelta::days(1);
/// Time from the write or the release of an entry to its messages.
const OUTBOX_LATENCY_MS: Metric = Metric::logged("outbox_latency_ms", Unit::Milliseconds);

/// Entries that are deleted at once.
const CONCURRENT_DELETES: usize = 20;

/// Results, each with the index of its entry.
pub(crate) type Outcomes = Vec<(usize, Result<(), BoxError>)>;
/// Errors, each with the index of its entry.
pub(crate) type Failures = Vec<(usize, BoxError)>;
/// An entry with its index in the batch.
pub(crate) type Indexed<'a> = (usize, &'a Entry);

impl App {
    /// Sends the entries and deletes them. Returns one result per entry, in their order. Failures are logged here.
    pub(crate) async fn publish(&self, entries: &[Entry]) -> Vec<Result<(), BoxError>> {
        for Entry { content, .. } in entries {
            for id in content_ids(content) {
                note_each("event_ids", &id);
            }
            note_each("coach_ids", content.coach_id().as_str());
        }
        let named = self.name_contacts(entries).await;
        let entries = &*named.entries;
        let ready = entries.iter().enumerate().filter(|(index, _)| named.is_ready(*index)).collect();
        let (kept, mut dropped) = self.without_erased(ready).await;
        dropped.extend(named.ended);
        let changes = async { self.finish(entries, self.put_all(&kept).await).await };
        let orders = async { self.finish(entries, self.enqueue_all(&kept).await).await };
        let notices = async { self.finish(entries, self.mail_all(&kept).await).await };
        let (changes, orders, notices, dropped) = tokio::join!(changes, orders, notices, self.finish(entries, dropped));
        let mut outcomes: Outcomes = changes.into_iter().chain(orders).chain(notices).chain(dropped).collect();
        // These stay in the outbox.
        outcomes.extend(named.waiting.into_iter().map(|index| (index, Ok(()))));
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Deletes the entries that were sent, and logs those that were not.
    async fn finish(&self, entries: &[Entry], outcomes: Outcomes) -> Outcomes {
        let sent: Vec<&Entry> =
            outcomes.iter().filter(|(_, sent)| sent.is_ok()).map(|(index, _)| &entries[*index]).collect();
        let now = self.now();
        for entry in &sent {
            let (entry_id, coach_id) = (&*entry.content.id(), entry.content.coach_id().as_str());
            tracing::debug!(entry_id, coach_id, "sent an outbox entry");
            add(OUTBOX_LATENCY_MS, (now.ms() - entry.send_after.ms()).max(0) as f64);
        }
        let deleting: Vec<_> = sent.iter().map(|entry| self.outbox.delete(&entry.content)).collect();
        let deleted: Vec<_> = stream::iter(deleting).buffered(CONCURRENT_DELETES).collect().await;
        let mut deleted = deleted.into_iter();
        let finished = outcomes.into_iter().map(|(index, sent)| {
            let outcome = sent.and_then(|()| deleted.next().unwrap_or(Ok(())).map_err(BoxError::from));
            if let Err(error) = &outcome {
                let content = &entries[index].content;
                let (entry_id, coach_id) = (&*content.id(), content.coach_id().as_str());
                tracing::error!(entry_id, coach_id, error = error_chain(error.as_ref()), "an entry was not sent");
            }
            (index, outcome)
        });
        finished.collect()
    }

    /// Puts the entries' changes on the bus.
    async fn put_all(&self, entries: &[Indexed<'_>]) -> Outcomes {
        let changes = entries.iter().filter_map(|(index, entry)| match &entry.content {
            Content::Change(change) => Some((*index, &**change)),
            Content::Event(_) | Content::Events { .. } | Content::Order(_) | Content::Job(_) | Content::Notice(_) => {
                None
            }
        });
        let (indexes, changes): (Vec<usize>, Vec<&Change>) = changes.unzip();
        let put = self.bus.put(&changes).await.into_iter().map(|put| put.map_err(BoxError::from));
        indexes.into_iter().zip(put).collect()
    }

    /// Sends the mails to coaches.
    async fn mail_all(&self, entries: &[Indexed<'_>]) -> Outcomes {
        let mails = entries.iter().filter_map(|(index, entry)| match &entry.content {
            Content::Notice(notice) => Some((*index, notice, entry.send_after)),
            Content::Event(_) | Content::Events { .. } | Content::Change(_) | Content::Order(_) | Content::Job(_) => {
                None
            }
        });
        join_all(mails.map(async |(index, notice, since)| (index, self.mail_notice(notice, since).await))).await
    }

    async fn mail_notice(&self, notice: &EndpointNotice, since: Timestamp) -> Result<(), BoxError> {
        let id = notice.id();
        // After a failure the stream redelivers later entries, too. An entry that is gone was mailed.
        if self.outbox.get(&id).await?.is_some()
            && let Err(error) = self.send_notice(notice).await
        {
            if self.now() < since + MAIL_RETRY_TIME {
                return Err(error);
            }
            // A mail that is retried for ever would keep the alarm of the other entries on.
            let (coach_id, error) = (notice.coach_id.as_str(), error_chain(error.as_ref()));
            tracing::error!(entry_id = id, coach_id, error, "gave up on a notice to a coach");
        }
        Ok(())
    }

    /// Mails a notice to the coach. The workspace's address is stored unchecked, so it may not be an e-mail address.
    async fn send_notice(&self, notice: &EndpointNotice) -> Result<(), BoxError> {
        let workspace = self.workspaces.get(&notice.coach_id).await?;
        if let Some(Ok(email)) = workspace.map(|found| Email::parse(&found.workspace.email)) {
            match self.mailer.send(&notice.coach_id, &email, &notice.render()).await {
                Err(MailError::Unmailable) => {}
                sent => return Ok(sent?),
            }
        }
        let (coach_id, endpoint_id) = (notice.coach_id.as_str(), notice.endpoint_id.as_str());
        tracing::warn!(coach_id, endpoint_id, "the coach has no address that can receive mail");
        Ok(())
    }
}

/// The ids that identify an entry's content elsewhere.
fn content_ids(content: &Content) -> Vec<Cow<'_, str>> {
    match content {
        Content::Events { events } => events.iter().map(|event| event.id.as_str().into()).collect(),
        Content::Event(_) | Content::Change(_) | Content::Order(_) | Content::Job(_) | Content::Notice(_) => {
            vec![content.id()]
        }
    }
}
