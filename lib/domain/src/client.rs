//! A client of a coach, and the shapes in which the API shows a client.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::email::Email;
use crate::external_id::ExternalId;
use crate::fact_values::{self, optional_text, text};
use crate::id::{ClientId, CoachId, ProgrammeId};
use crate::phone::Phone;
use crate::register::registers;
use crate::time::Timestamp;

pub const MAX_NAME_CHARS: usize = 200;
pub const MAX_CLIENT_EMAIL_CHARS: usize = 160;
pub const MAX_PHONE_CHARS: usize = 32;
pub const MAX_GOALS_CHARS: usize = 2000;
pub const MAX_HEALTH_NOTES_CHARS: usize = 2000;
pub const MAX_HEIGHT_IN: f64 = 120.0;
pub const MAX_WEIGHT_LBS: f64 = 1500.0;

/// The origin of a client's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    PartnerApi,
    Application,
    Import,
}

/// A number that renders without a needless `.0`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Measure(pub f64);

impl Serialize for Measure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() < EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// A client's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Client {
    #[serde(rename = "client_id")]
    pub id: ClientId,
    #[serde(rename = "owner")]
    pub coach_id: CoachId,
    #[serde(flatten)]
    pub profile: Profile,
    pub is_active: bool,
    #[serde(flatten)]
    pub phase: Phase,
    pub created_at: Timestamp,
    /// When the service stored the last change of what the API shows of the client, apart from check-ins.
    pub updated_at: Timestamp,
    pub origin: Origin,
    pub latest_check_in_at: Option<Timestamp>,
}

registers! {
    /// The last write of a client's fields. A fact has all of them; the API sets the flag, and a phase advance the
    /// phase.
    pub ClientRegisters { profile, is_active, phase }
}

/// A client's personal record.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub email: Option<Email>,
    pub full_name: String,
    pub phone: Option<Phone>,
    pub goals: Option<String>,
    pub health_notes: Option<String>,
    pub height_in: Option<Measure>,
    pub weight_lbs: Option<Measure>,
    /// The coach's own id for the client. The API alone sets it.
    pub external_id: Option<ExternalId>,
}
crate::discreet! { Profile }

/// A client's phase in a programme.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Phase {
    #[serde(rename = "current_phase")]
    pub current: Option<String>,
    #[serde(rename = "phase_started_on")]
    pub started_on: Option<NaiveDate>,
    pub programme_id: Option<ProgrammeId>,
}

/// A client's step to a new phase.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PhaseAdvance {
    #[serde(deserialize_with = "optional_text::<{ fact_values::MAX_NAME_CHARS }, _>")]
    pub from_phase: Option<String>,
    #[serde(deserialize_with = "text::<{ fact_values::MAX_NAME_CHARS }, _>")]
    pub to_phase: String,
    pub advanced_at: Timestamp,
}

/// A client in a list.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientListItem {
    /// Names the client in every other request. Store it.
    pub client_id: ClientId,
    /// The client's name.
    pub full_name: String,
    /// The address with which the client signs in. Null if the application has none.
    #[schema(required)]
    pub email: Option<Email>,
    /// True if the client is on the active roster.
    pub is_active: bool,
    /// The phase of the programme; null when there is none.
    #[schema(required)]
    pub current_phase: Option<String>,
    /// Your own id for the client, unique among your clients; null when there is none.
    #[schema(required)]
    pub external_id: Option<ExternalId>,
    /// When the client was created.
    pub created_at: Timestamp,
    /// When the service stored the last change of this record. A check-in does not change the record.
    pub updated_at: Timestamp,
}
crate::discreet! { ClientListItem }

/// A page of a coach's clients.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct ClientList {
    /// Number of clients in this answer.
    pub count: usize,
    /// Newest first. With `updated_since` in the order of their updates, oldest first.
    pub clients: Vec<ClientListItem>,
    /// The `cursor` of the next page. Null on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// A client after a change.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientProfile {
    #[serde(flatten)]
    pub item: ClientListItem,
    /// The client's goals, as free text; null when there are none.
    #[schema(required)]
    pub goals: Option<String>,
    /// Notes on the client's health, as free text; null when there are none.
    #[schema(required)]
    pub health_notes: Option<String>,
    /// Inches; null when unknown.
    #[schema(required)]
    pub height_in: Option<Measure>,
    /// Pounds; null when unknown.
    #[schema(required)]
    pub weight_lbs: Option<Measure>,
}
crate::discreet! { ClientProfile }

/// A client with its details.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientDetail {
    #[serde(flatten)]
    pub profile: ClientProfile,
    /// When the client last submitted a check-in. Its answers are not part of the API.
    #[schema(required)]
    pub latest_check_in_at: Option<Timestamp>,
}

/// The created client, and how its welcome was delivered.
#[derive(Serialize, utoipa::ToSchema)]
pub struct CreateClientResult {
    /// Names the client in every other request. Store it.
    pub client_id: ClientId,
    /// The address with which the client signs in.
    pub email: Email,
    /// The client's name.
    pub full_name: String,
    /// True if the service mailed the temporary password and the intake link.
    pub welcome_email_sent: bool,
    /// The link to the intake form, for you to deliver. Null if the service mailed it, or if the client was handed over
    /// or erased before the answer.
    #[schema(required)]
    pub intake_url: Option<String>,
    /// The client's first password. Present if `intake_url` is not null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub temp_password: Option<String>,
}

impl ClientDetail {
    pub fn id(&self) -> &ClientId {
        &self.profile.item.client_id
    }
}

impl Client {
    /// Sets the time of the update if the API shows the client otherwise than `before`, or to another coach. The time
    /// is later than that of every earlier update.
    pub fn mark_update(&mut self, before: &Self, now: Timestamp) {
        self.updated_at = before.updated_at;
        if self.coach_id != before.coach_id || self.to_profile() != before.to_profile() {
            self.updated_at = now.after(before.updated_at);
        }
    }

    pub fn list_item(&self) -> ClientListItem {
        ClientListItem {
            client_id: self.id.clone(),
            full_name: self.profile.full_name.clone(),
            email: self.profile.email.clone(),
            is_active: self.is_active,
            current_phase: self.phase.current.clone(),
            external_id: self.profile.external_id.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    pub fn to_profile(&self) -> ClientProfile {
        ClientProfile {
            item: self.list_item(),
            goals: self.profile.goals.clone(),
            health_notes: self.profile.health_notes.clone(),
            height_in: self.profile.height_in,
            weight_lbs: self.profile.weight_lbs,
        }
    }

    pub fn to_detail(&self) -> ClientDetail {
        ClientDetail { profile: self.to_profile(), latest_check_in_at: self.latest_check_in_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::tests::client;

    #[test]
    fn an_update_is_a_change_of_what_the_api_shows_apart_from_check_ins() {
        let before = client();
        let now = Timestamp::from_ms(before.updated_at.ms() + 10);
        type Change = fn(&mut Client);
        let changes: [(Change, bool); 9] = [
            (|_| {}, false),
            (|client| client.latest_check_in_at = Some(client.created_at), false),
            (|client| client.profile.phone = Some(Phone::as_given("1")), false),
            (|client| client.is_active = false, true),
            (|client| client.profile.goals = None, true),
            (|client| client.profile.external_id = Some(ExternalId::unchecked("x")), true),
            (|client| client.phase.current = Some("Build".to_owned()), true),
            (|client| client.created_at = Timestamp::from_ms(0), true),
            (|client| client.coach_id = CoachId::parse("coach_2").unwrap(), true),
        ];
        for (number, (change, is_update)) in changes.into_iter().enumerate() {
            let updated_at = |now: Timestamp| {
                let mut after = before.clone();
                change(&mut after);
                after.mark_update(&before, now);
                after.updated_at
            };
            assert_eq!(updated_at(now), if is_update { now } else { before.updated_at }, "{number}");
            // A clock that is behind never sets the time back.
            assert_eq!(updated_at(Timestamp::from_ms(0)) > before.updated_at, is_update, "{number}");
        }
    }
}
