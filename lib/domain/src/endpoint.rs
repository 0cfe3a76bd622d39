//! Webhook endpoints that a coach registers.
//!
//! An endpoint ends by a 410, five days of failures, or its coach. The end is written before the attempt that found it,
//! together with the change and the mail.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::endpoint_health::EndpointHealth;
use crate::event::{Event, EventType, PayloadMode};
use crate::fields::{Fields, Invalid, named_fields};
use crate::id::EndpointId;
use crate::openapi::{Body, Field};
use crate::outcome::DeliveryCounts;
use crate::receiver_url::{MAX_URL_CHARS, Reach, ReceiverUrl};
use crate::signature::SigningSecret;
use crate::time::Timestamp;

pub const MAX_ENDPOINTS: usize = 20;
pub const MAX_DESCRIPTION_CHARS: usize = 200;
/// Time for which a secret still signs after its rotation.
pub const SECRET_OVERLAP: TimeDelta = TimeDelta::hours(24);
/// Most secrets that sign at once.
pub const MAX_SECRETS: usize = 10;
/// The stored reason of an endpoint that its coach disabled.
const DISABLED_BY_HAND: &str = "by hand";
/// The stored reason of an endpoint whose receiver answered 410.
const GONE: &str = "the receiver answered 410 Gone";

/// The status of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndpointStatus {
    Enabled,
    Disabled,
    /// Its receiver answered 410: for good.
    Gone,
}

/// A registered webhook endpoint, without its secret, as it is stored and as the settings API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(description = "A registered webhook endpoint, without its secret.")]
pub struct Endpoint {
    /// Names the endpoint in paths, in the delivery log and in the Webhook steps of automations.
    pub id: EndpointId,
    /// The URL that deliveries are sent to. It may contain a secret.
    #[serde(serialize_with = "exposed")]
    #[schema(value_type = String)]
    pub url: ReceiverUrl,
    /// The emitted events to deliver. Empty: the endpoint gets only what the Webhook steps of automations send.
    pub events: Vec<EventType>,
    pub payload_mode: PayloadMode,
    /// The coach's note on the endpoint. Null if there is none.
    #[schema(required)]
    pub description: Option<String>,
    pub status: EndpointStatus,
    /// Why the endpoint is disabled or gone. Null if it is enabled.
    #[schema(required)]
    pub disabled_reason: Option<String>,
    /// When the endpoint was disabled or became gone. Null if it is enabled.
    #[schema(required)]
    pub disabled_at: Option<Timestamp>,
    /// When the endpoint was registered.
    pub created_at: Timestamp,
}

fn exposed<S: serde::Serializer>(url: &ReceiverUrl, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(url.expose())
}

/// The endpoint is gone for good and cannot be enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the endpoint is gone for good")]
pub struct EndpointGone;

/// Time for which an endpoint that was read counts as its present state. An attempt that takes longer reads it again.
const FRESH: TimeDelta = TimeDelta::seconds(1);

/// An endpoint with the secrets that sign its deliveries: the current secret first, then rotated secrets that are still
/// valid.
#[derive(Debug, Clone)]
pub struct SignedEndpoint {
    /// When the endpoint was read.
    pub read_at: Timestamp,
    pub endpoint: Endpoint,
    pub secrets: Vec<SigningSecret>,
    pub health: EndpointHealth,
}

impl SignedEndpoint {
    /// Returns true while this read is younger than `FRESH`.
    pub fn is_fresh(&self, at: Timestamp) -> bool {
        at.utc() - self.read_at.utc() < FRESH
    }
}

crate::named! {
    /// The kind of reason for which an endpoint gets nothing.
    DisabledReasonCode {
        /// Its coach disabled it.
        ByHand = "by_hand",
        /// It failed for too long.
        Failing = "failing",
        /// Its receiver answered 410.
        Gone = "gone",
    }
}

/// An endpoint with the record of its failures.
#[derive(Debug, Clone)]
pub struct EndpointWithHealth {
    pub endpoint: Endpoint,
    pub health: EndpointHealth,
    /// The time of the last change of the endpoint's status or events. `None`: it is as it was created.
    pub changed_at: Option<Timestamp>,
}

/// An endpoint as the settings API shows it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(description = "A registered webhook endpoint, without its secret, and how its deliveries go.")]
pub struct EndpointView {
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// Set while the endpoint does not answer: until then, deliveries wait, except those by hand. Else null.
    #[schema(required)]
    pub breaker_open_until: Option<Timestamp>,
    /// The first failed attempt since the last success, test events left out. Null while no attempt fails.
    #[schema(required)]
    pub failing_since: Option<Timestamp>,
    /// The kind of `disabled_reason`. Null if the endpoint is enabled.
    #[schema(required)]
    pub disabled_reason_code: Option<DisabledReasonCode>,
    /// The deliveries that ended in the last 24 hours, and those that wait.
    pub last_24h: DeliveryCounts,
}

impl EndpointView {
    pub fn new(
        EndpointWithHealth { endpoint, health, .. }: EndpointWithHealth,
        last_24h: DeliveryCounts,
        now: Timestamp,
    ) -> Self {
        let disabled_reason_code = endpoint.disabled_reason_code();
        let breaker_open_until = health.breaker.open_until(now);
        Self { endpoint, breaker_open_until, failing_since: health.failing_since(), disabled_reason_code, last_24h }
    }
}

/// A new endpoint, with its secret.
#[derive(Serialize, utoipa::ToSchema)]
pub struct NewEndpoint {
    #[serde(flatten)]
    pub endpoint: EndpointView,
    /// The secret with which the receiver verifies signatures. Shown once. Absent from a replay after 10 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secret: Option<String>,
}

/// All endpoints of a workspace.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct EndpointList {
    /// Every registered endpoint, disabled and gone ones included.
    pub endpoints: Vec<EndpointView>,
}

impl Endpoint {
    /// Returns true if the event is to be delivered.
    pub fn wants(&self, event: &Event) -> bool {
        self.status == EndpointStatus::Enabled && event.is_for(&self.id, &self.events)
    }

    /// Returns true if the endpoint is disabled but would get the event, which is then recorded as not sent.
    pub fn misses(&self, event: &Event) -> bool {
        self.status == EndpointStatus::Disabled && event.is_for(&self.id, &self.events)
    }

    /// Returns the kind of reason for which the endpoint gets nothing. `None`: it is enabled.
    pub fn disabled_reason_code(&self) -> Option<DisabledReasonCode> {
        match (self.status, self.disabled_reason.as_deref()) {
            (EndpointStatus::Enabled, _) => None,
            (EndpointStatus::Gone, _) => Some(DisabledReasonCode::Gone),
            (EndpointStatus::Disabled, Some(DISABLED_BY_HAND)) => Some(DisabledReasonCode::ByHand),
            (EndpointStatus::Disabled, _) => Some(DisabledReasonCode::Failing),
        }
    }

    /// Returns the endpoint after a change by its coach at `now`. Enabling clears the reason; disabling a disabled
    /// endpoint changes nothing.
    pub fn changed(&self, change: &EndpointChange, now: Timestamp) -> Result<Self, EndpointGone> {
        let mut endpoint = match (change.enabled, self.status) {
            (Some(true), EndpointStatus::Gone) => return Err(EndpointGone),
            (Some(true), _) => {
                Self { status: EndpointStatus::Enabled, disabled_reason: None, disabled_at: None, ..self.clone() }
            }
            (Some(false), EndpointStatus::Enabled) => self.off(EndpointStatus::Disabled, DISABLED_BY_HAND, now),
            (Some(false), EndpointStatus::Disabled | EndpointStatus::Gone) | (None, _) => self.clone(),
        };
        if let Some(url) = &change.url {
            endpoint.url = url.clone();
        }
        if let Some(events) = &change.events {
            endpoint.events.clone_from(events);
        }
        if let Some(description) = &change.description {
            endpoint.description.clone_from(description);
        }
        Ok(endpoint)
    }

    /// Returns the endpoint after its receiver answered 410. `None`: it is gone already.
    pub fn gone(&self, now: Timestamp) -> Option<Self> {
        (self.status != EndpointStatus::Gone).then(|| self.off(EndpointStatus::Gone, GONE, now))
    }

    /// Returns the endpoint, disabled because it has failed since `since`. `None`: it is disabled already.
    pub fn disabled_after_failures(&self, since: Timestamp, now: Timestamp) -> Option<Self> {
        let reason = format!("every delivery failed since {since}");
        (self.status == EndpointStatus::Enabled).then(|| self.off(EndpointStatus::Disabled, &reason, now))
    }

    fn off(&self, status: EndpointStatus, reason: &str, now: Timestamp) -> Self {
        Self { status, disabled_reason: Some(reason.to_owned()), disabled_at: Some(now), ..self.clone() }
    }

    /// Returns the log line for a delivery that is not sent. A coach who disabled the endpoint by hand needs no reason.
    pub fn not_sent(&self) -> String {
        match (self.status, self.disabled_reason.as_deref()) {
            (EndpointStatus::Gone, _) => "not sent: endpoint gone".to_owned(),
            (_, Some(reason)) if reason != DISABLED_BY_HAND => format!("not sent: endpoint disabled: {reason}"),
            _ => "not sent: endpoint disabled".to_owned(),
        }
    }
}

/// An endpoint to register.
#[derive(Debug, Clone)]
pub struct EndpointDraft {
    pub url: ReceiverUrl,
    pub events: Vec<EventType>,
    pub payload_mode: PayloadMode,
    pub description: Option<String>,
}

impl EndpointDraft {
    /// Parses the body of `POST /settings/webhooks`.
    pub fn parse(fields: Fields<'_>, reach: Reach) -> Result<Self, Invalid> {
        fields.only(&["url", "events", "payload_mode", "description"])?;
        Ok(Self {
            url: fields.required("url", MAX_URL_CHARS, |text| ReceiverUrl::parse_sent(text, reach))?,
            events: events(fields)?.ok_or_else(|| Invalid::field("events", "is required"))?,
            payload_mode: fields.required("payload_mode", 32, PayloadMode::parse)?,
            description: fields.visible_text("description", MAX_DESCRIPTION_CHARS)?.map(str::to_owned),
        })
    }

    pub fn schema() -> Body {
        Body::new([
            ("url", url_schema().required()),
            ("events", events_schema().required()),
            (
                "payload_mode",
                Field::one_of(&PayloadMode::ALL.map(PayloadMode::as_str)).required().about(
                    "`identifiers`: ids, figures and dates. `contact_details`: also the person's name, e-mail address, \
                     phone number and external id, and the names of opportunities. Fixed at creation.",
                ),
            ),
            (
                "description",
                Field::visible_text(MAX_DESCRIPTION_CHARS).about("The coach's note on the endpoint. Default: none."),
            ),
        ])
        .closed()
    }
}

/// A change of an endpoint. A field that is `None` stays unchanged.
#[derive(Debug, Clone, Default)]
pub struct EndpointChange {
    pub url: Option<ReceiverUrl>,
    pub events: Option<Vec<EventType>>,
    /// `Some(None)` clears the description.
    pub description: Option<Option<String>>,
    pub enabled: Option<bool>,
}

impl EndpointChange {
    /// Parses the body of `PATCH /settings/webhooks/{id}`.
    pub fn parse(fields: Fields<'_>, reach: Reach) -> Result<Self, Invalid> {
        const FIELDS: [&str; 4] = ["url", "events", "description", "enabled"];
        if fields.mentions("payload_mode") {
            return Err(Invalid::field(
                "payload_mode",
                "is fixed when the endpoint is created; register another endpoint",
            ));
        }
        fields.only(&FIELDS)?;
        if !FIELDS.iter().any(|name| fields.mentions(name)) {
            return Err(Invalid::whole("The body must set at least one of url, events, description and enabled."));
        }
        if let Some(name) =
            ["url", "events", "enabled"].into_iter().find(|name| fields.mentions(name) && !fields.has(name))
        {
            return Err(Invalid::field(name, "must not be null; leave it out to keep it"));
        }
        if fields.value("description").is_some_and(|description| description == "") {
            return Err(Invalid::field("description", "must not be empty; null clears it"));
        }
        let description = fields.visible_text("description", MAX_DESCRIPTION_CHARS)?.map(str::to_owned);
        Ok(Self {
            url: fields.parsed("url", MAX_URL_CHARS, |text| ReceiverUrl::parse_sent(text, reach))?,
            events: events(fields)?,
            description: fields.mentions("description").then_some(description),
            enabled: fields.boolean("enabled")?,
        })
    }

    /// Returns the names of the fields that the change sets.
    pub fn fields(&self) -> Vec<String> {
        named_fields([
            ("url", self.url.is_some()),
            ("events", self.events.is_some()),
            ("description", self.description.is_some()),
            ("enabled", self.enabled.is_some()),
        ])
    }

    pub fn schema() -> Body {
        Body::change([
            ("url", url_schema()),
            ("events", events_schema()),
            ("description", Field::visible_text(MAX_DESCRIPTION_CHARS).about("Null clears it.")),
            ("enabled", Field::boolean().about("Enabling an endpoint clears `disabled_reason` and `disabled_at`.")),
        ])
        .clearing(&["description"])
        .forbidding(&["payload_mode"])
    }
}

fn url_schema() -> Field {
    Field::receiver_url(MAX_URL_CHARS)
        .about("The URL of the receiver: `https`, a public host, no user name, password or fragment.")
}

fn events_schema() -> Field {
    Field::list_of(&EventType::ALL.map(EventType::as_str), 0).about(
        "The emitted events to deliver. Empty: the endpoint gets only what the Webhook steps of automations send.",
    )
}

fn events(fields: Fields<'_>) -> Result<Option<Vec<EventType>>, Invalid> {
    fields.list("events", &EventType::ALL, EventType::as_str)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn endpoint(status: EndpointStatus) -> Endpoint {
        let off = status != EndpointStatus::Enabled;
        Endpoint {
            id: EndpointId::parse("we_1").unwrap(),
            url: ReceiverUrl::parse("https://hooks.example.com/", Reach::Public).unwrap(),
            events: vec![EventType::NewClient],
            payload_mode: PayloadMode::Identifiers,
            description: Some("mine".to_owned()),
            status,
            disabled_reason: off.then(|| "answered 410".to_owned()),
            disabled_at: off.then(|| Timestamp::from_ms(1)),
            created_at: Timestamp::from_ms(0),
        }
    }

    fn enabled(enabled: bool) -> EndpointChange {
        EndpointChange { url: None, events: None, description: None, enabled: Some(enabled) }
    }

    #[test]
    fn a_url_that_is_taken_is_taken_again_as_it_is_shown() {
        let url_of = |letters: usize| format!("https://hooks.example.com/{}", "ü".repeat(letters));
        let changed = |url: &str| {
            let body = serde_json::json!({ "url": url });
            EndpointChange::parse(Fields::body(&body).unwrap(), Reach::Public)
        };
        // 26 characters, and 6 per letter.
        let longest = changed(&url_of(337)).unwrap().url.unwrap();
        assert_eq!(longest.expose().len(), MAX_URL_CHARS);
        assert!(changed(longest.expose()).unwrap().url == Some(longest));
        let refused = changed(&url_of(338)).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some("url"));
        assert!(refused.message.contains("%C3%BC"), "{refused}");
        let body = serde_json::json!({ "url": url_of(338), "events": [], "payload_mode": "identifiers" });
        assert_eq!(EndpointDraft::parse(Fields::body(&body).unwrap(), Reach::Public).unwrap_err(), refused);
    }

    #[test]
    fn disabling_sets_reason_and_time_and_enabling_clears_them() {
        let off = endpoint(EndpointStatus::Enabled).changed(&enabled(false), Timestamp::from_ms(7)).unwrap();
        assert_eq!(off.status, EndpointStatus::Disabled);
        assert_eq!((off.disabled_reason.as_deref(), off.disabled_at), (Some("by hand"), Some(Timestamp::from_ms(7))));
        assert_eq!(off.disabled_reason_code(), Some(DisabledReasonCode::ByHand));
        let on = off.changed(&enabled(true), Timestamp::from_ms(8)).unwrap();
        assert_eq!(on, endpoint(EndpointStatus::Enabled));
    }

    #[test]
    fn an_endpoint_that_is_off_keeps_its_reason_and_a_gone_one_cannot_be_enabled() {
        for off in [EndpointStatus::Disabled, EndpointStatus::Gone].map(endpoint) {
            assert_eq!(off.changed(&enabled(false), Timestamp::from_ms(9)).unwrap(), off);
        }
        let gone = endpoint(EndpointStatus::Gone);
        assert_eq!(gone.changed(&enabled(true), Timestamp::from_ms(9)), Err(EndpointGone));
    }

    #[test]
    fn only_an_enabled_endpoint_gets_events_and_only_a_disabled_one_misses_them() {
        let subscribed = crate::event::tests::event();
        let unsubscribed = Event { event_type: EventType::MessageReceived.into(), ..subscribed.clone() };
        let named = Event { to: vec![endpoint(EndpointStatus::Enabled).id], ..unsubscribed.clone() };
        let other = Event { to: vec![EndpointId::parse("we_other").unwrap()], ..subscribed.clone() };
        let of = |status| {
            let endpoint = endpoint(status);
            for event in [&unsubscribed, &other] {
                assert!(!endpoint.wants(event) && !endpoint.misses(event));
            }
            assert_eq!(endpoint.wants(&named), endpoint.wants(&subscribed), "a step's endpoint need not subscribe");
            assert_eq!(endpoint.misses(&named), endpoint.misses(&subscribed));
            (endpoint.wants(&subscribed), endpoint.misses(&subscribed))
        };
        assert_eq!(of(EndpointStatus::Enabled), (true, false));
        assert_eq!(of(EndpointStatus::Disabled), (false, true));
        assert_eq!(of(EndpointStatus::Gone), (false, false));
    }
}
