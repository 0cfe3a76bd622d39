//! Example values of the handlers' types. So an example has the shape of an answer.

use chrono::NaiveDate;
use domain::api_key::Scope;
use domain::assertion::{Jwk, JwkSet};
use domain::audit::{AuditAction, AuditActor, AuditDetail, AuditEntry, AuditPage};
use domain::check_in::{CheckIn, CheckInList};
use domain::client::{Client, ClientList, CreateClientResult, Measure, Origin, Phase, Profile};
use domain::compliance::Compliance;
use domain::daily_log::DailyLogDates;
use domain::delivery::{
    Attempt, AttemptResult, DeliveryCounts, DeliveryDetail, DeliveryPage, DeliveryRequest, DeliveryStatus,
    DeliveryView, SentRequest,
};
use domain::email::Email;
use domain::endpoint::{Endpoint, EndpointStatus, EndpointView, EndpointWithHealth, MAX_ENDPOINTS, NewEndpoint};
use domain::endpoint_health::EndpointHealth;
use domain::event::{EventCatalog, EventType, PayloadMode};
use domain::id::{CheckInId, ClientId, CoachId, DeliveryId, EndpointId, EventId, KeyId};
use domain::key::{KeyStatus, KeyView, MAX_LIVE_KEYS, NewKey, ROTATION_OVERLAP};
use domain::login_link::{EXPIRES_NOTE, LoginLink};
use domain::phone::Phone;
use domain::ping::{PingCoach, PingResult};
use domain::rate_limit::{Limit, Quota};
use domain::receiver_url::{Reach, ReceiverUrl};
use domain::time::Timestamp;
use domain::workspace::{EndpointUsage, Entitlements, KeyUsage, WorkspaceView};
use edge::Problem;

pub(super) const CLIENT_ID: &str = "client_019a9f0c6d5e7b3c8f1a2b3c4d5e6f70";
pub(super) const KEY_ID: &str = "key_6f1ed002ab5595859014ebf0951522d9";
pub(super) const DELIVERY_ID: &str = "dlv_019a9f0c6d5e8b3c8f1a2b3c4d5e6f73";
pub(super) const ENDPOINT_ID: &str = "we_019a9f0c6d5e7b3c8f1a2b3c4d5e6f71";
pub(super) const EVENT_ID: &str = "evt_019a9f0c6d5e8b3c8f1a2b3c4d5e6f72";
const COACH_ID: &str = "coach_7f3a";
const CHECK_IN_ID: &str = "checkin_20261119";
const HOST: &str = "https://coach.example";
const SECRET: &str = "whsec_rnsmaoD6yfzzVFIqtV15UkZTXUlbyqtRO86LN3i3HkQ=";

/// Returns a time (UTC) on the day of the examples.
pub(super) fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2026-11-20T{time}Z")).expect("the example is a valid time")
}

pub(super) fn date(text: &str) -> NaiveDate {
    text.parse().expect("the example is a valid date")
}

/// Parses an example value of a type with rules.
macro_rules! id {
    ($kind:ident, $text:expr) => {
        $kind::parse($text).expect("the example keeps the rules")
    };
}
pub(super) use id;

pub(super) fn check_in_id() -> CheckInId {
    id!(CheckInId, CHECK_IN_ID)
}

pub(super) fn ping() -> PingResult {
    PingResult {
        ok: true,
        coach: PingCoach {
            id: id!(CoachId, COACH_ID),
            email: "joan@coach.example".to_owned(),
            name: "Joan Clarke".to_owned(),
        },
        active_clients: 41,
        scope: Scope::Partner,
    }
}

pub(super) fn client() -> Client {
    Client {
        id: id!(ClientId, CLIENT_ID),
        coach_id: id!(CoachId, COACH_ID),
        profile: Profile {
            email: Some(id!(Email, "ada@example.com")),
            full_name: "Ada Lovelace".to_owned(),
            phone: Some(Phone::as_given("+1 415 555 0132")),
            goals: Some("Sleep through the night.".to_owned()),
            health_notes: None,
            height_in: Some(Measure(65.5)),
            weight_lbs: Some(Measure(140.0)),
            external_id: Some("patient-1815".to_owned()),
        },
        is_active: true,
        phase: Phase { current: Some("Foundation".to_owned()), started_on: None, programme_id: None },
        created_at: at("09:30:00.000"),
        origin: Origin::PartnerApi,
        latest_check_in_at: Some(at("16:05:12.480")),
    }
}

pub(super) fn client_list() -> ClientList {
    ClientList { count: 1, clients: vec![client().list_item()], next_cursor: None }
}

pub(super) fn created() -> CreateClientResult {
    CreateClientResult {
        welcome_email_sent: false,
        intake_url: Some(format!("{HOST}/intake/q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA")),
        temp_password: Some("mRtd-7yKe-Wq3v-Hn5b".to_owned()),
        ..created_and_mailed()
    }
}

pub(super) fn created_and_mailed() -> CreateClientResult {
    CreateClientResult {
        client_id: id!(ClientId, CLIENT_ID),
        email: id!(Email, "ada@example.com"),
        full_name: "Ada Lovelace".to_owned(),
        welcome_email_sent: true,
        intake_url: None,
        temp_password: None,
    }
}

pub(super) fn compliance() -> Compliance {
    Compliance {
        client_id: id!(ClientId, CLIENT_ID),
        window_days: 7,
        since: date("2026-11-14"),
        compliance_pct: Some(86),
        doses_logged: 12,
        doses_expected: 14,
        last_logged_on: Some(date("2026-11-20")),
    }
}

pub(super) fn check_ins() -> CheckInList {
    let check_in = CheckIn { id: check_in_id(), submitted_at: at("16:05:12.480"), reviewed: false, reviewed_at: None };
    CheckInList::new(id!(ClientId, CLIENT_ID), vec![check_in])
}

pub(super) fn daily_logs() -> DailyLogDates {
    let dates = ["2026-11-20", "2026-11-19", "2026-11-17"].map(date);
    DailyLogDates::new(id!(ClientId, CLIENT_ID), dates.to_vec())
}

pub(super) fn login_link() -> LoginLink {
    LoginLink {
        client_id: id!(ClientId, CLIENT_ID),
        login_url: format!("{HOST}/login/q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"),
        expires_note: EXPIRES_NOTE.to_owned(),
    }
}

/// The example key of RFC 8037, appendix A.
pub(super) fn jwks() -> JwkSet {
    let key = Jwk {
        kty: "OKP",
        crv: "Ed25519",
        x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo".to_owned(),
        kid: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k".to_owned(),
        usage: "sig",
        alg: "EdDSA",
    };
    JwkSet { keys: vec![key] }
}

pub(super) fn key() -> KeyView {
    KeyView {
        id: id!(KeyId, KEY_ID),
        name: "Booking desk".to_owned(),
        scope: Scope::Partner,
        permissions: Vec::new(),
        display: "svc_live_…x7Qd".to_owned(),
        created_at: at("08:00:00.000"),
        expires_at: None,
        last_used_at: Some(at("09:30:00.000")),
        revoked_at: None,
        status: KeyStatus::Active,
        replaced_by: None,
        works_until: None,
    }
}

pub(super) fn replaced_key() -> KeyView {
    let works_until = Some(at("08:00:00.000") + ROTATION_OVERLAP);
    let replaced_by = Some(id!(KeyId, "key_0d5b2a7c9e1f4b6a8c3d7e9f1a2b4c6d"));
    KeyView { status: KeyStatus::Replaced, replaced_by, works_until, expires_at: works_until, ..key() }
}

pub(super) fn revoked_key() -> KeyView {
    KeyView { status: KeyStatus::Revoked, revoked_at: Some(at("10:00:00.000")), ..key() }
}

pub(super) fn workspace() -> WorkspaceView {
    WorkspaceView {
        coach_id: id!(CoachId, COACH_ID),
        name: "Joan Clarke".to_owned(),
        entitlements: Entitlements { partner_api: true, pro_crm: true, gym: true },
        crm_configured: true,
        keys: KeyUsage { live: 3, max: MAX_LIVE_KEYS },
        endpoints: EndpointUsage { count: 1, max: MAX_ENDPOINTS },
    }
}

pub(super) fn audit_page() -> AuditPage {
    let disabled = AuditEntry {
        at: at("09:30:00.000"),
        actor: AuditActor::service(),
        action: AuditAction::EndpointDisabled,
        target: ENDPOINT_ID.to_owned(),
        detail: AuditDetail { status: Some(EndpointStatus::Gone), ..AuditDetail::of_endpoint(&endpoint().endpoint) },
    };
    let name = Some("Booking desk".to_owned());
    let created = AuditEntry {
        at: at("08:00:00.000"),
        actor: AuditActor::of_session(COACH_ID).expect("the example keeps the rules"),
        action: AuditAction::KeyCreated,
        target: KEY_ID.to_owned(),
        detail: AuditDetail { name, scope: Some(Scope::Partner), ..AuditDetail::default() },
    };
    AuditPage { data: vec![disabled, created], next_cursor: None }
}

pub(super) fn event_catalog() -> EventCatalog {
    let mut catalog = EventCatalog::all();
    catalog.data.truncate(1);
    catalog
}

pub(super) fn new_key() -> NewKey {
    let record = KeyView { last_used_at: None, ..key() };
    NewKey { record, key: Some("svc_live_T0pSecretT0pSecretT0pSecretT0pSe3Yx7Qd".to_owned()) }
}

pub(super) fn endpoint() -> EndpointView {
    let endpoint = Endpoint {
        id: id!(EndpointId, ENDPOINT_ID),
        url: ReceiverUrl::parse("https://hooks.example.com/coaching", Reach::Public)
            .expect("the example is a public URL"),
        events: vec![EventType::NewClient, EventType::CheckInSubmitted],
        payload_mode: PayloadMode::Identifiers,
        description: Some("Practice software".to_owned()),
        status: EndpointStatus::Enabled,
        disabled_reason: None,
        disabled_at: None,
        created_at: at("08:05:00.000"),
    };
    let counts = DeliveryCounts { delivered: 40, failed: 1, pending: 2 };
    EndpointView::new(EndpointWithHealth { endpoint, health: EndpointHealth::default() }, counts)
}

pub(super) fn new_endpoint() -> NewEndpoint {
    let endpoint = EndpointView { last_24h: DeliveryCounts::default(), ..endpoint() };
    NewEndpoint { endpoint, secret: Some(SECRET.to_owned()) }
}

pub(super) fn delivery_page() -> DeliveryPage {
    DeliveryPage { data: vec![delivery()], next_cursor: None }
}

pub(super) fn delivery_detail() -> DeliveryDetail {
    let delivery = delivery();
    let sent = SentRequest {
        host: "hooks.example.com".to_owned(),
        unix_s: at("09:30:06.300").unix_s(),
        signature: Some("v1,4DFnM4Wx0iVdbTJZ5h5PtGXM3bbmvAHLHW3mjsr5ONY=".to_owned()),
    };
    let body = format!(
        r#"{{"type":"new_client","timestamp":"{0}","data":{{"client":{{"id":"{CLIENT_ID}"}},"created_at":"{0}","source":"application"}}}}"#,
        at("09:30:00.000")
    );
    let request = DeliveryRequest::new(sent, &delivery.event_id, &delivery.event_type, Some(body));
    DeliveryDetail { delivery, request: Some(request), body_erased: false }
}

fn delivery() -> DeliveryView {
    let failed = Attempt {
        at: at("09:30:01.120"),
        result: AttemptResult::StatusCode(503),
        duration_ms: 84,
        response_excerpt: Some("back in a minute".to_owned()),
    };
    let delivered = Attempt {
        at: at("09:30:06.300"),
        result: AttemptResult::StatusCode(204),
        duration_ms: 61,
        response_excerpt: None,
    };
    DeliveryView {
        id: id!(DeliveryId, DELIVERY_ID),
        endpoint_id: id!(EndpointId, ENDPOINT_ID),
        event_id: id!(EventId, EVENT_ID),
        event_type: EventType::NewClient.as_str().to_owned(),
        client_id: Some(id!(ClientId, CLIENT_ID)),
        test: false,
        created_at: at("09:30:00.000"),
        status: DeliveryStatus::Delivered,
        attempts: vec![failed, delivered],
        next_attempt_at: None,
    }
}

/// Refusal of a request beyond a limit.
pub(super) fn rate_limited(limit: Limit) -> Problem {
    Problem::RateLimited(Quota::after(limit, limit.per_minute(), at("09:30:18.000")))
}
