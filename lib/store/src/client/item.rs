//! The item of a client, its key, and its position in lists.

use std::collections::BTreeSet;
use std::fmt;

use domain::client::{Client, ClientListItem, ClientRegisters, Profile};
use domain::email::Email;
use domain::fact::ClientSaved;
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId};
use domain::register::Register;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::claim::ClaimKey;
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, from_item, s, text};

/// A client as stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredClient {
    pk: String,
    #[serde(flatten)]
    pub client: Client,
    active_owner: Option<CoachId>,
    listed_at: String,
    update_position: String,
    pub(super) registers: ClientRegisters,
    pub(super) creation_refs: Option<CreationRefs>,
    /// The coaches before the present one, whose event feeds may hold events about the client.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) former_coaches: BTreeSet<CoachId>,
    /// Raised by each event that ends the client's login links. Links of an earlier epoch are dead.
    pub login_epoch: u64,
    pub(super) version: u64,
    /// True while the test data of the client's workspace is being removed, so that facts about the client wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wiping: bool,
}
domain::discreet! { StoredClient }

/// The state of a client.
#[derive(Debug)]
pub enum ClientState {
    Unknown,
    /// No later fact restores the client.
    Erased,
    Known(Box<StoredClient>),
}

/// References to the items beside the record that a creation through the API wrote about the client. Holds ids only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CreationRefs {
    /// The claim that holds the creation's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// The contact that the client was when it was created. Each pass of the erasure erases what is about the contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<ContactRef>,
}

impl StoredClient {
    /// A new client, whose whole record is set by that write.
    pub(super) fn first(client: Client, write: Register, creation_refs: Option<CreationRefs>) -> Self {
        Self {
            pk: client_pk(&client.id),
            active_owner: client.is_active.then(|| client.coach_id.clone()),
            listed_at: list_position(&client),
            update_position: update_position(&client),
            registers: ClientRegisters::whole(write),
            creation_refs,
            former_coaches: BTreeSet::new(),
            login_epoch: 0,
            version: 1,
            is_wiping: false,
            client,
        }
    }

    /// The client after a fact with the application's whole record. A flag or phase that was set later stays. So does
    /// the external id, which the application does not know, unless the fact hands the client over. `None`: the known
    /// client is newer.
    pub fn apply_fact(known: Option<&Self>, saved: &ClientSaved, at: FactTime, now: Timestamp) -> Option<Self> {
        let Some(known) = known else {
            let client = Client {
                id: saved.client_id.clone(),
                coach_id: saved.coach_id.clone(),
                profile: saved.profile(),
                is_active: saved.is_active,
                phase: saved.phase(),
                created_at: saved.created_at,
                updated_at: now,
                origin: saved.origin,
                latest_check_in_at: None,
            };
            return Some(Self::first(client, Register::by_application(at), None));
        };
        let (mut client, mut registers) = (known.client.clone(), known.registers);
        let external_id = client.profile.external_id.clone().filter(|_| client.coach_id == saved.coach_id);
        let profile = Profile { external_id, ..saved.profile() };
        if !registers.profile.offer(&mut client.profile, profile, at) {
            return None;
        }
        let mut former_coaches = known.former_coaches.clone();
        former_coaches.extend((client.coach_id != saved.coach_id).then(|| client.coach_id.clone()));
        (client.coach_id, client.created_at) = (saved.coach_id.clone(), saved.created_at);
        registers.is_active.offer(&mut client.is_active, saved.is_active, at);
        registers.phase.offer(&mut client.phase, saved.phase(), at);
        client.phase.programme_id.clone_from(&saved.phase().programme_id);
        client.mark_update(&known.client, now);
        Some(Self {
            active_owner: client.is_active.then(|| client.coach_id.clone()),
            listed_at: list_position(&client),
            update_position: update_position(&client),
            registers,
            former_coaches,
            login_epoch: known.login_epoch + u64::from(known.ends_login_links(&client)),
            version: known.version + 1,
            is_wiping: known.is_wiping && client.coach_id == known.client.coach_id,
            client,
            ..known.clone()
        })
    }

    /// Returns true for a deactivation, a hand-over or a changed address: each ends the links that the client was sent.
    fn ends_login_links(&self, next: &Client) -> bool {
        let [was, is] = [&self.client, next].map(|client| client.profile.email.as_ref().map(Email::key));
        (self.client.is_active && !next.is_active) || self.client.coach_id != next.coach_id || was != is
    }
}

/// A client's position in the list by creation. An older client has a smaller position.
pub(super) fn list_position(client: &Client) -> String {
    format!("{}#{}", client.created_at, client.id)
}

/// A client's position in the list by update. An earlier update has a smaller position.
pub(super) fn update_position(client: &Client) -> String {
    format!("{}#{}", client.updated_at, client.id)
}

/// Parses a list item from an index.
pub(super) fn list_item(mut item: Item) -> Result<ClientListItem, StoreError> {
    let client_id = client_id_of(&item)?;
    item.insert("client_id".to_owned(), s(client_id.as_str()));
    from_item("client", item)
}

/// The position of a list item in the list by creation.
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
    use domain::client::{Measure, Origin, Phase};

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
            updated_at: Timestamp::from_ms(5),
            origin: Origin::PartnerApi,
            latest_check_in_at: None,
        };
        let at = FactTime::parse("2026-11-20T09:30:00.123456789Z").unwrap();
        let record = StoredClient::first(client.clone(), Register::by_application(at), None);
        let item = to_item(&record);
        let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
        names.sort_unstable();
        let attributes = "active_owner client_id created_at current_phase email full_name height_in is_active listed_at \
                          login_epoch origin owner pk registers update_position updated_at version weight_lbs";
        assert_eq!(names.join(" "), attributes);
        let read: StoredClient = from_item("client", item).unwrap();
        assert_eq!((&read.client, read.registers), (&client, record.registers));
        assert!(read.creation_refs.is_none());

        let saved = serde_json::json!({
            "client_id": "c1", "coach_id": "coach_1", "email": "grace@example.com", "full_name": "Grace", "phone": null,
            "goals": null, "health_notes": null, "height_in": 70, "weight_lbs": 154.5, "is_active": false,
            "current_phase": "Reset", "phase_started_on": null, "programme_id": null, "created_at": client.created_at,
            "origin": "application",
        });
        let saved: ClientSaved = serde_json::from_value(saved).unwrap();
        let now = Timestamp::from_ms(7);
        let inactive = StoredClient::apply_fact(Some(&record), &saved, at, now).unwrap();
        assert_eq!((inactive.client.updated_at, &inactive.update_position), (now, &format!("{now}#c1")));
        assert_eq!((inactive.version, inactive.login_epoch), (2, 1));
        assert!(!to_item(&inactive).contains_key("active_owner"));
        assert!(StoredClient::apply_fact(Some(&record), &saved, FactTime::from_ms(6), now).is_none());
    }
}
