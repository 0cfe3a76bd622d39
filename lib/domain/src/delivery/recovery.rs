//! Recoveries: failed deliveries of an endpoint that are sent again.

use serde::Serialize;

use super::RECOVERY_PAUSE;
use crate::event::EventName;
use crate::fields::{Fields, Invalid};
use crate::openapi::{Body, Field};
use crate::time::Timestamp;

/// The body of `POST /settings/webhooks/{id}/recover`.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveryRequest {
    pub selection: RecoverySelection,
    /// Only count the deliveries.
    pub dry_run: bool,
}

/// The failed deliveries that a recovery is for.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoverySelection {
    /// The earliest failure.
    pub since: Timestamp,
    /// The failure before which the selection ends.
    pub until: Option<Timestamp>,
    /// The events. `None` selects all.
    pub types: Option<Vec<EventName>>,
}

/// The result of a recovery.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Recovered {
    /// Number of enqueued deliveries, or with `dry_run` of deliveries that a recovery would enqueue.
    pub deliveries: usize,
    /// Present and true if time ran out, or the store stopped answering, before the end: another recovery continues.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub more: bool,
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
                Field::timestamp().required().about(
                    "Deliveries that failed at or after this time are sent again, whenever their event happened.",
                ),
            ),
            (
                "until",
                Field::timestamp().about("Only deliveries that failed before this time. Default: all since then."),
            ),
            ("types", Field::list_of(&names, 1).about("Only deliveries of these events. Default: all.")),
            ("dry_run", Field::boolean().default_value(false).about("True: count the deliveries, and send nothing.")),
        ])
        .closed()
    }
}

impl RecoverySelection {
    /// Returns true for a delivery of this event that failed at `failed_at`, if a recovery that began at `begun_at`
    /// sends it again. A recovery leaves out deliveries that fail after its begin, or that it or an earlier one sent
    /// again.
    pub fn includes(
        &self,
        event_type: &str,
        failed_at: Timestamp,
        recovered_at: Option<Timestamp>,
        begun_at: Timestamp,
    ) -> bool {
        self.since <= failed_at
            && failed_at <= self.last(begun_at)
            && self.types.as_ref().is_none_or(|types| types.iter().any(|name| name.as_str() == event_type))
            && recovered_at.is_none_or(|at| at + RECOVERY_PAUSE <= begun_at)
    }

    /// The latest failure of a selection in a recovery that began at `begun_at`.
    pub fn last(&self, begun_at: Timestamp) -> Timestamp {
        let before = |until: Timestamp| Timestamp::from_ms(until.ms().saturating_sub(1));
        self.until.map_or(begun_at, |until| before(until).min(begun_at))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::{ComputedType, EventType};

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

    /// The time of failure, then of an earlier recovery, in milliseconds.
    #[rstest::rstest]
    #[case(9, None, false)]
    #[case(10, None, true)]
    #[case(19, None, true)]
    #[case(20, None, false)]
    #[case(15, Some(1_000), true)]
    #[case(15, Some(1_001), false)]
    fn a_selection_has_failures_since_its_beginning_and_before_its_end(
        #[case] failed_at: i64,
        #[case] recovered_at: Option<i64>,
        #[case] is_selected: bool,
    ) {
        let now = Timestamp::from_ms(1_000) + RECOVERY_PAUSE;
        let [since, until] = [10, 20].map(Timestamp::from_ms);
        let selection = RecoverySelection { since, until: Some(until), types: Some(vec![EventType::NewClient.into()]) };
        let includes = |selection: &RecoverySelection, event_type: &str| {
            let recovered_at = recovered_at.map(Timestamp::from_ms);
            selection.includes(event_type, Timestamp::from_ms(failed_at), recovered_at, now)
        };
        assert_eq!(includes(&selection, "new_client"), is_selected);
        assert!(!includes(&selection, "phase_advanced"));
        assert_eq!(includes(&RecoverySelection { types: None, ..selection }, "phase_advanced"), is_selected);
    }

    #[test]
    fn failures_after_the_beginning_of_a_recovery_are_left_out() {
        let at = Timestamp::from_ms;
        let selection = RecoverySelection { since: at(0), until: None, types: None };
        assert!(selection.includes("new_client", at(50), None, at(50)));
        assert!(!selection.includes("new_client", at(51), None, at(50)));
        let ends_later = RecoverySelection { until: Some(at(99)), ..selection };
        assert!(!ends_later.includes("new_client", at(51), None, at(50)));
    }
}
