//! What attempts make of their endpoint. A healthy endpoint costs nothing here, and one that is known to fail neither: only what is new is
//! written.

use domain::endpoint::{Endpoint, SignedEndpoint};
use domain::endpoint_health::{EndpointHealth, Judgement};
use domain::id::{CoachId, EventId};
use domain::notice::EndpointNotice;
use domain::outgoing::OutgoingFact;
use domain::time::Timestamp;

use super::{Endpoints, MAX_ROUNDS, Record};
use crate::audit;
use crate::db::{StoreError, Transacted, stand_back};
use crate::outbox::{Content, Outbox};

/// What came of noting an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Noted {
    /// The endpoint goes on.
    On,
    /// This switched it off: the endpoint as it is now.
    Off(Box<Endpoint>),
    /// Another address has taken the place of the one that was tried, of which this says nothing.
    Moved,
}

/// What becomes of an endpoint.
enum Change {
    Health(EndpointHealth),
    /// It has failed since then, which its coach is told.
    Warned(EndpointHealth, Timestamp),
    Off(Endpoint),
}

impl Endpoints {
    /// Notes that an attempt at an endpoint, as it was read, succeeded.
    pub async fn note_success(&self, coach: &CoachId, read: &SignedEndpoint, now: Timestamp) -> Result<(), StoreError> {
        if read.health.is_good() {
            return Ok(());
        }
        let healthy = |record: &Record| (!record.health.is_good()).then(|| Change::Health(EndpointHealth::default()));
        self.note(coach, read, now, None, |record, _| healthy(record)).await.map(drop)
    }

    /// Notes that an attempt at an event failed.
    pub async fn note_failure(
        &self,
        coach: &CoachId,
        read: &SignedEndpoint,
        event: &EventId,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Noted, StoreError> {
        if read.health.after_failure(event, now) == Judgement::Known {
            return Ok(Noted::On);
        }
        let judged = |record: &Record, endpoint: &Endpoint| match record.health.after_failure(event, now) {
            Judgement::Known => None,
            Judgement::Failing(health) => Some(Change::Health(health)),
            Judgement::Warn(health, since) => Some(Change::Warned(health, since)),
            Judgement::TooLong(since) => endpoint.given_up(since, now).map(Change::Off),
        };
        self.note(coach, read, now, Some(outbox), judged).await
    }

    /// Notes that the receiver answered 410.
    pub async fn note_gone(
        &self,
        coach: &CoachId,
        read: &SignedEndpoint,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Noted, StoreError> {
        self.note(coach, read, now, Some(outbox), |_, endpoint| endpoint.gone(now).map(Change::Off)).await
    }

    async fn note(
        &self,
        coach: &CoachId,
        read: &SignedEndpoint,
        now: Timestamp,
        outbox: Option<&Outbox>,
        change: impl Fn(&Record, &Endpoint) -> Option<Change>,
    ) -> Result<Noted, StoreError> {
        let id = &read.endpoint.id;
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let Some(record) = self.read(coach, id).await? else { return Ok(Noted::On) };
            let endpoint = record.endpoint()?;
            if endpoint.url != read.endpoint.url {
                return Ok(Noted::Moved);
            }
            let (writes, noted) = match change(&record, &endpoint) {
                None => return Ok(Noted::On),
                Some(Change::Health(health)) => (vec![self.replace(Record { health, ..record }, &endpoint)], Noted::On),
                Some(Change::Warned(health, since)) => {
                    let notice = Content::Notice(Box::new(EndpointNotice::failing(coach, &endpoint, since, now)));
                    let mut writes = vec![self.replace(Record { health, ..record }, &endpoint)];
                    writes.extend(outbox.map(|outbox| outbox.put(&notice, now)));
                    (writes, Noted::On)
                }
                Some(Change::Off(off)) => {
                    let fact = Content::Fact(Box::new(OutgoingFact::endpoint_disabled(coach, &off, now)));
                    let notice = Content::Notice(Box::new(EndpointNotice::off(coach, &off, now)));
                    let mut writes = vec![self.replace(record, &off)];
                    writes.extend(
                        outbox.into_iter().flat_map(|outbox| [&fact, &notice].map(|told| outbox.put(told, now))),
                    );
                    writes.push(audit::record(&self.table, coach, "endpoint.switched_off", id.as_str(), now));
                    (writes, Noted::Off(Box::new(off)))
                }
            };
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(noted);
            }
        }
        Err(StoreError::kept_changing("an endpoint"))
    }
}
