//! Facts that the service puts on the bus: what the API changed, for the application to learn.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::booking::{Booking, CalendarEvent};
use crate::client::Client;
use crate::contact::Contact;
use crate::endpoint::Endpoint;
use crate::id::{ClientId, CoachId, ContactId, FactId, IntakeId};
use crate::intake::IntakeState;
use crate::opportunity::OpportunityView;
use crate::time::Timestamp;

/// The `source` of every outgoing fact.
pub const SOURCE: &str = "partner-api";

/// A fact on its way to the bus.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct OutgoingFact {
    pub id: FactId,
    pub detail_type: String,
    pub coach_id: CoachId,
    pub occurred_at: Timestamp,
    /// Members of `Detail` beside `id`, `occurred_at` and `coach_id`.
    pub detail: Value,
}
crate::discreet! { OutgoingFact }

/// How the application signs a new client in: the hash of the temporary password.
#[derive(Clone)]
pub struct Credential {
    /// `$argon2id$...`
    pub phc: String,
}
crate::discreet! { Credential }

/// The new client's intake, as the application needs it.
#[derive(Clone)]
pub struct IntakeFact {
    pub id: IntakeId,
    pub state: IntakeState,
    pub token_sha256: String,
}
crate::discreet! { IntakeFact }

impl OutgoingFact {
    /// The client whom it tells of, if it does: by itself, or as the contact that the client was.
    pub fn client_id(&self) -> Option<ClientId> {
        let id = self.detail.pointer("/client/client_id").or_else(|| self.detail.pointer("/contact/clientId"))?;
        ClientId::parse(id.as_str()?).ok()
    }

    /// The contact whom it tells of, if it does: by itself, or by what is about it.
    pub fn contact_id(&self) -> Option<ContactId> {
        let places = ["/contact/id", "/opportunity/contactId", "/booking/leadId"];
        let id = places.iter().find_map(|place| self.detail.pointer(place))?;
        ContactId::parse(id.as_str()?).ok()
    }

    /// `client.created`.
    pub fn client_created(client: &Client, credential: &Credential, intake: &IntakeFact) -> Self {
        let detail = json!({
            "client": new_client_record(client),
            "credential": { "scheme": "argon2id", "phc": credential.phc, "must_change": true },
            "intake": { "id": intake.id, "state": intake.state, "token_sha256": intake.token_sha256 },
        });
        let id = Self::client_created_id(client);
        Self::with_id(id, "client.created", &client.coach_id, client.created_at, detail)
    }

    /// `client.created` of the client as it is by now.
    pub fn of_client(&self, client: &Client) -> Self {
        let mut fact = self.clone();
        fact.detail["client"] = new_client_record(client);
        fact
    }

    /// The id of [`OutgoingFact::client_created`].
    pub fn client_created_id(client: &Client) -> FactId {
        FactId::derive(client.created_at.ms(), &["client.created", client.id.as_str()])
    }

    /// `client.created` once more, where it was told before the welcome mail went out.
    pub fn intake_sent(&self, at: Timestamp) -> Self {
        let mut again = self.clone();
        again.set_intake_state(IntakeState::Sent);
        Self { id: Self::intake_sent_id(&self.id), occurred_at: at.after(self.occurred_at), ..again }
    }

    /// The id of [`OutgoingFact::intake_sent`], by that of what was told.
    pub fn intake_sent_id(created: &FactId) -> FactId {
        FactId::derive(0, &["client.created", created.as_str(), "sent"])
    }

    /// `client.activation_changed`.
    pub fn activation_changed(client: &Client, at: Timestamp) -> Self {
        let detail = json!({ "client": client_record(client) });
        let flag = if client.is_active { "active" } else { "inactive" };
        let cause = ["client.activation_changed", client.id.as_str(), flag];
        Self::new("client.activation_changed", &cause, &client.coach_id, at, detail)
    }

    /// `contact.created`.
    pub fn contact_created(coach: &CoachId, contact: &Contact) -> Self {
        let detail = json!({ "contact": contact });
        let cause = ["contact.created", &contact.id.to_string()];
        Self::new("contact.created", &cause, coach, contact.created_at, detail)
    }

    /// `contact.updated`. No two changes of a contact have the same time.
    pub fn contact_updated(coach: &CoachId, contact: &Contact) -> Self {
        let detail = json!({ "contact": contact });
        let cause = ["contact.updated", &contact.id.to_string()];
        Self::new("contact.updated", &cause, coach, contact.updated_at, detail)
    }

    /// The ids of what is told last of a contact: that it was made, and how it is now.
    pub fn contact_ids(contact: &Contact) -> [FactId; 2] {
        let told = |name: &str, at: Timestamp| FactId::derive(at.ms(), &[name, &contact.id.to_string()]);
        [told("contact.created", contact.created_at), told("contact.updated", contact.updated_at)]
    }

    /// `booking.created`.
    pub fn booking_created(coach: &CoachId, booking: &Booking) -> Self {
        let cause = ["booking.created", &booking.id.to_string()];
        Self::new("booking.created", &cause, coach, booking.created_at, json!({ "booking": booking }))
    }

    /// `booking.rescheduled`, at that time.
    pub fn booking_rescheduled(coach: &CoachId, booking: &Booking, previous: Timestamp, at: Timestamp) -> Self {
        let detail = json!({ "booking": booking, "previousStartsAt": previous });
        let cause = ["booking.rescheduled", &booking.id.to_string()];
        Self::new("booking.rescheduled", &cause, coach, at, detail)
    }

    /// `booking.cancelled`, at that time.
    pub fn booking_cancelled(coach: &CoachId, booking: &Booking, at: Timestamp) -> Self {
        let cause = ["booking.cancelled", &booking.id.to_string()];
        Self::new("booking.cancelled", &cause, coach, at, json!({ "booking": booking }))
    }

    /// `booking.conflict`: what the application has told put this event over that booking, or the booking over the event.
    pub fn booking_conflict(coach: &CoachId, booking: &Booking, event: &CalendarEvent) -> Self {
        let span = event.span;
        let other = json!({ "event_id": event.id, "starts_at": span.starts_at, "ends_at": span.ends_at });
        let detail = json!({ "booking": booking, "conflicts_with": other });
        // Whichever of the two it is found by, it is the same conflict.
        let mut pair = [(booking.id, booking.updated_at), (event.id, event.updated_at)];
        pair.sort_unstable();
        let pair = pair.map(|(id, updated_at)| format!("{id}@{updated_at}"));
        let at = booking.updated_at.max(event.updated_at);
        Self::new("booking.conflict", &["booking.conflict", &pair[0], &pair[1]], coach, at, detail)
    }

    /// `opportunity.created`.
    pub fn opportunity_created(coach: &CoachId, opportunity: &OpportunityView) -> Self {
        let cause = ["opportunity.created", &opportunity.id.to_string()];
        let detail = json!({ "opportunity": opportunity });
        Self::new("opportunity.created", &cause, coach, opportunity.created_at, detail)
    }

    /// `opportunity.updated`. No two changes of an opportunity have one time.
    pub fn opportunity_updated(coach: &CoachId, opportunity: &OpportunityView) -> Self {
        let cause = ["opportunity.updated", &opportunity.id.to_string()];
        let detail = json!({ "opportunity": opportunity });
        Self::new("opportunity.updated", &cause, coach, opportunity.updated_at, detail)
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

/// With what the application gets of a client that it has not seen.
fn new_client_record(client: &Client) -> Value {
    let mut record = client_record(client);
    record["phone"] = json!(client.profile.phone);
    record["external_id"] = json!(client.profile.external_id);
    record
}

fn client_record(client: &Client) -> Value {
    json!(client.to_detail())
}
