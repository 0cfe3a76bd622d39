//! Coaches, and what they set up for their integrations.

use std::future::IntoFuture;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::aws::{Fact, fact};
use super::caller::{Caller, Reply};
use super::{World, list};

/// All that a CRM key may do.
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
    /// A coach with a workspace. Awaited, the workspace is handed over; before, it can be described. To await it again for the same id
    /// changes the workspace.
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
        self.facts([fact("team.saved", json!({ "team_id": id, "client_cap": client_cap.into() }))]).await;
    }

    /// The settings of a signed-in coach, whether or not there is a workspace.
    pub(crate) async fn settings_of(&self, coach_id: &str) -> Caller {
        let session = self.anonymous().post("/_local/session", json!({ "coach_id": coach_id })).await.expect(200);
        self.anonymous().bearing(session.str("token"))
    }
}

/// A workspace that is about to be handed over.
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

    /// The fact itself, for those who put it themselves.
    pub(crate) fn into_fact(self) -> Fact {
        self.fact
    }
}

impl<'w> IntoFuture for CoachBuilder<'w> {
    type Output = Coach<'w>;
    type IntoFuture = BoxFuture<'w, Coach<'w>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.world.facts([self.fact]).await;
            Coach { world: self.world, id: self.id }
        })
    }
}

/// A coach whose workspace the service knows.
#[derive(Clone)]
pub(crate) struct Coach<'w> {
    world: &'w World,
    pub(crate) id: String,
}

impl Coach<'_> {
    /// The coach, signed in to the settings.
    pub(crate) async fn settings(&self) -> Caller {
        self.world.settings_of(&self.id).await
    }

    /// A new key: the answer to its creation.
    pub(crate) async fn new_key(&self, body: Value) -> Reply {
        self.settings().await.post("/settings/keys", body).await.expect(201)
    }

    /// The bearer of a new partner key.
    pub(crate) async fn partner_key(&self) -> Caller {
        let made = self.new_key(json!({ "name": "Automation", "scope": "partner" })).await;
        self.world.anonymous().bearing(made.str("key"))
    }

    /// The bearer of a new CRM key with all permissions.
    pub(crate) async fn crm_key(&self) -> Caller {
        self.crm_key_with(&CRM_PERMISSIONS).await
    }

    /// The bearer of a new CRM key with these permissions.
    pub(crate) async fn crm_key_with(&self, permissions: &[&str]) -> Caller {
        let made = self.new_key(json!({ "name": "CRM", "scope": "crm", "permissions": permissions })).await;
        self.world.anonymous().bearing(made.str("key"))
    }

    /// A registered endpoint for `new_client`.
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
