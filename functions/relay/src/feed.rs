//! Stores events in the event feed, for coaches with a key that may read events. Events of an automation's steps are
//! not in the feed.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use domain::event::Event;
use domain::id::CoachId;
use futures::future::join_all;
use store::StoreError;
use store::outbox::Content;

use crate::App;
use crate::publish::{Failures, Indexed};

/// An entry with an event for the feed.
type Fed<'a> = (Indexed<'a>, &'a Event);

impl App {
    /// Stores the entries' events in the feeds of their coaches. All entries of a coach fail together, and a repeat
    /// finds the events that were stored.
    pub(crate) async fn feed_all(&self, entries: &[Indexed<'_>]) -> Failures {
        let mut by_coach: BTreeMap<&CoachId, Vec<Fed<'_>>> = BTreeMap::new();
        for (index, entry) in entries {
            let events = match &entry.content {
                Content::Event(event) => slice::from_ref(&**event),
                Content::Events { events } => events,
                Content::Change(_) | Content::Order(_) | Content::Job(_) | Content::Notice(_) => continue,
            };
            let fed = events.iter().filter(|event| event.is_in_feed()).map(|event| ((*index, *entry), event));
            by_coach.entry(entry.content.coach_id()).or_default().extend(fed);
        }
        by_coach.retain(|_, fed| !fed.is_empty());
        let fed = by_coach.iter().map(async |(coach, fed)| (fed, self.feed(coach, fed).await.map_err(Arc::new)));
        let mut failures = Failures::new();
        for (fed, stored) in join_all(fed).await {
            if let Err(error) = stored {
                failures.extend(fed.iter().map(|((index, _), _)| (*index, Arc::clone(&error).into())));
            }
        }
        failures
    }

    async fn feed(&self, coach: &CoachId, fed: &[Fed<'_>]) -> Result<(), StoreError> {
        let now = self.now();
        if !self.keys.may_read_events(coach, now).await? {
            return Ok(());
        }
        let events: Vec<&Event> = fed.iter().map(|(_, event)| *event).collect();
        let written_at = fed.iter().map(|((_, entry), _)| entry.send_after).min().unwrap_or(now);
        self.feed.append(coach, &events, written_at, now).await
    }
}
