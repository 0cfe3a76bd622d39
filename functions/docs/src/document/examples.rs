//! Examples of answers, built from the derived schemas and one table of values.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use domain::endpoint::MAX_ENDPOINTS;
use domain::id_kind::IdKind;
use domain::key::MAX_LIVE_KEYS;
use domain::login_link::EXPIRES_NOTE;
use domain::openapi::referenced;
use domain::time::Timestamp;
use serde_json::{Value, json};

use super::components::Schemas;

pub(super) const CLIENT_ID: &str = IdKind::Client.example();
pub(super) const KEY_ID: &str = IdKind::Key.example();
pub(super) const DELIVERY_ID: &str = IdKind::Delivery.example();
pub(super) const ENDPOINT_ID: &str = IdKind::Endpoint.example();
pub(super) const EVENT_ID: &str = "evt_019a9f0c6d5e8b3c8f1a2b3c4d5e6f72";
pub(super) const CONTACT_ID: &str = IdKind::Contact.example();
pub(super) const OPPORTUNITY_ID: &str = IdKind::Opportunity.example();
pub(super) const CALENDAR_ID: &str = "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f76";
pub(super) const BOOKING_ID: &str = IdKind::Booking.example();
pub(super) const LOGIN_TOKEN: &str = IdKind::LoginToken.example();
/// Id of a removal of test data.
const WIPE_ID: &str = "wipe_019a9f0c6d5e7b3c8f1a2b3c4d5e6f79";

/// Returns a time (UTC) on the day of the examples.
pub(super) fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2026-11-20T{time}Z")).expect("the example is a valid time")
}

/// A table of values: `"Schema": { "member": value }`.
macro_rules! values {
    ($($schema:literal: $members:tt)*) => { BTreeMap::from([$(($schema, json!($members))),*]) };
}

/// Values by schema. A member that is absent here is null or an example of its own schema.
static VALUES: LazyLock<BTreeMap<&str, Value>> = LazyLock::new(|| {
    values! {
        "PingResult": { "ok": true, "active_clients": 41, "scope": "partner" }
        "PingCoach": { "id": "coach_7f3a", "email": "joan@coach.example", "name": "Joan Clarke" }
        "OwnKey": {
            "id": KEY_ID, "name": "EMR", "scope": "partner", "permissions": ["clients.read", "records.read"],
            "mode": "live", "entitled": true, "today": "2026-11-20",
        }
        "OwnWorkspace": { "name": "Joan Clarke", "time_zone": "America/New_York" }
        "ClientList": { "count": 1 }
        "ClientListItem": {
            "client_id": CLIENT_ID, "full_name": "Ada Lovelace", "email": "ada@example.com", "is_active": true,
            "current_phase": "Foundation", "external_id": "patient-1815", "created_at": at("09:30:00.000"),
            "updated_at": at("10:15:00.000"),
        }
        "ClientProfile": { "goals": "Sleep through the night.", "height_in": 65.5, "weight_lbs": 140 }
        "ClientDetail": { "latest_check_in_at": at("16:05:12.480") }
        "CreateClientResult": {
            "client_id": CLIENT_ID, "email": "ada@example.com", "full_name": "Ada Lovelace", "welcome_email_sent": true,
        }
        "Compliance": {
            "client_id": CLIENT_ID, "window_days": 7, "since": "2026-11-14", "compliance_pct": 86, "doses_logged": 12,
            "doses_expected": 14, "last_logged_on": "2026-11-20",
        }
        "CheckInList": { "client_id": CLIENT_ID, "count": 1 }
        "CheckIn": { "id": "checkin_20261119", "submitted_at": at("16:05:12.480"), "reviewed": false }
        "DailyLogDates": {
            "client_id": CLIENT_ID, "dates": ["2026-11-20", "2026-11-19", "2026-11-17"], "count": 3,
            "last_logged_on": "2026-11-20",
        }
        "LoginLink": {
            "client_id": CLIENT_ID, "login_url": format!("https://coach.example/login/{LOGIN_TOKEN}"),
            "expires_note": EXPIRES_NOTE,
        }
        // The example key of RFC 8037, appendix A.
        "Jwk": {
            "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "kid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "use": "sig", "alg": "EdDSA",
        }
        "WebhookAddresses": { "prefixes": ["203.0.113.7/32", "203.0.113.8/32"] }
        "Key": {
            "id": KEY_ID, "name": "Booking desk", "scope": "partner", "permissions": ["clients.read", "clients.write"],
            "display": "svc_live_…x7Qd", "created_at": at("08:00:00.000"), "last_used_at": at("09:30:00.000"), "status": "active",
        }
        "NewKey": { "last_used_at": null, "key": "svc_live_T0pSecretT0pSecretT0pSecretT0pSe3Yx7Qd" }
        "EventPage": { "next_cursor": "YXNjLjE3OTUxMDIyMDAwMDAuMTcuMTc5NTE2NzAwMDAwMA", "has_more": false }
        "FeedEvent": {
            "id": EVENT_ID, "type": "new_client", "timestamp": at("09:30:00.000"),
            "data": { "client": { "id": CLIENT_ID }, "created_at": at("09:30:00.000"), "source": "application" },
        }
        "WorkspaceView": { "coach_id": "coach_7f3a", "name": "Joan Clarke", "crm_configured": true }
        "Entitlements": { "partner_api": true, "pro_crm": true, "gym": true }
        "KeyUsage": { "live": 3, "max": MAX_LIVE_KEYS }
        "EndpointUsage": { "count": 1, "max": MAX_ENDPOINTS }
        "AuditPage": {
            "data": [
                {
                    "at": at("09:30:00.000"), "actor": "service", "action": "endpoint.disabled", "target": ENDPOINT_ID,
                    "detail": { "host": "hooks.example.com", "status": "gone" },
                },
                {
                    "at": at("08:00:00.000"), "actor": "coach_7f3a", "action": "key.created", "target": KEY_ID,
                    "detail": { "name": "Booking desk", "scope": "partner" },
                },
            ],
        }
        "RequestRecord": {
            "id": "JKJaXmPLvHcESHA=", "at": at("09:30:00.000"), "key_id": KEY_ID, "method": "POST", "route": "/v1/clients",
            "status": 409, "code": "email_taken", "replayed": false, "duration_ms": 21,
            "idempotency_key_sha256": "7c35c5a1785d", "user_agent": "n8n", "parameters": [],
        }
        "RequestSummary": { "complete": true }
        "KeyRequests": { "key_id": KEY_ID, "requests": 64, "refused": 3, "last_at": at("09:30:00.000") }
        "CodeCount": { "code": "email_taken", "count": 2 }
        "Endpoint": {
            "id": ENDPOINT_ID, "url": "https://hooks.example.com/coaching",
            "events": ["new_client", "check_in_submitted"], "payload_mode": "identifiers",
            "description": "Practice software", "status": "enabled", "created_at": at("08:05:00.000"),
        }
        "DeliveryCounts": { "delivered": 40, "failed": 1, "pending": 2 }
        "NewEndpoint": {
            "secret": "whsec_rnsmaoD6yfzzVFIqtV15UkZTXUlbyqtRO86LN3i3HkQ=",
            "last_24h": { "delivered": 0, "failed": 0, "pending": 0 },
        }
        "ActivityHour": { "at": at("09:00:00.000"), "delivered": 12, "failed": 1 }
        "Ordered": { "delivery_id": DELIVERY_ID }
        "Recovered": { "deliveries": 12 }
        "Delivery": {
            "id": DELIVERY_ID, "endpoint_id": ENDPOINT_ID, "webhook_id": EVENT_ID, "type": "new_client",
            "client_id": CLIENT_ID, "test": false, "created_at": at("09:30:00.000"), "status": "delivered",
            "attempts": [
                {
                    "at": at("09:30:01.120"), "status_code": 503, "duration_ms": 84,
                    "response_excerpt": "back in a minute",
                },
                { "at": at("09:30:06.300"), "status_code": 204, "duration_ms": 61 },
            ],
        }
        "DeliveryDetail": {
            "request": {
                "url_host": "hooks.example.com",
                "headers": {
                    "accept": "*/*", "accept-encoding": "identity", "content-type": "application/json",
                    "user-agent": "partner-api-webhooks/1", "webhook-id": EVENT_ID,
                    "webhook-timestamp": at("09:30:06.300").unix_s().to_string(),
                    "webhook-signature": "v1,4DFnM4Wx0iVdbTJZ5h5PtGXM3bbmvAHLHW3mjsr5ONY=",
                    "x-service-event": "new_client",
                },
                "body": format!(
                    r#"{{"type":"new_client","timestamp":"{0}","data":{{"client":{{"id":"{CLIENT_ID}"}},"created_at":"{0}","source":"application"}}}}"#,
                    at("09:30:00.000"),
                ),
            },
            "body_erased": false,
        }
        "Contact": {
            "id": CONTACT_ID, "name": "Grace Hopper", "email": "grace@example.com", "phone": "+1 415 555 0132",
            "doNotContact": false, "createdAt": at("09:00:00.000"), "updatedAt": at("09:00:00.000"),
        }
        "Marketing": { "email": true, "sms": false }
        "Opportunity": {
            "id": OPPORTUNITY_ID, "contactId": CONTACT_ID, "name": "Twelve weeks", "valueCents": 180_000,
            "pipelineId": "pipeline_coaching", "stage": "new", "status": "open", "createdAt": at("09:05:00.000"),
            "updatedAt": at("09:05:00.000"),
        }
        "Calendar": {
            "id": CALENDAR_ID, "name": "Introduction call", "timezone": "America/New_York", "priceCents": 0,
            "currency": "USD", "bookingUrl": "https://coach.example/book/introduction", "durationMinutes": 30,
        }
        "Availability": { "ok": true }
        "CalendarAvailability": {
            "id": CALENDAR_ID, "name": "Introduction call", "timezone": "America/New_York", "priceCents": 0,
            "currency": "USD", "bookingUrl": "https://coach.example/book/introduction",
            "days": [
                { "date": "2026-11-23", "slots": ["09:00", "09:30", "11:00"] },
                { "date": "2026-11-24", "slots": [] },
            ],
        }
        "BookingOutcome": { "ok": true }
        "Booking": {
            "id": BOOKING_ID, "calendarId": CALENDAR_ID, "leadId": CONTACT_ID, "startsAt": "2026-11-23T14:30:00.000Z",
            "endsAt": "2026-11-23T15:00:00.000Z", "timezone": "America/New_York", "date": "2026-11-23", "time": "09:30",
            "status": "confirmed", "createdAt": at("09:30:00.000"), "updatedAt": at("09:30:00.000"),
        }
        "FactResult": { "id": "fact-1", "result": "stored" }
        "EvaluationResult": { "evaluated": 1, "events": 1, "more": false }
        "SentEvent": { "id": EVENT_ID }
        "StoredMail": {
            "to": "grace@example.com", "subject": "Welcome to Joan Clarke",
            "text": "Hello Grace Hopper, ..", "html": "<p>Hello Grace Hopper, ..</p>", "sent_at": at("09:30:00.000"),
        }
        "WipeStarted": { "job": WIPE_ID }
        "WipeJob": { "job": WIPE_ID, "status": "running" }
        "Workflow": {
            "id": "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f78", "name": "Welcome", "trigger": "contact_created",
            "isActive": true, "activatedAt": at("08:00:00.000"), "updatedAt": at("08:00:00.000"),
        }
    }
});

/// The members of an object's schema, those of its parts included, and the values that the table has for them.
#[derive(Default)]
struct Shape<'s> {
    properties: BTreeMap<&'s String, &'s Value>,
    required: Vec<&'s Value>,
    values: BTreeMap<&'s String, &'s Value>,
}

impl<'s> Shape<'s> {
    fn add(&mut self, schema: &'s Value, schemas: &'s Schemas) {
        if let Some(name) = schema.as_object().and_then(referenced) {
            for (member, value) in VALUES.get(name).and_then(Value::as_object).into_iter().flatten() {
                self.values.entry(member).or_insert(value);
            }
            self.add(&schemas.0[name], schemas);
        }
        schema["allOf"].as_array().into_iter().flatten().for_each(|part| self.add(part, schemas));
        // Of several forms, the first is shown.
        schema["anyOf"].as_array().into_iter().flatten().take(1).for_each(|form| self.add(form, schemas));
        self.properties.extend(schema["properties"].as_object().into_iter().flatten());
        self.required.extend(schema["required"].as_array().into_iter().flatten());
    }
}

impl Schemas {
    /// Builds an example of a schema. The given value goes before those of the table. `place` names the example.
    pub(super) fn example(&self, place: &str, schema: &Value, given: Option<&Value>) -> Value {
        let mut shape = Shape::default();
        shape.add(schema, self);
        if shape.properties.is_empty() {
            return self.example_of_other(place, schema, given);
        }
        shape.values.extend(given.and_then(Value::as_object).into_iter().flatten());
        let unknown: Vec<_> = shape.values.keys().filter(|name| !shape.properties.contains_key(*name)).collect();
        assert!(unknown.is_empty(), "the example of {place} has {unknown:?}, which its schema has not: {}", file!());
        let is_shown = |name: &String| shape.values.contains_key(name) || shape.required.iter().any(|one| *one == name);
        let shown = shape.properties.iter().filter(|(name, _)| is_shown(name));
        let member = |(name, schema): (&&String, &&Value)| {
            let place = format!("{place}.{name}");
            ((*name).clone(), self.example(&place, schema, shape.values.get(name).copied()))
        };
        Value::Object(shown.map(member).collect())
    }

    /// Builds an example of a schema that is no object with known members.
    fn example_of_other(&self, place: &str, schema: &Value, given: Option<&Value>) -> Value {
        let is_nullable = schema["oneOf"].is_array() || schema["type"].is_array();
        match (given, schema.get("items")) {
            (Some(Value::Array(given)), Some(items)) => {
                given.iter().map(|item| self.example(place, items, Some(item))).collect()
            }
            (None, Some(items)) => json!([self.example(place, items, None)]),
            (Some(given), _) => given.clone(),
            (None, None) if is_nullable => Value::Null,
            (None, None) => panic!("no example of {place}: add it to VALUES in {}", file!()),
        }
    }
}
