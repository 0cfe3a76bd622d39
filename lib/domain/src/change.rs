//! Changes: messages on the bus with which the application learns of the API's writes.
//!
//! Each change renders from an allow-list type, never from a stored record: a field that is not named there cannot
//! leave. The application signs clients in, so `client.created` carries a credential's hash and an intake. No change
//! carries a password, a key or a link.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::booking::{Booking, CalendarEntry};
use crate::client::{Client, ClientDetail};
use crate::contact::Contact;
use crate::endpoint::{Endpoint, EndpointStatus};
use crate::event::{EventType, PayloadMode};
use crate::id::{CalendarEntryId, ChangeId, CoachId, EndpointId, IntakeId};
use crate::intake::IntakeState;
use crate::opportunity::OpportunityView;
use crate::phone::Phone;
use crate::subject::Subject;
use crate::time::Timestamp;

/// The `source` of every change on the bus.
pub const SOURCE: &str = "partner-api";

/// A change on its way to the bus.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub id: ChangeId,
    pub coach_id: CoachId,
    pub occurred_at: Timestamp,
    #[serde(flatten)]
    pub data: ChangeData,
}
crate::discreet! { Change }

/// The members of a change's `Detail` except `id`, `occurred_at` and `coach_id`, by its `DetailType`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "detail_type", content = "detail")]
pub enum ChangeData {
    #[serde(rename = "client.created")]
    ClientCreated(Box<ClientCreated>),
    #[serde(rename = "client.activation_changed")]
    ClientActivationChanged { client: Box<ClientDetail> },
    #[serde(rename = "contact.created")]
    ContactCreated { contact: Box<Contact> },
    #[serde(rename = "contact.updated")]
    ContactUpdated { contact: Box<Contact> },
    #[serde(rename = "opportunity.created")]
    OpportunityCreated { opportunity: Box<OpportunityView> },
    #[serde(rename = "opportunity.updated")]
    OpportunityUpdated { opportunity: Box<OpportunityView> },
    #[serde(rename = "booking.created")]
    BookingCreated { booking: Box<Booking> },
    #[serde(rename = "booking.rescheduled", rename_all = "camelCase")]
    BookingRescheduled { booking: Box<Booking>, previous_starts_at: Timestamp },
    #[serde(rename = "booking.cancelled")]
    BookingCancelled { booking: Box<Booking> },
    #[serde(rename = "booking.conflict")]
    BookingConflict { booking: Box<Booking>, conflicts_with: ConflictingEvent },
    #[serde(rename = "endpoint.disabled")]
    EndpointDisabled { endpoint: Box<DisabledEndpoint> },
}

/// `client.created`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCreated {
    client: CreatedClient,
    credential: Credential,
    intake: NewIntake,
}

/// A client that the application has not seen.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct CreatedClient {
    #[serde(flatten)]
    detail: ClientDetail,
    phone: Option<Phone>,
}

/// The credential of a new client: the hash of the temporary password.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Credential {
    scheme: Scheme,
    /// `$argon2id$...`
    phc: String,
    must_change: bool,
}
crate::discreet! { Credential }

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scheme {
    Argon2id,
}

impl Credential {
    /// A temporary password by its hash, `$argon2id$...`.
    pub fn temporary(phc: String) -> Self {
        Self { scheme: Scheme::Argon2id, phc, must_change: true }
    }
}

/// The new client's intake.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct NewIntake {
    pub id: IntakeId,
    pub state: IntakeState,
    pub token_sha256: String,
}
crate::discreet! { NewIntake }

/// The event that conflicts with a booking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConflictingEvent {
    event_id: CalendarEntryId,
    starts_at: Timestamp,
    ends_at: Timestamp,
}

/// A disabled endpoint. Only the host of its URL is included: the rest may hold a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DisabledEndpoint {
    id: EndpointId,
    host: String,
    events: Vec<EventType>,
    payload_mode: PayloadMode,
    description: Option<String>,
    status: EndpointStatus,
    disabled_reason: Option<String>,
    disabled_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl Change {
    pub fn name(&self) -> &'static str {
        match self.data {
            ChangeData::ClientCreated(_) => "client.created",
            ChangeData::ClientActivationChanged { .. } => "client.activation_changed",
            ChangeData::ContactCreated { .. } => "contact.created",
            ChangeData::ContactUpdated { .. } => "contact.updated",
            ChangeData::OpportunityCreated { .. } => "opportunity.created",
            ChangeData::OpportunityUpdated { .. } => "opportunity.updated",
            ChangeData::BookingCreated { .. } => "booking.created",
            ChangeData::BookingRescheduled { .. } => "booking.rescheduled",
            ChangeData::BookingCancelled { .. } => "booking.cancelled",
            ChangeData::BookingConflict { .. } => "booking.conflict",
            ChangeData::EndpointDisabled { .. } => "endpoint.disabled",
        }
    }

    pub fn subject(&self) -> Subject {
        match &self.data {
            ChangeData::ClientCreated(created) => Subject::client(created.client.detail.id().clone()),
            ChangeData::ClientActivationChanged { client } => Subject::client(client.id().clone()),
            ChangeData::ContactCreated { contact } | ChangeData::ContactUpdated { contact } => {
                Subject { client_id: contact.client_id.clone(), ..Subject::contact(contact.id) }
            }
            ChangeData::OpportunityCreated { opportunity } | ChangeData::OpportunityUpdated { opportunity } => {
                Subject::contact(opportunity.contact_id)
            }
            ChangeData::BookingCreated { booking }
            | ChangeData::BookingRescheduled { booking, .. }
            | ChangeData::BookingCancelled { booking }
            | ChangeData::BookingConflict { booking, .. } => {
                Subject { contact_id: booking.lead_id, ..Subject::default() }
            }
            ChangeData::EndpointDisabled { .. } => Subject::default(),
        }
    }

    pub fn client_created(client: &Client, credential: Credential, intake: NewIntake) -> Self {
        let data = ClientCreated { client: CreatedClient::of(client), credential, intake };
        Self {
            id: Self::client_created_id(client),
            coach_id: client.coach_id.clone(),
            occurred_at: client.created_at,
            data: ChangeData::ClientCreated(Box::new(data)),
        }
    }

    fn client_created_id(client: &Client) -> ChangeId {
        ChangeId::derive(client.created_at.ms(), &["client.created", client.id.as_str()])
    }

    /// Fills `client.created` with the present state of the client.
    pub fn of_client(mut self, client: &Client) -> Self {
        if let ChangeData::ClientCreated(created) = &mut self.data {
            created.client = CreatedClient::of(client);
        }
        self
    }

    /// Sets the intake's state after the welcome mail.
    pub fn with_intake(mut self, state: IntakeState) -> Self {
        if let ChangeData::ClientCreated(created) = &mut self.data {
            created.intake.state = state;
        }
        self
    }

    /// Returns `client.created` again, if it was published before the welcome mail was sent.
    pub fn intake_sent(&self, at: Timestamp) -> Self {
        let occurred_at = at.after(self.occurred_at);
        Self { id: Self::intake_sent_id(&self.id), occurred_at, ..self.clone().with_intake(IntakeState::Sent) }
    }

    /// Returns the id of [`Change::intake_sent`], derived from the id of the first publication.
    fn intake_sent_id(created: &ChangeId) -> ChangeId {
        ChangeId::derive(0, &["client.created", created.as_str(), "sent"])
    }

    pub fn activation_changed(client: &Client, at: Timestamp) -> Self {
        let flag = if client.is_active { "active" } else { "inactive" };
        let data = ChangeData::ClientActivationChanged { client: Box::new(client.to_detail()) };
        Self::new(&client.coach_id, at, &[client.id.as_str(), flag], data)
    }

    pub fn contact_created(coach: &CoachId, contact: &Contact) -> Self {
        let data = ChangeData::ContactCreated { contact: Box::new(contact.clone()) };
        Self::new(coach, contact.created_at, &[&contact.id.to_string()], data)
    }

    /// Returns `contact.updated`. No two updates of a contact have the same time. `at` is the time of the write in the
    /// order of writes.
    pub fn contact_updated(coach: &CoachId, contact: &Contact, at: Timestamp) -> Self {
        let data = ChangeData::ContactUpdated { contact: Box::new(contact.clone()) };
        Self { occurred_at: at, ..Self::new(coach, contact.updated_at, &[&contact.id.to_string()], data) }
    }

    pub fn booking_created(coach: &CoachId, booking: &Booking) -> Self {
        let data = ChangeData::BookingCreated { booking: Box::new(booking.clone()) };
        Self::new(coach, booking.created_at, &[&booking.id.to_string()], data)
    }

    pub fn booking_rescheduled(
        coach: &CoachId,
        booking: &Booking,
        previous_starts_at: Timestamp,
        at: Timestamp,
    ) -> Self {
        let data = ChangeData::BookingRescheduled { booking: Box::new(booking.clone()), previous_starts_at };
        Self::new(coach, at, &[&booking.id.to_string()], data)
    }

    pub fn booking_cancelled(coach: &CoachId, booking: &Booking, at: Timestamp) -> Self {
        let data = ChangeData::BookingCancelled { booking: Box::new(booking.clone()) };
        Self::new(coach, at, &[&booking.id.to_string()], data)
    }

    /// Returns `booking.conflict`: a fact put the event over the booking, or the booking over the event.
    pub fn booking_conflict(coach: &CoachId, booking: &Booking, event: &CalendarEntry) -> Self {
        let (starts_at, ends_at) = (event.span.starts_at, event.span.ends_at);
        let conflicts_with = ConflictingEvent { event_id: event.id, starts_at, ends_at };
        // The conflict has one id, whichever of the two events finds it.
        let mut pair = [(booking.id, booking.updated_at), (event.id, event.updated_at)];
        pair.sort_unstable();
        let pair = pair.map(|(id, updated_at)| format!("{id}@{updated_at}"));
        let at = booking.updated_at.max(event.updated_at);
        let data = ChangeData::BookingConflict { booking: Box::new(booking.clone()), conflicts_with };
        Self::new(coach, at, &[&pair[0], &pair[1]], data)
    }

    pub fn opportunity_created(coach: &CoachId, opportunity: &OpportunityView) -> Self {
        let data = ChangeData::OpportunityCreated { opportunity: Box::new(opportunity.clone()) };
        Self::new(coach, opportunity.created_at, &[&opportunity.id.to_string()], data)
    }

    /// Returns `opportunity.updated`. No two updates of an opportunity have the same time. `at` is the time of the
    /// write in the order of writes.
    pub fn opportunity_updated(coach: &CoachId, opportunity: &OpportunityView, at: Timestamp) -> Self {
        let data = ChangeData::OpportunityUpdated { opportunity: Box::new(opportunity.clone()) };
        Self { occurred_at: at, ..Self::new(coach, opportunity.updated_at, &[&opportunity.id.to_string()], data) }
    }

    /// Returns `endpoint.disabled`: the endpoint is gone, or was disabled after days of failures.
    pub fn endpoint_disabled(coach: &CoachId, endpoint: &Endpoint, at: Timestamp) -> Self {
        let endpoint = DisabledEndpoint {
            id: endpoint.id.clone(),
            host: endpoint.url.host().to_owned(),
            events: endpoint.events.clone(),
            payload_mode: endpoint.payload_mode,
            description: endpoint.description.clone(),
            status: endpoint.status,
            disabled_reason: endpoint.disabled_reason.clone(),
            disabled_at: endpoint.disabled_at,
            created_at: endpoint.created_at,
        };
        let id = endpoint.id.clone();
        Self::new(coach, at, &[id.as_str()], ChangeData::EndpointDisabled { endpoint: Box::new(endpoint) })
    }

    /// Creates a change whose id derives from its name, its time and the ids in `of`.
    fn new(coach: &CoachId, at: Timestamp, of: &[&str], data: ChangeData) -> Self {
        let mut change = Self { id: ChangeId::derive(0, &[]), coach_id: coach.clone(), occurred_at: at, data };
        change.id = ChangeId::derive(at.ms(), &[&[change.name()], of].concat());
        change
    }

    pub fn render(&self) -> Value {
        let mut detail = json!(self.data)["detail"].take();
        detail["id"] = json!(self.id);
        detail["occurred_at"] = json!(self.occurred_at);
        detail["coach_id"] = json!(self.coach_id);
        detail
    }
}

impl CreatedClient {
    fn of(client: &Client) -> Self {
        Self { detail: client.to_detail(), phone: client.profile.phone.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::{ContactDraft, KnownContact};
    use crate::event::tests::client;
    use crate::id::ContactId;

    fn created() -> Change {
        let id = IntakeId::from_uuid(uuid::Uuid::from_u128(1));
        let intake = NewIntake { id, state: IntakeState::Issued, token_sha256: "00".to_owned() };
        Change::client_created(&client(), Credential::temporary("$argon2id$x".to_owned()), intake)
    }

    #[test]
    fn a_change_has_the_subject_that_it_names() {
        let (client, coach) = (client(), CoachId::parse("ada").unwrap());
        let active = Change::activation_changed(&client, client.created_at);
        for change in [created(), active] {
            assert_eq!(change.subject(), Subject::client(client.id.clone()));
        }
        let (at, email) = (client.created_at, client.profile.email.clone().unwrap());
        let id = ContactId::parse("018f0000-0000-7000-8000-000000000001").unwrap();
        let made = KnownContact::create(id, &ContactDraft { name: "Lead".to_owned(), email }, at).contact;
        let contact = |client_id| Contact { client_id, ..made.clone() };
        assert_eq!(Change::contact_created(&coach, &contact(None)).subject(), Subject::contact(id));
        let both = Subject { client_id: Some(client.id.clone()), ..Subject::contact(id) };
        assert_eq!(Change::contact_updated(&coach, &contact(Some(client.id)), at).subject(), both);
    }

    #[test]
    fn a_welcome_mail_is_published_under_an_id_of_its_own() {
        let (created, at) = (created(), Timestamp::from_ms(1));
        let again = created.intake_sent(at);
        assert_eq!(again.id, Change::intake_sent_id(&created.id));
        assert!(again.occurred_at > created.occurred_at);
        assert_eq!(
            [created.render(), again.render()].map(|detail| detail["intake"]["state"].clone()),
            ["issued", "sent"]
        );
    }
}
