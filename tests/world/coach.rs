//! Coaches and their integration settings: keys and endpoints.

use std::future::IntoFuture;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::aws::{Fact, fact};
use super::caller::{Caller, Reply};
use super::{World, list};

/// Events about clients that an endpoint may subscribe to.
pub(crate) const CLIENT_EVENTS: [&str; 6] = [
    "new_client",
    "check_in_submitted",
    "low_check_in_score",
    "system_grade_drop",
    "phase_advanced",
    "message_received",
];
/// Events of the CRM that an endpoint may subscribe to.
pub(crate) const CRM_EVENTS: [&str; 9] = [
    "contact_created",
    "contact_updated",
    "contact_merged",
    "opportunity_created",
    "opportunity_updated",
    "opportunity_stage_changed",
    "booking_created",
    "booking_rescheduled",
    "booking_cancelled",
];

/// All events that an endpoint may subscribe to, in the order of the catalog.
pub(crate) fn emitted_events() -> Vec<&'static str> {
    [CLIENT_EVENTS.as_slice(), &CRM_EVENTS].concat()
}

/// File in which a stack keeps the key of its tokens.
const SIGNING_KEY_FILE: &str = "signing-key";

/// All permissions of a partner key.
pub(crate) const PARTNER_PERMISSIONS: [&str; 4] =
    ["clients.read", "clients.write", "records.read", "login_links.create"];
/// All permissions of a CRM key.
pub(crate) const CRM_PERMISSIONS: [&str; 7] = [
    "contacts.read",
    "contacts.write",
    "opportunities.read",
    "opportunities.write",
    "bookings.read",
    "bookings.write",
    "workflows.read",
];

impl World {
    /// A coach with a workspace. Awaiting the builder publishes the workspace; a second time with the same id changes
    /// it.
    pub(crate) fn coach(&self, id: &str) -> CoachBuilder<'_> {
        let detail = json!({
            "coach_id": id, "email": format!("{id}@coaches.example"), "name": format!("Coach {id}"), "team_id": null,
            "canonical_host": format!("https://{id}.example"), "time_zone": "America/New_York", "country": "US",
            "plan": { "client_cap": null }, "entitlements": { "partner_api": true, "pro_crm": true, "gym": true },
            "crm": { "pipeline_id": "pipeline-1", "initial_stage": "new" },
        });
        CoachBuilder { world: self, id: id.to_owned(), fact: fact("workspace.saved", detail) }
    }

    /// A team.
    pub(crate) async fn team(&self, id: &str, client_cap: impl Into<Value>) {
        self.apply([fact("team.saved", json!({ "team_id": id, "client_cap": client_cap.into() }))]).await;
    }

    /// The settings API for a signed-in coach, even one without a workspace.
    pub(crate) async fn settings_of(&self, coach_id: &str) -> Caller {
        let session = self.anonymous().post("/_local/session", json!({ "coach_id": coach_id })).await.expect(200);
        self.anonymous().with_bearer(session.str("token"))
    }

    /// The settings API for a signed-in coach whose token has more claims. The test signs the token with the stack's
    /// key.
    pub(crate) async fn settings_with_claims(&self, coach_id: &str, claims: Value) -> Caller {
        let session = self.anonymous().post("/_local/session", json!({ "coach_id": coach_id })).await.expect(200);
        let payload = session.str("token").split('.').nth(1).unwrap();
        let mut all: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        let key = std::fs::read_to_string(self.stack.lock().unwrap().data_dir().join(SIGNING_KEY_FILE)).unwrap();
        let key = EncodingKey::from_secret(&URL_SAFE_NO_PAD.decode(key.trim()).unwrap());
        self.anonymous().with_bearer(&encode(&Header::new(Algorithm::HS256), &all, &key).unwrap())
    }
}

/// A workspace that is published when awaited.
pub(crate) struct CoachBuilder<'w> {
    world: &'w World,
    id: String,
    fact: Fact,
}

impl CoachBuilder<'_> {
    pub(crate) fn client_cap(mut self, cap: u32) -> Self {
        self.fact.detail["plan"]["client_cap"] = cap.into();
        self
    }

    pub(crate) fn team(self, id: &str) -> Self {
        self.with("team_id", id)
    }

    pub(crate) fn not_entitled(mut self) -> Self {
        self.fact.detail["entitlements"]["partner_api"] = false.into();
        self
    }

    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.fact = self.fact.with(field, value);
        self
    }

    /// The fact itself, for tests that publish it themselves.
    pub(crate) fn into_fact(self) -> Fact {
        self.fact
    }
}

impl<'w> IntoFuture for CoachBuilder<'w> {
    type Output = Coach<'w>;
    type IntoFuture = BoxFuture<'w, Coach<'w>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.world.apply([self.fact]).await;
            Coach { world: self.world, id: self.id }
        })
    }
}

/// A coach whose workspace the service has stored.
#[derive(Clone)]
pub(crate) struct Coach<'w> {
    pub(crate) world: &'w World,
    pub(crate) id: String,
}

impl Coach<'_> {
    /// The settings API for this coach.
    pub(crate) async fn settings(&self) -> Caller {
        self.world.settings_of(&self.id).await
    }

    /// Creates a key and returns the answer.
    pub(crate) async fn new_key(&self, body: Value) -> Reply {
        self.settings().await.post("/settings/keys", body).await.expect(201)
    }

    /// A caller with a new partner key.
    pub(crate) async fn partner_key(&self) -> Caller {
        let made = self.new_key(json!({ "name": "Automation", "scope": "partner" })).await;
        self.world.anonymous().with_bearer(made.str("key"))
    }

    /// A caller with a new partner key that has these permissions.
    pub(crate) async fn partner_key_with(&self, permissions: &[&str]) -> Caller {
        let made = self.new_key(json!({ "name": "Automation", "scope": "partner", "permissions": permissions })).await;
        self.world.anonymous().with_bearer(made.str("key"))
    }

    /// A caller with a new CRM key that has all permissions.
    pub(crate) async fn crm_key(&self) -> Caller {
        self.crm_key_with(&CRM_PERMISSIONS).await
    }

    /// A caller with a new CRM key that has these permissions.
    pub(crate) async fn crm_key_with(&self, permissions: &[&str]) -> Caller {
        let made = self.new_key(json!({ "name": "CRM", "scope": "crm", "permissions": permissions })).await;
        self.world.anonymous().with_bearer(made.str("key"))
    }

    /// Registers an endpoint for `new_client`.
    pub(crate) async fn endpoint(&self, url: &str, payload_mode: &str) -> Endpoint {
        let body = json!({ "url": url, "events": ["new_client"], "payload_mode": payload_mode });
        let made = self.settings().await.post("/settings/webhooks", body).await.expect(201);
        Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() }
    }

    /// The delivery log of an endpoint, newest first.
    pub(crate) async fn deliveries(&self, endpoint: &Endpoint) -> Vec<Value> {
        let path = format!("/settings/webhooks/{}/deliveries", endpoint.id);
        list(self.settings().await.get(&path).await.expect(200).body["data"].clone())
    }
}

/// A webhook endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) id: String,
    pub(crate) secret: String,
}
