//! Filters of the delivery log.
//!
//! Ids of deliveries begin with the time of creation. So the time of a filter is a range of ids, and the log is read in
//! the order of ids.

use std::ops::RangeInclusive;

use chrono::TimeDelta;

use super::DeliveryStatus;
use crate::event::EventName;
use crate::fields::Invalid;
use crate::id::{DeliveryId, EndpointId, EventId};
use crate::query::{parsed, time};
use crate::time::Timestamp;

/// The parameter that filters the log of all endpoints alone.
pub const ENDPOINT_FILTER: &str = "endpoint_id";

/// Longest time between an event and the creation of its deliveries for which the event's id tells the latter.
const NEAR_EVENT: TimeDelta = TimeDelta::minutes(10);

/// Returns the times around an event at which its deliveries were created, unless another time is noted.
pub fn times_around(event: &EventId) -> RangeInclusive<Timestamp> {
    match event.at_ms().map(Timestamp::from_ms) {
        Some(at) => at + -NEAR_EVENT..=at + NEAR_EVENT,
        None => Timestamp::from_ms(0)..=Timestamp::from_ms(i64::MAX),
    }
}

/// Returns true if the id of an event tells that a delivery was created at that time. Otherwise the event is late, or
/// the application's clock is ahead, and the time has to be noted.
pub fn tells_creation(event: &EventId, made_at: Timestamp) -> bool {
    times_around(event).contains(&made_at)
}

/// A filter of the delivery log. The default shows every delivery.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeliveryFilter {
    pub endpoint_id: Option<EndpointId>,
    pub status: Option<DeliveryStatus>,
    pub event_type: Option<EventName>,
    pub event_id: Option<EventId>,
    /// The earliest creation.
    pub since: Option<Timestamp>,
    /// The creation before which the log ends.
    pub until: Option<Timestamp>,
}

impl DeliveryFilter {
    /// Parses the query parameters, which `query` looks up. An empty one is no filter.
    pub fn parse(query: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let endpoint_id = |text: &str| EndpointId::parse_whole(text).map_err(|_| rule_of_ids("we_"));
        let event_id = |text: &str| EventId::parse_whole(text).map_err(|_| rule_of_ids("evt_"));
        Ok(Self {
            endpoint_id: parsed(&query, ENDPOINT_FILTER, endpoint_id)?,
            status: parsed(&query, "status", DeliveryStatus::parse)?,
            event_type: parsed(&query, "type", EventName::parse)?,
            event_id: parsed(&query, "webhook_id", event_id)?,
            since: parsed(&query, "since", time)?,
            until: parsed(&query, "until", time)?,
        })
    }

    /// Returns the ids of the deliveries that were created in the filter's time and within `times`, below the id
    /// `after`. `None`: there are none.
    pub fn ids(
        &self,
        times: Option<&RangeInclusive<Timestamp>>,
        after: Option<&DeliveryId>,
    ) -> Option<RangeInclusive<DeliveryId>> {
        let begin = self.since.into_iter().chain(times.map(|times| *times.start())).max();
        // The first time that is excluded.
        let end = self.until.into_iter().chain(times.map(|times| *times.end() + TimeDelta::milliseconds(1))).min();
        let first = DeliveryId::first_at(begin.map_or(0, Timestamp::ms));
        let mut last = DeliveryId::last();
        if let Some(end) = end {
            last = DeliveryId::first_at(end.ms()).predecessor()?;
        }
        if let Some(after) = after {
            last = last.min(after.predecessor()?);
        }
        (first <= last).then_some(first..=last)
    }

    /// Returns true if the filter shows deliveries of this event.
    pub fn includes(&self, event_type: &str, event_id: &str) -> bool {
        self.event_type.is_none_or(|asked| asked.as_str() == event_type)
            && self.event_id.as_ref().is_none_or(|asked| asked.as_str() == event_id)
    }

    /// Returns true if the filter shows deliveries with this status.
    pub fn includes_status(&self, status: DeliveryStatus) -> bool {
        self.status.is_none_or(|asked| asked == status)
    }
}

fn rule_of_ids(prefix: &str) -> String {
    format!("must be {prefix} and 32 lower-case hexadecimal digits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(name: &str, value: &str) -> Result<DeliveryFilter, Invalid> {
        DeliveryFilter::parse(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[rstest::rstest]
    #[case("endpoint_id", "we_019a9f0c6d5e7b3c8f1a2b3c4d5e6f71", "we_1")]
    #[case("status", "failed", "lost")]
    #[case("type", "compliance_drop", "client_created")]
    #[case("webhook_id", "evt_019a9f0c6d5e8b3c8f1a2b3c4d5e6f72", "dlv_019a9f0c6d5e8b3c8f1a2b3c4d5e6f72")]
    #[case("since", "2026-11-20T09:30:00Z", "2026-11-20")]
    #[case("until", "2026-11-20T09:30:00+02:00", "now")]
    #[case("until", "2026-11-20T09:30:00 02:00", "2026-11-20 09:30")]
    fn a_filter_takes_its_form_and_refuses_another_by_name(#[case] name: &str, #[case] good: &str, #[case] bad: &str) {
        assert_ne!(parse(name, good).unwrap(), DeliveryFilter::default());
        assert_eq!(parse(name, bad).unwrap_err().field.as_deref(), Some(name), "{bad:?}");
        assert_eq!(parse(name, "").unwrap(), DeliveryFilter::default(), "an empty filter is none");
    }

    #[rstest::rstest]
    #[case(0, true)]
    #[case(600_000, true)]
    #[case(600_001, false)]
    #[case(-600_000, true)]
    #[case(-600_001, false)]
    fn an_events_id_tells_of_deliveries_near_its_time(#[case] later_ms: i64, #[case] tells: bool) {
        const AT_MS: i64 = 1_800_000_000_000;
        let event = EventId::derive(AT_MS, &["e"]);
        assert_eq!(tells_creation(&event, Timestamp::from_ms(AT_MS + later_ms)), tells);
    }

    proptest! {
        #[test]
        fn the_ids_of_a_filter_are_those_of_its_time_below_the_cursor(
            created in 0i64..50, since in prop::option::of(0i64..50), until in prop::option::of(0i64..50),
            after in prop::option::of(0i64..50), times in prop::option::of((0i64..50, 0i64..50)),
        ) {
            let times = times.map(|(one, other)| Timestamp::from_ms(one)..=Timestamp::from_ms(other));
            let endpoint = EndpointId::parse("we_1").unwrap();
            let id = |ms: i64| DeliveryId::derive(ms, &EventId::derive(7, &["e"]), &endpoint);
            let time = |ms: Option<i64>| ms.map(Timestamp::from_ms);
            let filter = DeliveryFilter { since: time(since), until: time(until), ..DeliveryFilter::default() };
            let ids = filter.ids(times.as_ref(), after.map(id).as_ref());
            let is_shown = since.is_none_or(|since| since <= created)
                && until.is_none_or(|until| created < until)
                && after.is_none_or(|after| created < after)
                && times.as_ref().is_none_or(|times| times.contains(&Timestamp::from_ms(created)));
            prop_assert_eq!(ids.is_some_and(|ids| ids.contains(&id(created))), is_shown);
        }
    }
}
