//! Orders: messages that ask for one attempt each, and the decision about an order that arrives.

use serde::{Deserialize, Serialize};

use super::{DELETED, DeliveryStatus};
use crate::endpoint::{EndpointStatus, SignedEndpoint};
use crate::id::{CoachId, DeliveryId, EndpointId};
use crate::time::Timestamp;

/// Lanes of an endpoint. The orders of a lane are carried out one after the other, so this is the most attempts at an
/// endpoint at once, and a receiver that hangs for one request holds up one lane.
pub const LANES: u8 = 10;
/// Lanes of all endpoints of a coach that answer slowly. Each attempt occupies a function for as long as it takes, so
/// this is what a coach with slow receivers can occupy, whatever their number.
pub const SLOW_LANES_OF_COACH: u8 = 10;
/// Lanes of an endpoint that answers slowly, among those of its coach.
pub const SLOW_LANES: u8 = 3;

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
    /// 0 at first. Grows each time that the order is sent to wait: a queue delays a message for 15 minutes at most.
    pub hop: u32,
    pub due_at: Timestamp,
    /// True if the order has waited for a probe of its endpoint's breaker. Such orders have one lane together: the
    /// first is the probe, and the others wait behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probes: bool,
    /// True if the order is in the lanes of endpoints that answer slowly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slow: bool,
    /// True if a person asked for the attempt, which does not wait for the breaker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub past_breaker: bool,
}

/// The state of a delivery, as far as orders and attempts change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryState {
    pub status: DeliveryStatus,
    pub chain: u32,
    pub next_attempt: u32,
    /// `None` unless the delivery is pending.
    pub next_attempt_at: Option<Timestamp>,
}

/// The decision about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Make the attempt.
    Send,
    /// Send this order to wait.
    Later(DeliveryOrder),
    /// End the delivery for this reason, which the delivery log shows.
    End(String),
    /// Nothing: the attempt was made, or its delivery or chain has ended.
    Skip,
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
            probes: false,
            slow: false,
            past_breaker: false,
        }
    }

    /// Creates the order for the first attempt of a chain that a person asks for.
    pub fn past_breaker(self) -> Self {
        Self { past_breaker: true, ..self }
    }

    /// Returns the order for another attempt of the same chain.
    pub fn for_attempt(&self, attempt: u32, due_at: Timestamp) -> Self {
        Self { attempt, hop: 0, due_at, probes: false, past_breaker: false, ..self.clone() }
    }

    /// Returns the order as it is sent to wait until `due_at`. Orders for one attempt that wait for the same time
    /// become copies of each other.
    pub fn later(&self, due_at: Timestamp) -> Self {
        let hop = u32::try_from(due_at.unix_s()).unwrap_or_default().max(self.hop + 1);
        Self { hop, due_at, ..self.clone() }
    }

    /// Returns the message group of the order in the FIFO queue: a lane of its endpoint.
    pub fn lane(&self) -> String {
        if self.probes {
            return format!("{}#probe", self.endpoint_id);
        }
        let of_delivery = spread(self.delivery_id.as_str());
        if self.slow {
            let first = spread(self.endpoint_id.as_str()) % SLOW_LANES_OF_COACH;
            let lane = (first + of_delivery % SLOW_LANES) % SLOW_LANES_OF_COACH;
            return format!("{}#slow#{lane}", self.coach_id);
        }
        format!("{}#{}", self.endpoint_id, of_delivery % LANES)
    }

    /// Returns the id by which the FIFO queue drops copies of the order.
    pub fn deduplication_id(&self) -> String {
        format!("{}/{}/{}/{}", self.delivery_id, self.chain, self.attempt, self.hop)
    }

    /// Decides about the order when it arrives at `now`. `delivery` is `None` if there is nothing to send: the delivery
    /// has expired, or its client is erased. A redelivered order may come from a function that died between recording
    /// the attempt and sending the next order.
    pub fn turn(
        &self,
        delivery: Option<&DeliveryState>,
        endpoint: &Result<SignedEndpoint, String>,
        is_redelivered: bool,
        now: Timestamp,
    ) -> Turn {
        let Some(delivery) = delivery else { return Turn::Skip };
        if delivery.status != DeliveryStatus::Pending || delivery.chain != self.chain {
            return Turn::Skip;
        }
        if delivery.next_attempt != self.attempt {
            let next = delivery.next_attempt_at.filter(|_| is_redelivered && delivery.next_attempt > self.attempt);
            return next.map_or(Turn::Skip, |at| Turn::Later(self.for_attempt(delivery.next_attempt, at)));
        }
        match endpoint {
            _ if self.due_at > now => Turn::Later(self.later(self.due_at)),
            Err(reason) => Turn::End(reason.clone()),
            Ok(endpoint) => {
                let breaker = &endpoint.health.breaker;
                let (open_until, is_half_open) = (breaker.open_until(now), breaker.is_half_open(now));
                let probes = open_until.is_some() || is_half_open;
                let slow = !probes && endpoint.health.pace.is_slow(now);
                if self.past_breaker || (open_until.is_none() && (self.probes, self.slow) == (probes, slow)) {
                    return Turn::Send;
                }
                Turn::Later(Self { probes, slow, ..self.later(open_until.unwrap_or(now)) })
            }
        }
    }
}

/// A number that spreads ids.
fn spread(id: &str) -> u8 {
    id.bytes().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte))
}

/// The endpoint if it takes deliveries, or the reason why it does not, for the delivery log.
pub fn sendable(endpoint: Option<SignedEndpoint>) -> Result<SignedEndpoint, String> {
    let endpoint = endpoint.ok_or(DELETED)?;
    match endpoint.endpoint.status {
        EndpointStatus::Enabled => Ok(endpoint),
        EndpointStatus::Disabled | EndpointStatus::Gone => Err(endpoint.endpoint.not_sent()),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::delivery::AttemptResult;
    use crate::endpoint_health::{EndedAttempt, EndpointHealth, HealthEffect};
    use crate::id::EventId;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_ms(seconds * 1_000)
    }

    /// The order of the second attempt, due at 100 s.
    fn order() -> DeliveryOrder {
        let coach = CoachId::parse("coach_1").unwrap();
        let endpoint = EndpointId::parse("we_1").unwrap();
        DeliveryOrder::first(&coach, &endpoint, &DeliveryId::parse("dlv_1").unwrap(), at(90)).for_attempt(2, at(100))
    }

    fn pending(chain: u32, next_attempt: u32) -> DeliveryState {
        DeliveryState { status: DeliveryStatus::Pending, chain, next_attempt, next_attempt_at: Some(at(160)) }
    }

    fn ended(status: DeliveryStatus) -> DeliveryState {
        DeliveryState { status, next_attempt_at: None, ..pending(1, 2) }
    }

    /// An endpoint that has not answered for `silences` attempts until 100 s.
    fn endpoint(silences: usize) -> SignedEndpoint {
        let (result, event) = (AttemptResult::Error("timed out".to_owned()), EventId::parse("evt_1").unwrap());
        let health = (0..silences).fold(EndpointHealth::default(), |health, _| {
            let breaker = health.breaker;
            let silence = EndedAttempt {
                result: &result,
                took: TimeDelta::zero(),
                event: &event,
                is_test: false,
                breaker,
                ended_at: at(100),
            };
            match health.after(&silence) {
                HealthEffect::Health(next) => next,
                effect => panic!("{effect:?}"),
            }
        });
        let endpoint = crate::endpoint::tests::endpoint(EndpointStatus::Enabled);
        SignedEndpoint { read_at: at(100), endpoint, secrets: Vec::new(), health }
    }

    fn off() -> SignedEndpoint {
        let mut off = endpoint(3);
        off.endpoint.status = EndpointStatus::Gone;
        off
    }

    fn later(due_s: i64) -> Turn {
        Turn::Later(order().later(at(due_s)))
    }

    fn probe_later(due_s: i64) -> Turn {
        Turn::Later(DeliveryOrder { probes: true, ..order().later(at(due_s)) })
    }

    fn end(reason: &str) -> Turn {
        Turn::End(reason.to_owned())
    }

    #[rstest::rstest]
    #[case::due(100, Some(pending(1, 2)), Some(endpoint(2)), Turn::Send)]
    #[case::overdue(9_000, Some(pending(1, 2)), Some(endpoint(0)), Turn::Send)]
    #[case::early(99, Some(pending(1, 2)), Some(endpoint(0)), later(100))]
    #[case::silent(100, Some(pending(1, 2)), Some(endpoint(3)), probe_later(130))]
    #[case::silent_before(130, Some(pending(1, 2)), Some(endpoint(3)), probe_later(130))]
    #[case::early_and_silent(99, Some(pending(1, 2)), Some(endpoint(3)), later(100))]
    #[case::gone(100, Some(pending(1, 2)), Some(off()), end("not sent: endpoint gone"))]
    #[case::deleted(100, Some(pending(1, 2)), None, end(DELETED))]
    #[case::expired(100, None, Some(endpoint(0)), Turn::Skip)]
    #[case::ended(100, Some(ended(DeliveryStatus::Failed)), Some(endpoint(0)), Turn::Skip)]
    #[case::delivered(100, Some(ended(DeliveryStatus::Delivered)), Some(endpoint(0)), Turn::Skip)]
    #[case::made(100, Some(pending(1, 3)), Some(endpoint(0)), Turn::Skip)]
    #[case::ahead(100, Some(pending(1, 1)), Some(endpoint(0)), Turn::Skip)]
    #[case::older_chain(100, Some(pending(2, 2)), Some(endpoint(0)), Turn::Skip)]
    fn an_order_is_carried_out_waits_or_counts_no_more(
        #[case] now_s: i64,
        #[case] delivery: Option<DeliveryState>,
        #[case] endpoint: Option<SignedEndpoint>,
        #[case] expected: Turn,
    ) {
        assert_eq!(order().turn(delivery.as_ref(), &sendable(endpoint), false, at(now_s)), expected);
    }

    #[rstest::rstest]
    #[case::open(3, 129, probe_later(130))]
    #[case::half_open(3, 130, Turn::Send)]
    #[case::closed(2, 130, later(130))]
    fn an_order_that_waited_for_the_breaker_is_its_probe_or_returns_to_its_lane(
        #[case] silences: usize,
        #[case] now_s: i64,
        #[case] expected: Turn,
    ) {
        let order = DeliveryOrder { probes: true, ..order() };
        assert_eq!(order.lane(), "we_1#probe");
        assert_eq!(order.turn(Some(&pending(1, 2)), &sendable(Some(endpoint(silences))), false, at(now_s)), expected);
    }

    #[rstest::rstest]
    #[case::marked(false, 100, Turn::Later(DeliveryOrder { slow: true, ..order().later(at(100)) }))]
    #[case::in_its_lane(true, 100, Turn::Send)]
    #[case::quick_again(true, 400, Turn::Later(order().later(at(400))))]
    #[case::quick(false, 400, Turn::Send)]
    fn an_order_of_an_endpoint_that_answers_slowly_moves_to_the_few_lanes_of_its_coach(
        #[case] slow: bool,
        #[case] now_s: i64,
        #[case] expected: Turn,
    ) {
        let mut endpoint = endpoint(0);
        endpoint.health.pace = endpoint.health.pace.after_answer(TimeDelta::seconds(3), at(100));
        let order = DeliveryOrder { slow, ..order() };
        assert_eq!(order.turn(Some(&pending(1, 2)), &sendable(Some(endpoint)), false, at(now_s)), expected);
    }

    #[test]
    fn the_slow_endpoints_of_a_coach_share_ten_lanes_and_each_has_three_of_them() {
        let event = EventId::parse("evt_1").unwrap();
        let mut all = std::collections::BTreeSet::new();
        for number in 0..60 {
            let endpoint_id = EndpointId::parse(&format!("we_{number}")).unwrap();
            let lanes = (0..1_000).map(|ms| {
                let delivery_id = DeliveryId::derive(ms, &event, &endpoint_id);
                DeliveryOrder { delivery_id, endpoint_id: endpoint_id.clone(), slow: true, ..order() }.lane()
            });
            let lanes: std::collections::BTreeSet<String> = lanes.collect();
            assert_eq!(lanes.len(), usize::from(SLOW_LANES));
            all.extend(lanes);
        }
        assert_eq!(all.len(), usize::from(SLOW_LANES_OF_COACH));
        assert!(all.contains("coach_1#slow#0"));
    }

    #[rstest::rstest]
    #[case::closed(2, 100)]
    #[case::open(3, 100)]
    #[case::half_open(3, 130)]
    fn an_order_by_hand_does_not_wait_for_the_breaker_and_the_next_attempt_does(
        #[case] silences: usize,
        #[case] now_s: i64,
    ) {
        let endpoint = sendable(Some(endpoint(silences)));
        let past_breaker = order().past_breaker();
        assert_eq!(past_breaker.turn(Some(&pending(1, 2)), &endpoint, false, at(now_s)), Turn::Send);
        assert_eq!(past_breaker.for_attempt(3, at(160)), order().for_attempt(3, at(160)));
        assert_eq!(past_breaker.turn(Some(&pending(1, 2)), &sendable(None), false, at(now_s)), end(DELETED));
    }

    #[rstest::rstest]
    #[case::made(pending(1, 3), Turn::Later(order().for_attempt(3, at(160))))]
    #[case::due(pending(1, 2), Turn::Send)]
    #[case::ahead(pending(1, 1), Turn::Skip)]
    #[case::older_chain(pending(2, 3), Turn::Skip)]
    fn a_redelivered_order_sends_the_next_one(#[case] delivery: DeliveryState, #[case] expected: Turn) {
        assert_eq!(order().turn(Some(&delivery), &sendable(Some(endpoint(0))), true, at(100)), expected);
    }

    #[test]
    fn copies_of_an_order_have_one_lane_and_id_and_each_wait_another_id() {
        let waited = order().later(at(200));
        assert_eq!((waited.hop, waited.lane()), (200, order().lane()));
        let ids = [order(), waited, order().for_attempt(3, at(0))].map(|order| order.deduplication_id());
        assert_eq!(ids, ["dlv_1/1/2/0", "dlv_1/1/2/200", "dlv_1/1/3/0"]);
    }

    #[test]
    fn orders_for_one_attempt_that_wait_for_one_time_are_copies_and_a_wait_is_no_copy_of_an_earlier_one() {
        let [one, other] = [order().later(at(150)), order().later(at(160)).later(at(170))];
        assert_eq!(one.later(at(200)), other.later(at(200)));
        for due_s in [0, 149, 150] {
            assert_eq!(one.later(at(due_s)).hop, 151);
        }
    }

    #[test]
    fn deliveries_are_spread_over_the_lanes() {
        let (event, endpoint) = (EventId::parse("evt_1").unwrap(), EndpointId::parse("we_1").unwrap());
        let mut counts = std::collections::BTreeMap::new();
        for ms in 0..1_000 {
            let delivery_id = DeliveryId::derive(ms, &event, &endpoint);
            *counts.entry(DeliveryOrder { delivery_id, ..order() }.lane()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), usize::from(LANES));
        assert!(counts.values().all(|count| (60..140).contains(count)), "{counts:?}");
    }
}
