//! A client's item.

use chrono::NaiveDate;
use domain::client::{Client, ClientListItem, Origin, Phase, Profile};
use domain::email::Email;
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ProgrammeId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::standing::{client_id_of, client_pk};
use crate::claim::ClaimKey;
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, from_item, s};
use crate::fact_order::{PhaseSetAt, SavedAt};

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pk: String,
    #[serde(flatten, with = "StoredFields")]
    pub(super) client: Client,
    active_owner: Option<CoachId>,
    listed_at: String,
    #[serde(flatten)]
    saved_at: SavedAt,
    /// When the API last set the active flag. Milliseconds.
    activation_set_at: Option<i64>,
    #[serde(flatten)]
    phase_set_at: Option<PhaseSetAt>,
    /// What the creation through the API left elsewhere: the contact that the client was, and the claim that holds the answer.
    pub(super) traces: Option<Traces>,
    /// Goes up with whatever ends the client's login links. Links of an earlier epoch are dead.
    pub(super) login_epoch: u64,
    pub(super) version: u64,
}
domain::discreet! { Record }

/// The attributes of a client.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Client")]
struct StoredFields {
    #[serde(rename = "client_id")]
    id: ClientId,
    #[serde(rename = "owner")]
    coach_id: CoachId,
    #[serde(flatten)]
    profile: Profile,
    is_active: bool,
    #[serde(flatten, with = "StoredPhase")]
    phase: Phase,
    created_at: Timestamp,
    origin: Origin,
    latest_check_in_at: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Phase")]
struct StoredPhase {
    #[serde(rename = "current_phase")]
    current: Option<String>,
    #[serde(rename = "phase_started_on")]
    started_on: Option<NaiveDate>,
    programme_id: Option<ProgrammeId>,
}

/// Where a creation through the API has left something of the client beside the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Traces {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lead: Option<ContactRef>,
    pub(super) claim: ClaimKey,
}

impl Record {
    /// The record of a client that has not been stored before.
    pub(super) fn first(client: Client, saved_at: FactTime, traces: Option<Traces>) -> Self {
        Self {
            pk: client_pk(&client.id),
            active_owner: client.is_active.then(|| client.coach_id.clone()),
            listed_at: place_of(&client),
            saved_at: saved_at.into(),
            activation_set_at: None,
            phase_set_at: None,
            traces,
            login_epoch: 0,
            version: 1,
            client,
        }
    }

    /// The record after the application's whole record. What that does not hold stays.
    pub(super) fn next(&self, client: Client, saved_at: FactTime) -> Self {
        Self {
            activation_set_at: self.activation_set_at,
            phase_set_at: self.phase_set_at,
            login_epoch: self.login_epoch + u64::from(self.ends_login_links(&client)),
            version: self.version + 1,
            ..Self::first(client, saved_at, self.traces.clone())
        }
    }

    /// Deactivation, hand-over and a changed address each end the links that the client was sent.
    fn ends_login_links(&self, next: &Client) -> bool {
        let [was, is] = [&self.client, next].map(|client| client.profile.email.as_ref().map(Email::key));
        (self.client.is_active && !next.is_active) || self.client.coach_id != next.coach_id || was != is
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
}

/// A client's place in lists, from which the next page goes on. The older, the less.
pub fn place_of(client: &Client) -> String {
    format!("{}#{}", client.created_at, client.id)
}

/// A list item from what an index holds of a client.
pub(super) fn list_item(mut item: Item) -> Result<ClientListItem, StoreError> {
    let client_id = client_id_of(&item)?;
    item.insert("client_id".to_owned(), s(client_id.as_str()));
    from_item("client", item)
}
