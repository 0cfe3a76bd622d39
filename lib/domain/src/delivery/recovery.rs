//! Recoveries: failed deliveries of an endpoint begin a new retry chain.
//!
//! A recovery is for the deliveries that were created in a period, which is the period of the log's filters. It leaves
//! out test events, and what a recovery sent again within [`RECOVERY_PAUSE`]. So a coach who switches an endpoint off
//! and on and recovers in a loop sends nothing twice.

use std::ops::Range;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::DELIVERY_RETENTION;
use crate::event::EventName;
use crate::fields::{Fields, Invalid};
use crate::id::{DeliveryId, RecoveryId};
use crate::openapi::{Body, Field};
use crate::time::Timestamp;

/// Time during which a recovery leaves out deliveries that an earlier recovery sent again.
pub const RECOVERY_PAUSE: TimeDelta = TimeDelta::hours(1);
/// Time for which one page of a recovery locks its endpoint against another recovery.
pub const RECOVERY_LOCK: TimeDelta = TimeDelta::seconds(60);
/// Failed deliveries that a recovery looks at to count. It sends all, however many there are.
pub const MOST_COUNTED: usize = 10_000;

/// The body of `POST /settings/webhooks/{id}/recover`.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveryRequest {
    pub selection: RecoverySelection,
    /// Only count the deliveries.
    pub dry_run: bool,
}

/// The failed deliveries that a recovery is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoverySelection {
    /// The earliest creation.
    pub since: Timestamp,
    /// The creation before which the selection ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The events. `None` selects all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<EventName>>,
}

/// A recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    pub id: RecoveryId,
    #[serde(flatten)]
    pub selection: RecoverySelection,
    /// The time of the request. The recovery is for what it would have sent at that time, however long it takes.
    pub begun_at: Timestamp,
}

/// A failed delivery, as far as a recovery depends on it.
#[derive(Debug, Clone, Copy)]
pub struct FailedDelivery<'a> {
    pub id: &'a DeliveryId,
    pub event_type: &'a str,
    /// A test event.
    pub test: bool,
    /// The client is erased, and with it what could be sent.
    pub erased: bool,
    /// The time at which a recovery last sent the delivery again.
    pub recovered_at: Option<Timestamp>,
}

/// The deliveries that a recovery found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Recovered {
    /// Number of deliveries that are sent again, or with `dry_run` would be.
    pub deliveries: usize,
    /// Present and true if there are too many failed deliveries to count: those beyond are sent again, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub more: bool,
}

impl Recovered {
    /// Returns true if there is nothing to send again.
    pub fn is_empty(&self) -> bool {
        self.deliveries == 0 && !self.more
    }
}

impl RecoveryRequest {
    pub fn parse(fields: Fields<'_>) -> Result<Self, Invalid> {
        fields.only(&["since", "until", "types", "dry_run"])?;
        let names: Vec<EventName> = EventName::all().collect();
        let types = fields.list("types", &names, EventName::as_str)?;
        if types.as_ref().is_some_and(Vec::is_empty) {
            return Err(fields.refuse("types", "must name at least one event; leave it out for all"));
        }
        let selection =
            RecoverySelection { since: fields.required_timestamp("since")?, until: fields.timestamp("until")?, types };
        Ok(Self { selection, dry_run: fields.boolean("dry_run")?.unwrap_or(false) })
    }

    pub fn schema() -> Body {
        let names: Vec<&str> = EventName::all().map(EventName::as_str).collect();
        Body::new([
            (
                "since",
                Field::timestamp()
                    .required()
                    .about("Failed deliveries that were created at or after this time are sent again."),
            ),
            (
                "until",
                Field::timestamp()
                    .about("Only deliveries that were created before this time. Default: all since then."),
            ),
            ("types", Field::list_of(&names, 1).about("Only deliveries of these events. Default: all.")),
            ("dry_run", Field::boolean().default_value(false).about("True: count the deliveries, and send nothing.")),
        ])
        .closed()
    }
}

impl Recovery {
    /// Returns true if the recovery sends this delivery again. The count and the job ask here.
    pub fn includes(&self, delivery: &FailedDelivery<'_>) -> bool {
        let FailedDelivery { id, event_type, test, erased, recovered_at } = *delivery;
        let types = self.selection.types.as_ref();
        self.ids().contains(id)
            && types.is_none_or(|types| types.iter().any(|name| name.as_str() == event_type))
            && !test
            && !erased
            && recovered_at.is_none_or(|at| at + RECOVERY_PAUSE <= self.begun_at)
    }

    /// Returns the ids of deliveries that were created in the selected time, before the recovery began, and not too
    /// long before: ids lead with the time of creation. The range may be empty.
    pub fn ids(&self) -> Range<DeliveryId> {
        let since = self.selection.since.max(self.begun_at + -DELIVERY_RETENTION);
        let end = self.begun_at + TimeDelta::milliseconds(1);
        let end = self.selection.until.map_or(end, |until| until.min(end));
        DeliveryId::first_at(since.ms())..DeliveryId::first_at(end.ms())
    }
}

/// Returns the whole seconds after which a recovery may begin, from 1 to the length of a lock. A lock has more than its
/// length left if the asker's request arrived before the lock began.
pub fn recovery_ends_in_s(until: Timestamp, now: Timestamp) -> u32 {
    const MS: i64 = 1000;
    let left_ms = until.ms().saturating_sub(now.ms()).min(RECOVERY_LOCK.num_milliseconds());
    u32::try_from((left_ms + MS - 1) / MS).unwrap_or_default().max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::{ComputedType, EventType};
    use crate::id::{EndpointId, EventId};

    fn parse(body: Value) -> Result<RecoveryRequest, Invalid> {
        RecoveryRequest::parse(Fields::body(&body).unwrap())
    }

    #[test]
    fn a_recovery_names_a_beginning_and_perhaps_an_end_and_events() {
        let [since, until] = ["2026-11-20T09:30:00Z", "2026-11-20T10:30:00Z"];
        let asked = parse(json!({ "since": since })).unwrap();
        assert_eq!((asked.selection.until, asked.selection.types, asked.dry_run), (None, None, false));
        let types = ["new_client", "phase_eligible"];
        let asked = parse(json!({ "since": since, "until": until, "types": types, "dry_run": true })).unwrap();
        let types = [EventType::NewClient.into(), ComputedType::PhaseEligible.into()];
        assert_eq!(asked.selection.types.as_deref(), Some(&types[..]));
        assert_eq!((asked.selection.until, asked.dry_run), (Timestamp::parse(until), true));
        for (field, value) in [
            ("since", Value::Null),
            ("since", json!("yesterday")),
            ("until", json!(5)),
            ("types", json!([])),
            ("types", json!("new_client")),
            ("types", json!(["client_created"])),
            ("dry_run", json!("yes")),
            ("limit", json!(1)),
        ] {
            let mut body = json!({ "since": since });
            body[field] = value;
            assert_eq!(parse(body).unwrap_err().field.as_deref(), Some(field));
        }
    }

    /// The names go to the audit trail, whose lines have to stay small.
    #[test]
    fn a_selection_names_each_event_once() {
        let types = vec!["phase_eligible"; 5_000].into_iter().chain(["new_client", "phase_eligible"]);
        let asked = parse(json!({ "since": "2026-11-20T09:30:00Z", "types": types.collect::<Vec<_>>() })).unwrap();
        let types = [EventType::NewClient.into(), ComputedType::PhaseEligible.into()];
        assert_eq!(asked.selection.types.as_deref(), Some(&types[..]));
    }

    /// A recovery of the events `new_client` that were created from 10 to 20 days, and that began after 25 days.
    fn recovery() -> Recovery {
        let types = Some(vec![EventType::NewClient.into()]);
        let selection = RecoverySelection { since: day(10), until: Some(day(20)), types };
        Recovery { id: RecoveryId::from_uuid(uuid::Uuid::nil()), selection, begun_at: day(25) }
    }

    fn day(days: i64) -> Timestamp {
        Timestamp::from_ms(days * 86_400_000)
    }

    fn created(ms: i64) -> DeliveryId {
        DeliveryId::derive(ms, &EventId::parse("evt_1").unwrap(), &EndpointId::parse("we_1").unwrap())
    }

    fn failed(id: &DeliveryId) -> FailedDelivery<'_> {
        FailedDelivery { id, event_type: "new_client", test: false, erased: false, recovered_at: None }
    }

    #[rstest::rstest]
    #[case::before(-1, false)]
    #[case::first(0, true)]
    #[case::last(10 * 86_400_000 - 1, true)]
    #[case::end(10 * 86_400_000, false)]
    fn a_recovery_is_for_deliveries_created_since_a_time_and_before_another(
        #[case] ms_since: i64,
        #[case] is_included: bool,
    ) {
        let id = created(day(10).ms() + ms_since);
        assert_eq!(recovery().includes(&failed(&id)), is_included);
        assert_eq!(recovery().ids().contains(&id), is_included);
    }

    #[test]
    fn a_recovery_leaves_out_other_events_tests_erased_clients_and_what_was_just_recovered() {
        let id = created(day(15).ms());
        let delivery = failed(&id);
        let an_hour_ago = day(25) + -RECOVERY_PAUSE;
        let of_all = Recovery { selection: RecoverySelection { types: None, ..recovery().selection }, ..recovery() };
        for (recovery, delivery, is_included) in [
            (recovery(), delivery, true),
            (recovery(), FailedDelivery { event_type: "phase_advanced", ..delivery }, false),
            (of_all, FailedDelivery { event_type: "phase_advanced", ..delivery }, true),
            (recovery(), FailedDelivery { test: true, ..delivery }, false),
            (recovery(), FailedDelivery { erased: true, ..delivery }, false),
            (recovery(), FailedDelivery { recovered_at: Some(an_hour_ago), ..delivery }, true),
            (
                recovery(),
                FailedDelivery { recovered_at: Some(Timestamp::from_ms(an_hour_ago.ms() + 1)), ..delivery },
                false,
            ),
            // A page that is repeated later finds what it sent before.
            (recovery(), FailedDelivery { recovered_at: Some(day(26)), ..delivery }, false),
        ] {
            assert_eq!(recovery.includes(&delivery), is_included, "{recovery:?} {delivery:?}");
        }
    }

    #[test]
    fn a_recovery_ends_at_its_beginning_and_goes_back_as_far_as_deliveries_are_kept() {
        let selection = RecoverySelection { since: day(0), until: None, types: None };
        for until in [None, Some(day(99))] {
            let selection = RecoverySelection { until, ..selection.clone() };
            let ids = Recovery { selection, begun_at: day(40), ..recovery() }.ids();
            assert!(ids.contains(&created(day(40).ms())) && !ids.contains(&created(day(40).ms() + 1)));
            assert!(ids.contains(&created(day(10).ms())) && !ids.contains(&created(day(10).ms() - 1)));
        }
        let backwards = RecoverySelection { since: day(20), until: Some(day(10)), types: None };
        assert!(Recovery { selection: backwards, ..recovery() }.ids().is_empty());
    }

    #[rstest::rstest]
    #[case(60_000, 0, 60)]
    #[case(60_000, 1, 60)]
    #[case(60_000, 59_000, 1)]
    #[case(60_000, 59_001, 1)]
    // The lock has ended meanwhile, or the asker's clock is ahead.
    #[case(60_000, 60_000, 1)]
    #[case(60_000, 90_000, 1)]
    fn a_lock_has_ended_after_the_reported_seconds(#[case] until: i64, #[case] now: i64, #[case] expected_s: u32) {
        let [until, now] = [until, now].map(Timestamp::from_ms);
        assert_eq!(recovery_ends_in_s(until, now), expected_s);
        assert!(now + TimeDelta::seconds(expected_s.into()) >= until);
    }

    #[test]
    fn a_lock_that_began_after_the_askers_arrival_ends_within_its_length() {
        assert_eq!(recovery_ends_in_s(Timestamp::from_ms(60_020), Timestamp::from_ms(0)), 60);
    }
}
