//! Filters of the delivery log.
//!
//! Ids of deliveries begin with the time of creation. So the time of a filter is a range of ids, and the log is read in
//! the order of ids.

use std::ops::RangeInclusive;

use super::DeliveryStatus;
use crate::event::EventName;
use crate::fields::Invalid;
use crate::id::{DeliveryId, EndpointId, EventId};
use crate::time::{TIME_RULE, Timestamp};

/// The parameter that filters the log of all endpoints alone.
pub const ENDPOINT_FILTER: &str = "endpoint_id";

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

/// The part of a delivery that filters compare and that never changes.
#[derive(Debug, Clone, Copy)]
pub struct FilteredDelivery<'a> {
    pub endpoint_id: &'a EndpointId,
    pub event_type: &'a str,
    pub event_id: &'a EventId,
}

impl DeliveryFilter {
    /// The parameters that every delivery log takes.
    pub const PARAMETERS: [&str; 5] = ["status", "type", "webhook_id", "since", "until"];

    /// Parses the query parameters, which `query` looks up. An empty one is no filter.
    pub fn parse(query: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let time = |text: &str| Timestamp::parse_query(text).ok_or_else(|| TIME_RULE.to_owned());
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

    /// Returns the ids of the deliveries that were created in the filter's time, below the id `after`. `None`: there
    /// are none.
    pub fn ids(&self, after: Option<&DeliveryId>) -> Option<RangeInclusive<DeliveryId>> {
        let first = DeliveryId::first_at(self.since.map_or(0, Timestamp::ms));
        let mut last = DeliveryId::last();
        if let Some(until) = self.until {
            last = DeliveryId::first_at(until.ms()).predecessor()?;
        }
        if let Some(after) = after {
            last = last.min(after.predecessor()?);
        }
        (first <= last).then_some(first..=last)
    }

    /// Returns true if the filter may pass over many deliveries between two that it shows.
    pub fn is_selective(&self) -> bool {
        self.endpoint_id.is_some() || self.status.is_some() || self.event_type.is_some() || self.event_id.is_some()
    }

    /// Returns true if the filter shows a delivery of its time, whatever the delivery's status.
    pub fn includes(&self, delivery: FilteredDelivery<'_>) -> bool {
        let FilteredDelivery { endpoint_id, event_type, event_id } = delivery;
        self.endpoint_id.as_ref().is_none_or(|asked| asked == endpoint_id)
            && self.event_type.is_none_or(|asked| asked.as_str() == event_type)
            && self.event_id.as_ref().is_none_or(|asked| asked == event_id)
    }

    /// Returns true if the filter shows deliveries with this status.
    pub fn includes_status(&self, status: DeliveryStatus) -> bool {
        self.status.is_none_or(|asked| asked == status)
    }
}

fn parsed<T>(
    query: impl Fn(&str) -> Option<String>,
    name: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Invalid> {
    query(name)
        .filter(|text| !text.is_empty())
        .map(|text| parse(&text).map_err(|rule| Invalid::field(name, rule)))
        .transpose()
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

    proptest! {
        #[test]
        fn the_ids_of_a_filter_are_those_of_its_time_below_the_cursor(
            created in 0i64..50, since in prop::option::of(0i64..50), until in prop::option::of(0i64..50),
            after in prop::option::of(0i64..50),
        ) {
            let endpoint = EndpointId::parse("we_1").unwrap();
            let id = |ms: i64| DeliveryId::derive(ms, &EventId::derive(7, &["e"]), &endpoint);
            let time = |ms: Option<i64>| ms.map(Timestamp::from_ms);
            let filter = DeliveryFilter { since: time(since), until: time(until), ..DeliveryFilter::default() };
            let ids = filter.ids(after.map(id).as_ref());
            let is_shown = since.is_none_or(|since| since <= created)
                && until.is_none_or(|until| created < until)
                && after.is_none_or(|after| created < after);
            prop_assert_eq!(ids.is_some_and(|ids| ids.contains(&id(created))), is_shown);
        }
    }
}
