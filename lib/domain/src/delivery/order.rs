//! Orders: messages that ask for one attempt each, and the decision about an order that arrives.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::ATTEMPT_TIMEOUT;
use crate::id::{CoachId, DeliveryId, EndpointId};
use crate::time::Timestamp;

/// Time until an order first checks whether its endpoint has recovered. The mark of an endpoint that hung lasts half as
/// long.
const FIRST_LOOK: TimeDelta = TimeDelta::seconds(120);

/// A message of the queues: make this attempt when it is due. A retry by hand begins another chain, and orders of an
/// older chain are void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryOrder {
    pub coach_id: CoachId,
    pub endpoint_id: EndpointId,
    pub delivery_id: DeliveryId,
    /// From 1.
    pub chain: u32,
    /// From 1 in each chain.
    pub attempt: u32,
    /// The number of times that the order was put back: a queue delays a message for 15 minutes at most.
    pub hop: u32,
    pub due_at: Timestamp,
    /// True if `due_at` is a place that was reserved for this order at a late endpoint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub placed: bool,
}

/// The state of an endpoint, as far as it matters to orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// The endpoint is not known to be late.
    Quick,
    /// The endpoint is late: an attempt needs a place.
    Late,
    /// The endpoint is disabled or deleted: nothing is sent.
    Off,
}

/// The next step of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderStep {
    /// Make the attempt.
    Attempt,
    /// Get a permit or a place first: see `admission` of the deliverer.
    Admit,
    /// Put the order back until it is due.
    PutBack,
}

impl DeliveryOrder {
    /// Creates the order for a new delivery's first attempt.
    pub fn first(coach: &CoachId, endpoint: &EndpointId, delivery: &DeliveryId, due_at: Timestamp) -> Self {
        Self {
            coach_id: coach.clone(),
            endpoint_id: endpoint.clone(),
            delivery_id: delivery.clone(),
            chain: 1,
            attempt: 1,
            hop: 0,
            due_at,
            placed: false,
        }
    }

    /// Returns the order for another attempt of the same chain.
    pub fn for_attempt(&self, attempt: u32, due_at: Timestamp) -> Self {
        Self { attempt, hop: 0, due_at, placed: false, ..self.clone() }
    }

    pub fn put_back(&self) -> Self {
        Self { hop: self.hop + 1, ..self.clone() }
    }

    /// Returns the time at which the order should arrive: its due time, or an earlier time to check whether the
    /// endpoint has recovered. Only the first return after the reservation of the place is early: an order that was put
    /// back before waits until its due time.
    pub fn arrives_at(&self, now: Timestamp) -> Timestamp {
        if self.placed && self.hop == 1 { self.due_at.min(now + FIRST_LOOK) } else { self.due_at }
    }

    /// Decides about an order that arrives at `now`.
    ///
    /// A place lets the order go without a permit. An order that arrives more than [`ATTEMPT_TIMEOUT`] after its place
    /// is admitted again: otherwise all delayed orders would go out at once after a standstill. An order that arrives
    /// before its place is admitted if the endpoint has recovered.
    pub fn next_step(&self, endpoint: Readiness, now: Timestamp) -> OrderStep {
        let is_due = self.due_at <= now;
        match endpoint {
            _ if !is_due && !self.placed => OrderStep::PutBack,
            Readiness::Off => OrderStep::Attempt,
            Readiness::Quick => OrderStep::Admit,
            Readiness::Late if !is_due => OrderStep::PutBack,
            Readiness::Late if self.placed && now <= self.due_at + ATTEMPT_TIMEOUT => OrderStep::Attempt,
            Readiness::Late => OrderStep::Admit,
        }
    }
}

/// An operator's request to enqueue the pending deliveries of an endpoint again, because messages may be missing after
/// a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    pub coach_id: CoachId,
    pub resume: EndpointId,
    /// The delivery to continue after. Absent from an operator's request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DeliveryId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> DeliveryOrder {
        let coach = CoachId::parse("coach_1").unwrap();
        let endpoint = EndpointId::parse("we_1").unwrap();
        DeliveryOrder::first(&coach, &endpoint, &DeliveryId::parse("dlv_1").unwrap(), Timestamp::from_ms(100_000))
    }

    #[test]
    fn an_order_keeps_its_attempt_while_put_back_and_resets_its_hops_for_the_next() {
        let back = DeliveryOrder { placed: true, ..first() }.put_back().put_back();
        assert_eq!((back.hop, back.attempt, back.due_at, back.placed), (2, 1, first().due_at, true));
        let next = back.for_attempt(2, Timestamp::from_ms(9));
        assert_eq!((next.chain, next.attempt, next.hop, next.due_at), (1, 2, 0, Timestamp::from_ms(9)));
        assert!(!next.placed);
    }

    #[test]
    fn an_order_without_the_field_placed_has_no_place() {
        let text = serde_json::to_string(&first()).unwrap();
        assert!(!text.contains("placed"), "{text}");
        assert_eq!(serde_json::from_str::<DeliveryOrder>(&text).unwrap(), first());
    }

    #[rstest::rstest]
    #[case::not_placed(false, 1, 600, 600)]
    #[case::placed_soon(true, 1, 119, 119)]
    #[case::placed_later(true, 1, 600, 120)]
    #[case::looked_at(true, 2, 600, 600)]
    fn an_order_looks_once_before_its_place(
        #[case] placed: bool,
        #[case] hop: u32,
        #[case] due_in_s: i64,
        #[case] arrives_in_s: i64,
    ) {
        let now = Timestamp::from_ms(100_000);
        let due_at = now + TimeDelta::seconds(due_in_s);
        let order = DeliveryOrder { placed, hop, due_at, ..first() };
        assert_eq!(order.arrives_at(now), now + TimeDelta::seconds(arrives_in_s));
    }

    /// Milliseconds from the order's due time (negative: before), then the step at an endpoint that is quick, late,
    /// off.
    #[rstest::rstest]
    #[case::early(false, -1, [OrderStep::PutBack, OrderStep::PutBack, OrderStep::PutBack])]
    #[case::due(false, 0, [OrderStep::Admit, OrderStep::Admit, OrderStep::Attempt])]
    #[case::overdue(false, 900_000, [OrderStep::Admit, OrderStep::Admit, OrderStep::Attempt])]
    #[case::before_its_place(true, -1, [OrderStep::Admit, OrderStep::PutBack, OrderStep::Attempt])]
    #[case::at_its_place(true, 0, [OrderStep::Admit, OrderStep::Attempt, OrderStep::Attempt])]
    #[case::somewhat_after_its_place(true, 15_000, [OrderStep::Admit, OrderStep::Attempt, OrderStep::Attempt])]
    #[case::long_after_its_place(true, 15_001, [OrderStep::Admit, OrderStep::Admit, OrderStep::Attempt])]
    fn an_order_is_attempted_admitted_or_put_back(
        #[case] placed: bool,
        #[case] after_ms: i64,
        #[case] turns: [OrderStep; 3],
    ) {
        let order = DeliveryOrder { placed, ..first() };
        let now = Timestamp::from_ms(order.due_at.ms() + after_ms);
        let decided =
            [Readiness::Quick, Readiness::Late, Readiness::Off].map(|endpoint| order.next_step(endpoint, now));
        assert_eq!(decided, turns);
    }
}
