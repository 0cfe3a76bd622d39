//! Attempts: a delivery is read together with its endpoint, and the outcome is one conditional write.

use std::collections::HashMap;

use domain::delivery::{Attempt, Conclusion, DeliveryOrder, DeliveryState, DeliveryStatus, SentRequest};
use domain::endpoint::SignedEndpoint;
use domain::id::EventId;
use domain::time::Timestamp;

use super::Deliveries;
use super::record::{DeliveryItem, ENTITY, StoredAttempt, body_context, endpoint_of, key};
use crate::db::{Item, MAX_ROUNDS, StoreError, Written, backoff, from_item};
use crate::endpoint::{self, Endpoints};

/// A delivery as it was read for an order.
pub struct Delivery {
    pub event_id: EventId,
    pub event_type: String,
    /// True for a test event.
    pub is_test: bool,
    /// The time of the delivery's creation.
    pub made_at: Timestamp,
    pub state: DeliveryState,
    record: DeliveryItem,
}

/// An attempt to record: its line of the log and its request.
pub struct MadeAttempt<'a> {
    pub line: &'a Attempt,
    pub sent: &'a SentRequest,
}

impl Deliveries {
    /// Reads an order's delivery and endpoint with one request. The delivery is `None` if nothing is left to send: it
    /// has expired, or its client is erased.
    pub async fn read_for(
        &self,
        order: &DeliveryOrder,
        endpoints: &Endpoints,
        now: Timestamp,
    ) -> Result<(Option<Delivery>, Option<SignedEndpoint>), StoreError> {
        let delivery_key = key(&order.endpoint_id, &order.delivery_id);
        let keys = HashMap::from([
            (self.table.name.clone(), vec![delivery_key]),
            (endpoints.table.name.clone(), vec![endpoint::key(&order.coach_id, &order.endpoint_id)]),
        ]);
        let mut found = self.table.db.read(keys).await?;
        let mut item_of = |table: &str| found.remove(table).and_then(|mut items| items.pop());
        let endpoint = item_of(&endpoints.table.name).map(|item| endpoints.signed(from_item("endpoint", item)?, now));
        let record: Option<DeliveryItem> = item_of(&self.table.name).map(|item| from_item(ENTITY, item)).transpose()?;
        let left = record.filter(|record| record.expires_at > now.unix_s() && !record.erased);
        Ok((left.map(Delivery::of), endpoint.transpose()?))
    }

    /// Opens the body of a delivery.
    pub fn body(&self, delivery: &Delivery) -> Result<Vec<u8>, StoreError> {
        let DeliveryItem { pk, id, sealed, .. } = &delivery.record;
        self.vault.unseal(ENTITY, &body_context(&endpoint_of(pk)?, id), sealed)
    }

    /// Records an attempt: adds its line to the log, and sets what `conclude` says. If the delivery has changed since
    /// it was read, it is concluded again. Returns the state after that; `None`: the delivery has expired meanwhile.
    pub async fn record(
        &self,
        order: &DeliveryOrder,
        delivery: Delivery,
        MadeAttempt { line, sent }: MadeAttempt<'_>,
        conclude: impl Fn(&DeliveryState) -> Conclusion,
    ) -> Result<Option<DeliveryState>, StoreError> {
        let line = StoredAttempt::seal(&self.vault, &order.endpoint_id, &order.delivery_id, line);
        let mut record = delivery.record;
        for round in 0..MAX_ROUNDS {
            backoff(round).await;
            let concluded = record.concluded(&line, sent, conclude(&record.state()));
            let state = concluded.state();
            let current: Item = match self.replace(concluded).put_now().await? {
                Written::Done(()) => return Ok(Some(state)),
                Written::Refused(None) => return Ok(None),
                Written::Refused(Some(item)) => item,
            };
            record = from_item(ENTITY, current)?;
            // The write succeeded, and its answer was lost.
            if record.attempts.iter().any(|known| known.is(&line)) {
                return Ok(Some(record.state()));
            }
        }
        Err(StoreError::contention("a delivery"))
    }
}

impl Delivery {
    fn of(record: DeliveryItem) -> Self {
        let (event_id, event_type) = (record.event_id.clone(), record.event_type.clone());
        Self { event_id, event_type, is_test: record.test, made_at: record.made_at, state: record.state(), record }
    }
}

impl DeliveryItem {
    /// The record after an attempt. The log is in the order in which the attempts began. An attempt of an older chain
    /// may end after attempts of the current one. After an erasure, neither the signature nor the receiver's answer is
    /// kept.
    fn concluded(&self, line: &StoredAttempt, sent: &SentRequest, conclusion: Conclusion) -> Self {
        let Conclusion { state, ended_because, was_ended_meanwhile } = conclusion;
        let mut attempts = self.attempts.clone();
        let end = was_ended_meanwhile.then(|| attempts.pop()).flatten();
        let place = attempts.partition_point(|other| other.at() <= line.at());
        let is_latest = place == attempts.len();
        attempts.insert(place, if self.erased { line.without_excerpt() } else { line.clone() });
        let is_delivered = state.status == DeliveryStatus::Delivered;
        attempts.extend(end.filter(|_| !is_delivered).map(|end| end.not_before(line.at())));
        attempts.extend(ended_because.map(|reason| StoredAttempt::unsent(line.ended_at(), &reason)));
        let concluded = Self { attempts, waits_since: line.at().ms().max(self.waits_since), ..self.clone() };
        let concluded = if is_latest { concluded.with_request(sent) } else { concluded };
        concluded.in_state(&state)
    }

    /// The record with the request of the latest attempt.
    fn with_request(self, sent: &SentRequest) -> Self {
        Self {
            sent_to: Some(sent.host.clone()),
            sent_s: Some(sent.unix_s),
            signature: sent.signature.clone().filter(|_| !self.erased),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::{line, record};
    use super::*;

    fn sent() -> SentRequest {
        SentRequest { host: "hooks.example.com".to_owned(), unix_s: 2, signature: Some("v1,abc=".to_owned()) }
    }

    fn conclusion(status: DeliveryStatus, was_ended_meanwhile: bool) -> Conclusion {
        let state = DeliveryState { status, next_attempt: 3, ..record().state() };
        Conclusion { state, ended_because: None, was_ended_meanwhile }
    }

    #[test]
    fn an_attempt_adds_its_line_and_keeps_its_request() {
        let concluded = record().concluded(&line(2_000, 500), &sent(), conclusion(DeliveryStatus::Pending, false));
        assert_eq!(concluded.attempts, [line(1_000, 500), line(2_000, 500)]);
        assert_eq!((concluded.waits_since, concluded.next_attempt), (2_000, 3));
        assert_eq!(concluded.signature.as_deref(), Some("v1,abc="));
    }

    #[test]
    fn the_end_of_the_endpoint_follows_the_attempt_that_found_it() {
        let found = Conclusion {
            ended_because: Some("not sent: endpoint gone".to_owned()),
            ..conclusion(DeliveryStatus::Failed, false)
        };
        let concluded = record().concluded(&line(2_000, 500), &sent(), found);
        let end = StoredAttempt::unsent(Timestamp::from_ms(2_005), "not sent: endpoint gone");
        assert_eq!(concluded.attempts, [line(1_000, 500), line(2_000, 500), end]);
    }

    /// The end of the endpoint was found before the attempt began, and stored while the attempt was under way.
    #[test]
    fn the_end_of_a_delivery_is_never_before_its_last_attempt() {
        let end = |at_ms| StoredAttempt::unsent(Timestamp::from_ms(at_ms), "not sent: endpoint gone");
        for (ended_ms, shown_ms) in [(1_999, 2_000), (2_003, 2_003)] {
            let attempts = vec![line(1_000, 500), end(ended_ms)];
            let ended = DeliveryItem { attempts, status: DeliveryStatus::Failed, ..record() };
            let concluded = ended.concluded(&line(2_000, 410), &sent(), conclusion(DeliveryStatus::Failed, true));
            assert_eq!(concluded.attempts, [line(1_000, 500), line(2_000, 410), end(shown_ms)]);
        }
    }

    #[test]
    fn an_attempt_of_an_older_chain_that_ends_late_is_logged_where_it_began_and_replaces_no_request() {
        let attempts = vec![line(1_000, 500), line(3_000, 500)];
        let (sent_to, signature) = (Some("new.example.com".to_owned()), Some("v1,new=".to_owned()));
        let restarted = DeliveryItem { attempts, chain: 2, waits_since: 3_000, sent_to, signature, ..record() };
        let kept = restarted.clone();
        let conclusion = Conclusion { state: restarted.state(), ..conclusion(DeliveryStatus::Pending, false) };
        let concluded = restarted.concluded(&line(2_000, 204), &sent(), conclusion);
        assert_eq!(concluded.attempts, [line(1_000, 500), line(2_000, 204), line(3_000, 500)]);
        assert_eq!((concluded.waits_since, concluded.state()), (3_000, kept.state()));
        assert_eq!((concluded.sent_to, concluded.signature), (kept.sent_to, kept.signature));
    }

    /// The client was erased, which ended the delivery, while the attempt was under way.
    #[test]
    fn an_attempt_of_an_erased_delivery_keeps_neither_answer_nor_signature() {
        let end = StoredAttempt::unsent(Timestamp::from_ms(2_003), "not sent: client erased");
        let erased = DeliveryItem {
            attempts: vec![line(1_000, 500).without_excerpt(), end.clone()],
            status: DeliveryStatus::Failed,
            erased: true,
            sealed: Vec::new(),
            ..record()
        };
        for (code, status, lines) in [(500, DeliveryStatus::Failed, 3), (204, DeliveryStatus::Delivered, 2)] {
            let concluded = erased.concluded(&line(2_000, code), &sent(), conclusion(status, true));
            let mut expected = vec![line(1_000, 500).without_excerpt(), line(2_000, code).without_excerpt()];
            expected.extend((lines == 3).then(|| end.clone()));
            assert_eq!((concluded.attempts, concluded.signature), (expected, None));
        }
    }
}
