//! Sending entries and deleting them.
//!
//! Entries that come together are carried together, by few requests. Those of one kind wait for none of another: a bus
//! that is slow holds up nobody's webhooks.

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

/// Time for which a coach's mail is tried.
const MAIL_PATIENCE: TimeDelta = TimeDelta::days(1);
/// From the transaction that wrote an entry, or let it go, to the messages that carry it on.
const OUTBOX_LATENCY_MS: Metric = Metric::new("outbox_latency_ms", Unit::Milliseconds);

/// Entries that are deleted at once.
const CONCURRENT_DELETES: usize = 20;

/// The results of entries, each with the place of its entry among all.
pub(crate) type Outcomes = Vec<(usize, Result<(), BoxError>)>;
/// An entry, and its place among all.
pub(crate) type Placed<'a> = (usize, &'a Entry);

impl App {
    /// Sends the entries and deletes them; for each what came of it, in their order. Failures are logged here.
    pub(crate) async fn carry(&self, entries: &[Entry]) -> Vec<Result<(), BoxError>> {
        for Entry { content, .. } in entries {
            for id in told_ids(content) {
                note_each("event_ids", &id);
            }
            note_each("coach_ids", content.coach_id().as_str());
        }
        let (kept, dropped) = self.without_erased(entries).await;
        let changes = async { self.finish(entries, self.put_all(&kept).await).await };
        let orders = async { self.finish(entries, self.order_all(&kept).await).await };
        let notices = async { self.finish(entries, self.mail_all(&kept).await).await };
        let (changes, orders, notices, dropped) = tokio::join!(changes, orders, notices, self.finish(entries, dropped));
        let mut outcomes: Outcomes = changes.into_iter().chain(orders).chain(notices).chain(dropped).collect();
        outcomes.sort_unstable_by_key(|(place, _)| *place);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Deletes the entries that were sent, and logs those that were not.
    async fn finish(&self, entries: &[Entry], outcomes: Outcomes) -> Outcomes {
        let sent: Vec<&Entry> =
            outcomes.iter().filter(|(_, sent)| sent.is_ok()).map(|(place, _)| &entries[*place]).collect();
        let now = self.now();
        for entry in &sent {
            add(OUTBOX_LATENCY_MS, (now.ms() - entry.send_after.ms()).max(0) as f64);
        }
        let deleting: Vec<_> = sent.iter().map(|entry| self.outbox.delete(&entry.content)).collect();
        let deleted: Vec<_> = stream::iter(deleting).buffered(CONCURRENT_DELETES).collect().await;
        let mut deleted = deleted.into_iter();
        let finished = outcomes.into_iter().map(|(place, sent)| {
            let outcome = sent.and_then(|()| deleted.next().unwrap_or(Ok(())).map_err(BoxError::from));
            if let Err(error) = &outcome {
                let content = &entries[place].content;
                let (entry_id, coach_id) = (&*content.id(), content.coach_id().as_str());
                tracing::error!(entry_id, coach_id, error = error_chain(error.as_ref()), "an entry was not sent");
            }
            (place, outcome)
        });
        finished.collect()
    }

    /// Puts the entries' facts on the bus.
    async fn put_all(&self, entries: &[Placed<'_>]) -> Outcomes {
        let facts = entries.iter().filter_map(|(place, entry)| match &entry.content {
            Content::Change(fact) => Some((*place, &**fact)),
            Content::Event(_) | Content::Events { .. } | Content::Order(_) | Content::Notice(_) => None,
        });
        let (places, facts): (Vec<usize>, Vec<&Change>) = facts.unzip();
        let put = self.bus.put(&facts).await.into_iter().map(|put| put.map_err(BoxError::from));
        places.into_iter().zip(put).collect()
    }

    /// Sends the mails to coaches.
    async fn mail_all(&self, entries: &[Placed<'_>]) -> Outcomes {
        let mails = entries.iter().filter_map(|(place, entry)| match &entry.content {
            Content::Notice(notice) => Some((*place, notice, entry.send_after)),
            Content::Event(_) | Content::Events { .. } | Content::Change(_) | Content::Order(_) => None,
        });
        join_all(mails.map(async |(place, notice, since)| (place, self.mail(notice, since).await))).await
    }

    async fn mail(&self, notice: &EndpointNotice, since: Timestamp) -> Result<(), BoxError> {
        let id = notice.id();
        // The stream brings what it has brought again where something before it failed: a coach gets one mail.
        if self.outbox.get(&id).await?.is_some()
            && let Err(error) = self.tell(notice).await
        {
            if self.now() < since + MAIL_PATIENCE {
                return Err(error);
            }
            // It would be tried for ever, and keep the alarm on that other entries are to ring.
            let (coach_id, error) = (notice.coach_id.as_str(), error_chain(error.as_ref()));
            tracing::error!(entry_id = id, coach_id, error, "a coach is not told");
        }
        Ok(())
    }

    /// Tells a coach of an endpoint. A workspace keeps its own address: no mail goes to one that is no e-mail address.
    async fn tell(&self, notice: &EndpointNotice) -> Result<(), BoxError> {
        let workspace = self.workspaces.get(&notice.coach_id).await?;
        if let Some(Ok(email)) = workspace.map(|found| Email::parse(&found.workspace.email)) {
            match self.mailer.send(&email, &notice.render()).await {
                Err(MailError::Unmailable) => {}
                sent => return Ok(sent?),
            }
        }
        let (coach_id, endpoint_id) = (notice.coach_id.as_str(), notice.endpoint_id.as_str());
        tracing::warn!(coach_id, endpoint_id, "the coach has no address that mail can go to");
        Ok(())
    }
}

/// The ids by which an entry's content is known elsewhere.
fn told_ids(content: &Content) -> Vec<Cow<'_, str>> {
    match content {
        Content::Events { events } => events.iter().map(|event| event.id.as_str().into()).collect(),
        Content::Event(_) | Content::Change(_) | Content::Order(_) | Content::Notice(_) => vec![content.id()],
    }
}
