//! Facts that the service puts on the bus: what the API changed, for the application to learn.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::Client;
use crate::contact::Contact;
use crate::endpoint::Endpoint;
use crate::id::{CoachId, FactId, IntakeId};
use crate::intake::IntakeState;
use crate::time::Timestamp;

/// The `source` of every outgoing fact.
pub const SOURCE: &str = "partner-api";

/// A fact on its way to the bus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutgoingFact {
    pub id: FactId,
    pub detail_type: String,
    pub coach_id: CoachId,
    pub occurred_at: Timestamp,
    /// Members of `Detail` beside `id`, `occurred_at` and `coach_id`.
    pub detail: Value,
}

/// How the application signs a new client in: the hash of the temporary password.
#[derive(Debug, Clone)]
pub struct Credential {
    /// `$argon2id$...`
    pub phc: String,
}

/// The new client's intake, as the application needs it.
#[derive(Debug, Clone)]
pub struct IntakeFact {
    pub id: IntakeId,
    pub state: IntakeState,
    pub token_sha256: String,
}

impl OutgoingFact {
    /// `client.created`.
    pub fn client_created(client: &Client, credential: &Credential, intake: &IntakeFact) -> Self {
        let mut record = client_record(client);
        record["phone"] = json!(client.profile.phone);
        record["external_id"] = json!(client.profile.external_id);
        let detail = json!({
            "client": record,
            "credential": { "scheme": "argon2id", "phc": credential.phc, "must_change": true },
            "intake": { "id": intake.id, "state": intake.state, "token_sha256": intake.token_sha256 },
        });
        let id = Self::client_created_id(client);
        Self::with_id(id, "client.created", &client.coach_id, client.created_at, detail)
    }

    /// The id of [`OutgoingFact::client_created`].
    pub fn client_created_id(client: &Client) -> FactId {
        FactId::derive(client.created_at.ms(), &["client.created", client.id.as_str()])
    }

    /// `client.activation_changed`.
    pub fn activation_changed(client: &Client, at: Timestamp) -> Self {
        let detail = json!({ "client": client_record(client) });
        let flag = if client.is_active { "active" } else { "inactive" };
        let cause = ["client.activation_changed", client.id.as_str(), flag];
        Self::new("client.activation_changed", &cause, &client.coach_id, at, detail)
    }

    /// `contact.updated`.
    pub fn contact_updated(coach: &CoachId, contact: &Contact) -> Self {
        let detail = json!({ "contact": contact });
        let cause = ["contact.updated", &contact.id.to_string()];
        Self::new("contact.updated", &cause, coach, contact.updated_at, detail)
    }

    /// `endpoint.disabled`: switched off after failing for days, or gone. Of the address the host alone: the rest may hold a secret.
    pub fn endpoint_disabled(coach: &CoachId, endpoint: &Endpoint, at: Timestamp) -> Self {
        let mut record = json!(endpoint.view());
        if let Some(record) = record.as_object_mut() {
            record.remove("url");
            record.insert("host".to_owned(), json!(endpoint.url.host()));
        }
        let cause = ["endpoint.disabled", endpoint.id.as_str()];
        Self::new("endpoint.disabled", &cause, coach, at, json!({ "endpoint": record }))
    }

    fn new(detail_type: &str, cause: &[&str], coach: &CoachId, at: Timestamp, detail: Value) -> Self {
        Self::with_id(FactId::derive(at.ms(), cause), detail_type, coach, at, detail)
    }

    fn with_id(id: FactId, detail_type: &str, coach: &CoachId, at: Timestamp, detail: Value) -> Self {
        Self { id, detail_type: detail_type.to_owned(), coach_id: coach.clone(), occurred_at: at, detail }
    }

    /// The whole `Detail`.
    pub fn render(&self) -> Value {
        let mut detail = self.detail.clone();
        detail["id"] = json!(self.id);
        detail["occurred_at"] = json!(self.occurred_at);
        detail["coach_id"] = json!(self.coach_id);
        detail
    }

    /// Sets what became of a new client's welcome mail.
    pub fn set_intake_state(&mut self, state: IntakeState) {
        if let Some(intake) = self.detail.get_mut("intake") {
            intake["state"] = json!(state);
        }
    }
}

fn client_record(client: &Client) -> Value {
    json!(client.to_detail())
}
