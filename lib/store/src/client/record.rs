//! A client's item.

use chrono::NaiveDate;
use domain::client::{Client, ClientListItem, Measure, Origin, Phase, Profile};
use domain::email::Email;
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ProgrammeId};
use domain::phone::Phone;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::standing::{client_id_of, client_pk};
use crate::claim::ClaimKey;
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, from_item};
use crate::fact_order::{PhaseSetAt, SavedAt};

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pk: String,
    pub(super) owner: CoachId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    active_owner: Option<CoachId>,
    listed_at: String,
    client_id: ClientId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) email: Option<Email>,
    full_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phone: Option<Phone>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    goals: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    health_notes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    height_in: Option<Measure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight_lbs: Option<Measure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) external_id: Option<String>,
    pub(super) is_active: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current_phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase_started_on: Option<NaiveDate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    programme_id: Option<ProgrammeId>,
    pub(super) created_at: Timestamp,
    pub(super) origin: Origin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) latest_check_in_at: Option<Timestamp>,
    #[serde(flatten)]
    saved_at: SavedAt,
    /// When the API last set the active flag. Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) activation_set_at: Option<i64>,
    #[serde(flatten)]
    phase_set_at: Option<PhaseSetAt>,
    /// What the creation through the API left elsewhere: the contact that the client was, and the claim that holds the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) traces: Option<Traces>,
    /// Goes up with whatever ends the client's login links. Links of an earlier epoch are dead.
    pub(super) login_epoch: u64,
    pub(super) version: u64,
}
domain::discreet! { Record }

/// Where a creation through the API has left something of the client beside the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Traces {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lead: Option<ContactRef>,
    pub(super) claim: ClaimKey,
}

/// What the application's whole record does not hold, and what therefore outlives it.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub(super) activation_set_at: Option<i64>,
    pub(super) phase_set_at: Option<PhaseSetAt>,
    pub(super) traces: Option<Traces>,
}

/// What counts a record's changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Versions {
    pub(super) version: u64,
    pub(super) login_epoch: u64,
}

impl Versions {
    pub(super) const FIRST: Self = Self { version: 1, login_epoch: 0 };
}

impl Record {
    pub(super) fn new(client: &Client, saved_at: FactTime, kept: Kept, versions: Versions) -> Self {
        let profile = client.profile.clone();
        Self {
            pk: client_pk(&client.id),
            owner: client.coach_id.clone(),
            active_owner: client.is_active.then(|| client.coach_id.clone()),
            listed_at: place_of(client),
            client_id: client.id.clone(),
            email: profile.email,
            full_name: profile.full_name,
            phone: profile.phone,
            goals: profile.goals,
            health_notes: profile.health_notes,
            height_in: profile.height_in,
            weight_lbs: profile.weight_lbs,
            external_id: profile.external_id,
            is_active: client.is_active,
            current_phase: client.phase.current.clone(),
            phase_started_on: client.phase.started_on,
            programme_id: client.phase.programme_id.clone(),
            created_at: client.created_at,
            origin: client.origin,
            latest_check_in_at: client.latest_check_in_at,
            saved_at: saved_at.into(),
            activation_set_at: kept.activation_set_at,
            phase_set_at: kept.phase_set_at,
            traces: kept.traces,
            login_epoch: versions.login_epoch,
            version: versions.version,
        }
    }

    /// The time of the fact, or of the creation, that set the whole record.
    pub(super) fn saved_at(&self) -> FactTime {
        self.saved_at.into()
    }

    /// When the API last set the active flag.
    pub(super) fn activation_set_at(&self) -> Option<FactTime> {
        self.activation_set_at.map(FactTime::from_ms)
    }

    /// The time of the last fact about a step to another phase.
    pub(super) fn phase_set_at(&self) -> Option<FactTime> {
        self.phase_set_at.map(FactTime::from)
    }

    pub(super) fn kept(&self) -> Kept {
        Kept { activation_set_at: self.activation_set_at, phase_set_at: self.phase_set_at, traces: self.traces.clone() }
    }

    pub(super) fn phase(&self) -> Phase {
        Phase {
            current: self.current_phase.clone(),
            started_on: self.phase_started_on,
            programme_id: self.programme_id.clone(),
        }
    }

    pub(super) fn into_client(self) -> Client {
        let phase = self.phase();
        Client {
            id: self.client_id,
            coach_id: self.owner,
            profile: Profile {
                email: self.email,
                full_name: self.full_name,
                phone: self.phone,
                goals: self.goals,
                health_notes: self.health_notes,
                height_in: self.height_in,
                weight_lbs: self.weight_lbs,
                external_id: self.external_id,
            },
            is_active: self.is_active,
            phase,
            created_at: self.created_at,
            origin: self.origin,
            latest_check_in_at: self.latest_check_in_at,
        }
    }
}

/// A client's place in lists, from which the next page goes on. The older, the less.
pub fn place_of(client: &Client) -> String {
    format!("{}#{}", client.created_at, client.id)
}

/// A list item from what an index holds of a client.
pub(super) fn list_item(item: Item) -> Result<ClientListItem, StoreError> {
    #[derive(Deserialize)]
    struct Projected {
        full_name: String,
        email: Option<Email>,
        is_active: bool,
        current_phase: Option<String>,
        created_at: Timestamp,
    }
    let client_id = client_id_of(&item)?;
    let projected: Projected = from_item("client", item)?;
    Ok(ClientListItem {
        client_id,
        full_name: projected.full_name,
        email: projected.email,
        is_active: projected.is_active,
        current_phase: projected.current_phase,
        created_at: projected.created_at,
    })
}
