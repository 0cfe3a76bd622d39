//! Whose an id is.
//!
//! 1. `find` GetItem by an id that is a key of a table. Scan of `workspaces` for an endpoint, of `deliveries` for a
//!    delivery or an event, of `crm` for a contact, of `keys` for a key as lists show it, of `clients` and `crm` for
//!    the hash of an address.
//! 2. A request: Scan of `workspaces` for the coaches, then a Query of each coach's log.

use domain::id::{ClientId, CoachId, ContactId, DeliveryId, EndpointId, EventId, KeyId};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Overview;
use super::scan::{Progress, scan};
use crate::contact::contact_sk;
use crate::db::{Item, StoreError, query_all, s, sk_of, text};
use crate::delivery::endpoint_of;
use crate::endpoint::SORT_PREFIX as ENDPOINT;
use crate::holders::Holders;
use crate::workspace::{coach_of, partition};

/// Hexadecimal digits of a SHA-256.
const HASH_DIGITS: usize = 64;
/// Characters of a key that lists show at its end.
const ENDING_CHARS: usize = 4;
/// Prefix of the keys of an address's holders.
const EMAIL: &str = "EMAIL#";

/// The kind of a found record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    Coach,
    Client,
    Contact,
    Key,
    Endpoint,
    Delivery,
    Event,
    Request,
}

/// A record that was found, and its coach.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Found {
    pub kind: FoundKind,
    pub id: String,
    pub coach_id: CoachId,
}

impl Overview {
    /// Finds all records that a text names.
    pub async fn find(&self, wanted: &str, progress: &dyn Progress) -> Result<Vec<Found>, StoreError> {
        let mut found = self.by_key(wanted).await?;
        if let Ok(endpoint) = EndpointId::parse_whole(wanted) {
            let coach = self.coach_of_endpoint(&endpoint, progress).await?;
            found.extend(coach.map(|coach_id| Found { kind: FoundKind::Endpoint, id: wanted.to_owned(), coach_id }));
        } else if DeliveryId::parse_whole(wanted).is_ok() {
            found.extend(self.delivery_at(wanted, progress).await?);
        } else if EventId::parse_whole(wanted).is_ok() {
            found.extend(self.of_event(wanted, progress).await?);
        } else if let Ok(contact) = ContactId::parse(wanted) {
            found.extend(self.contacts_at(contact, progress).await?);
        } else if is_hash(wanted) {
            found.extend(self.with_address(wanted, progress).await?);
        } else if let Some(shown) = shown_key(wanted) {
            found.extend(self.keys_shown(shown, progress).await?);
        }
        if found.is_empty() && !is_ours(wanted) {
            found = self.requests_at(wanted, progress).await?;
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// The records whose key in a table the id is.
    async fn by_key(&self, wanted: &str) -> Result<Vec<Found>, StoreError> {
        let mut found = Vec::new();
        let mut add = |kind, coach_id| found.push(Found { kind, id: wanted.to_owned(), coach_id });
        if let Ok(coach) = CoachId::parse(wanted)
            && self.workspaces.get(&coach).await?.is_some()
        {
            add(FoundKind::Coach, coach);
        }
        if let Ok(client) = ClientId::parse(wanted)
            && let Some(stored) = self.clients.get(&client).await?
        {
            add(FoundKind::Client, stored.client.coach_id);
        }
        if let Ok(key) = KeyId::parse_whole(wanted)
            && let Some(record) = self.keys.of_any_coach(&key).await?
        {
            add(FoundKind::Key, record.coach_id);
        }
        Ok(found)
    }

    async fn delivery_at(&self, wanted: &str, progress: &dyn Progress) -> Result<Vec<Found>, StoreError> {
        let items = scan(&self.deliveries, "id = :wanted", [(":wanted", s(wanted))], progress).await?;
        Ok(items.iter().filter_map(found_delivery).collect())
    }

    /// An event, and its deliveries.
    async fn of_event(&self, wanted: &str, progress: &dyn Progress) -> Result<Vec<Found>, StoreError> {
        let items = scan(&self.deliveries, "event_id = :wanted", [(":wanted", s(wanted))], progress).await?;
        let deliveries = items.iter().filter_map(found_delivery);
        let with_event = deliveries.flat_map(|delivery| {
            let coach_id = delivery.coach_id.clone();
            [Found { kind: FoundKind::Event, id: wanted.to_owned(), coach_id }, delivery]
        });
        Ok(with_event.collect())
    }

    async fn contacts_at(&self, contact: ContactId, progress: &dyn Progress) -> Result<Vec<Found>, StoreError> {
        let sk = s(contact_sk(contact));
        let items = scan(&self.crm, "sk = :sk", [(":sk", sk)], progress).await?;
        let found = items.iter().map(|item| {
            let coach_id = coach_of(text(item, "pk"))?;
            Ok(Found { kind: FoundKind::Contact, id: contact.to_string(), coach_id })
        });
        found.collect()
    }

    async fn keys_shown(&self, shown: Shown<'_>, progress: &dyn Progress) -> Result<Vec<Found>, StoreError> {
        let (filter, value) = match shown {
            Shown::Whole(display) => ("display = :shown", display.to_owned()),
            Shown::Ending(ending) => ("contains(display, :shown)", format!("…{ending}")),
        };
        let items = scan(&self.key_items, filter, [(":shown", s(value))], progress).await?;
        let of = |item: &Item| {
            let coach_id = CoachId::parse(text(item, "coach_id")).ok()?;
            Some(Found { kind: FoundKind::Key, id: text(item, "key_id").to_owned(), coach_id })
        };
        Ok(items.iter().filter_map(of).collect())
    }

    /// The clients and contacts with an address, by the hash of its compared form.
    async fn with_address(&self, hash: &str, progress: &dyn Progress) -> Result<Vec<Found>, StoreError> {
        let is_wanted = |key: &str| {
            let address = key.strip_prefix(EMAIL).unwrap_or_default();
            hex::encode(Sha256::digest(address)).eq_ignore_ascii_case(hash)
        };
        let mut found = Vec::new();
        let of_clients = scan(&self.client_items, "begins_with(pk, :email)", [(":email", s(EMAIL))], progress).await?;
        for item in of_clients.into_iter().filter(|item| is_wanted(text(item, "pk"))) {
            for id in Holders::from_item(item)?.all() {
                let Ok(client) = ClientId::parse(id) else { continue };
                let stored = self.clients.get(&client).await?;
                found.extend(stored.map(|stored| Found {
                    kind: FoundKind::Client,
                    id: id.to_owned(),
                    coach_id: stored.client.coach_id,
                }));
            }
        }
        let of_contacts = scan(&self.crm, "begins_with(sk, :email)", [(":email", s(EMAIL))], progress).await?;
        for item in of_contacts.into_iter().filter(|item| is_wanted(sk_of(item))) {
            let coach_id = coach_of(text(&item, "pk"))?;
            for id in Holders::from_item(item)?.all() {
                found.push(Found { kind: FoundKind::Contact, id: id.to_owned(), coach_id: coach_id.clone() });
            }
        }
        Ok(found)
    }

    /// The record of a request, among those of all coaches.
    async fn requests_at(&self, wanted: &str, progress: &dyn Progress) -> Result<Vec<Found>, StoreError> {
        let workspaces = scan(&self.workspaces.table, "sk = :sk", [(":sk", s("WORKSPACE"))], progress).await?;
        let mut found = Vec::new();
        for item in workspaces {
            let coach_id = coach_of(text(&item, "pk"))?;
            let values = [(":pk", s(partition(&coach_id))), (":wanted", s(wanted))];
            let query = self.requests.query("pk = :pk", values).filter_expression("id = :wanted");
            if !query_all(query).await?.is_empty() {
                found.push(Found { kind: FoundKind::Request, id: wanted.to_owned(), coach_id });
            }
        }
        Ok(found)
    }

    /// The coach of an endpoint, found by a Scan.
    pub async fn coach_of_endpoint(
        &self,
        id: &EndpointId,
        progress: &dyn Progress,
    ) -> Result<Option<CoachId>, StoreError> {
        let values = [(":sk", s(format!("{ENDPOINT}{id}")))];
        let items = scan(&self.workspaces.table, "sk = :sk", values, progress).await?;
        items.first().map(|item| coach_of(text(item, "pk"))).transpose()
    }

    /// The endpoint of a delivery, found by a Scan.
    pub async fn endpoint_of_delivery(
        &self,
        id: &DeliveryId,
        progress: &dyn Progress,
    ) -> Result<Option<EndpointId>, StoreError> {
        let items = scan(&self.deliveries, "id = :wanted", [(":wanted", s(id.as_str()))], progress).await?;
        items.first().map(|item| endpoint_of(text(item, "pk"))).transpose()
    }
}

fn found_delivery(item: &Item) -> Option<Found> {
    let coach_id = CoachId::parse(text(item, "coach_id")).ok()?;
    Some(Found { kind: FoundKind::Delivery, id: text(item, "id").to_owned(), coach_id })
}

/// Returns true for an id that the service made, which no request has.
fn is_ours(text: &str) -> bool {
    EndpointId::parse_whole(text).is_ok() || DeliveryId::parse_whole(text).is_ok() || EventId::parse_whole(text).is_ok()
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A key as a list shows it, or its end.
enum Shown<'a> {
    Whole(&'a str),
    Ending(&'a str),
}

fn shown_key(text: &str) -> Option<Shown<'_>> {
    match text.split_once('…') {
        Some(("", ending)) => Some(Shown::Ending(ending)),
        Some(_) => Some(Shown::Whole(text)),
        None => (text.len() == ENDING_CHARS && text.is_ascii()).then_some(Shown::Ending(text)),
    }
}
