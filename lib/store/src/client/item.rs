//! The item of a client, its key, and its position in lists.

use std::fmt;

use chrono::NaiveDate;
use domain::client::{Client, ClientListItem, Origin, Phase, Profile};
use domain::email::Email;
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ProgrammeId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::claim::ClaimKey;
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, from_item, s, text};

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ClientItem {
    pk: String,
    #[serde(flatten, with = "ClientAttributes")]
    pub(super) client: Client,
    active_owner: Option<CoachId>,
    listed_at: String,
    saved_at: FactTime,
    /// The time at which the API last set the active flag, in milliseconds.
    activation_set_at: Option<i64>,
    /// The time of the last fact that advanced the phase.
    phase_set_at: Option<FactTime>,
    pub(super) creation_refs: Option<CreationRefs>,
    /// Raised by each event that ends the client's login links. Links of an earlier epoch are dead.
    pub(super) login_epoch: u64,
    pub(super) version: u64,
}
domain::discreet! { ClientItem }

/// The attributes of a client.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Client")]
struct ClientAttributes {
    #[serde(rename = "client_id")]
    id: ClientId,
    #[serde(rename = "owner")]
    coach_id: CoachId,
    #[serde(flatten)]
    profile: Profile,
    is_active: bool,
    #[serde(flatten, with = "PhaseAttributes")]
    phase: Phase,
    created_at: Timestamp,
    origin: Origin,
    latest_check_in_at: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Phase")]
struct PhaseAttributes {
    #[serde(rename = "current_phase")]
    current: Option<String>,
    #[serde(rename = "phase_started_on")]
    started_on: Option<NaiveDate>,
    programme_id: Option<ProgrammeId>,
}

/// References to the items beside the record that a creation through the API wrote about the client. Holds ids only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CreationRefs {
    /// The claim that holds the creation's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimKey>,
    /// The contact that the client was when it was created. Each pass of the erasure erases what is about the contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<ContactRef>,
}

impl ClientItem {
    /// The record of a new client.
    pub(super) fn first(client: Client, saved_at: FactTime, creation_refs: Option<CreationRefs>) -> Self {
        Self {
            pk: client_pk(&client.id),
            active_owner: client.is_active.then(|| client.coach_id.clone()),
            listed_at: list_position(&client),
            saved_at,
            activation_set_at: None,
            phase_set_at: None,
            creation_refs,
            login_epoch: 0,
            version: 1,
            client,
        }
    }

    /// The record after a fact with the application's whole record. Members that the fact lacks stay.
    pub(super) fn next(&self, client: Client, saved_at: FactTime) -> Self {
        Self {
            activation_set_at: self.activation_set_at,
            phase_set_at: self.phase_set_at,
            login_epoch: self.login_epoch + u64::from(self.ends_login_links(&client)),
            version: self.version + 1,
            ..Self::first(client, saved_at, self.creation_refs.clone())
        }
    }

    /// Returns true for a deactivation, a hand-over or a changed address: each ends the links that the client was sent.
    fn ends_login_links(&self, next: &Client) -> bool {
        let [was, is] = [&self.client, next].map(|client| client.profile.email.as_ref().map(Email::key));
        (self.client.is_active && !next.is_active) || self.client.coach_id != next.coach_id || was != is
    }

    /// The time of the fact, or of the creation, that set the whole record.
    pub(super) fn saved_at(&self) -> FactTime {
        self.saved_at
    }

    /// The time at which the API last set the active flag.
    pub(super) fn activation_set_at(&self) -> Option<FactTime> {
        self.activation_set_at.map(FactTime::from_ms)
    }

    /// The time of the last fact that advanced the phase.
    pub(super) fn phase_set_at(&self) -> Option<FactTime> {
        self.phase_set_at
    }
}

/// A client's position in lists, which a cursor holds. An older client has a smaller position.
pub fn list_position(client: &Client) -> String {
    format!("{}#{}", client.created_at, client.id)
}

/// Parses a list item from an index.
pub(super) fn list_item(mut item: Item) -> Result<ClientListItem, StoreError> {
    let client_id = client_id_of(&item)?;
    item.insert("client_id".to_owned(), s(client_id.as_str()));
    from_item("client", item)
}

/// The position of a list item.
pub(super) fn listed_at(item: &Item) -> String {
    text(item, "listed_at").to_owned()
}

/// The index key at which a page ended. The client's id is the end of `listed_at`, after the time.
pub(super) fn page_start(coach: &CoachId, partition: &str, listed_at: &str) -> Item {
    let id = listed_at.split_once('#').map_or("", |(_, id)| id);
    Item::from([
        ("pk".to_owned(), s(client_pk(id))),
        (partition.to_owned(), s(coach.as_str())),
        ("listed_at".to_owned(), s(listed_at)),
    ])
}

const CLIENT_PREFIX: &str = "CLIENT#";

pub(super) fn client_pk(id: impl fmt::Display) -> String {
    format!("{CLIENT_PREFIX}{id}")
}

pub(super) fn intake_pk(id: &ClientId) -> String {
    format!("INTAKE#{id}")
}

/// The client id in the key of a record or tombstone.
pub(super) fn client_id_of(item: &Item) -> Result<ClientId, StoreError> {
    let id = text(item, "pk").strip_prefix(CLIENT_PREFIX).and_then(|id| ClientId::parse(id).ok());
    id.ok_or_else(|| StoreError::corrupt("client", "its key has another form"))
}

#[cfg(test)]
mod tests {
    use domain::client::Measure;

    use super::*;
    use crate::db::to_item;

    #[test]
    fn a_record_reads_back_from_its_item_and_absent_members_have_no_attribute() {
        let client = Client {
            id: ClientId::parse("c1").unwrap(),
            coach_id: CoachId::parse("coach_1").unwrap(),
            profile: Profile {
                email: Some(Email::parse("grace@example.com").unwrap()),
                full_name: "Grace".to_owned(),
                phone: None,
                goals: None,
                health_notes: None,
                height_in: Some(Measure(70.0)),
                weight_lbs: Some(Measure(154.5)),
                external_id: None,
            },
            is_active: true,
            phase: Phase { current: Some("Reset".to_owned()), ..Phase::default() },
            created_at: Timestamp::from_ms(5),
            origin: Origin::PartnerApi,
            latest_check_in_at: None,
        };
        let record =
            ClientItem::first(client.clone(), FactTime::parse("2026-11-20T09:30:00.123456789Z").unwrap(), None);
        let item = to_item(&record);
        let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
        names.sort_unstable();
        let attributes = "active_owner client_id created_at current_phase email full_name height_in is_active listed_at \
                          login_epoch origin owner pk saved_at version weight_lbs";
        assert_eq!(names.join(" "), attributes);
        let read: ClientItem = from_item("client", item).unwrap();
        assert_eq!((&read.client, read.saved_at()), (&client, record.saved_at()));
        assert!(read.phase_set_at().is_none() && read.creation_refs.is_none());

        let inactive = record.next(Client { is_active: false, ..client }, FactTime::from_ms(6));
        assert_eq!((inactive.version, inactive.login_epoch), (2, 1));
        assert!(!to_item(&inactive).contains_key("active_owner"));
    }
}
