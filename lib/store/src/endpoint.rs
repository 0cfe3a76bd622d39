//! Table `workspaces`, the webhook endpoints of a workspace. pk `COACH#<coach_id>`, sk `ENDPOINT#<endpoint_id>`: the
//! record, its `version`, its secrets (sealed, the current one first). sk `ENDPOINTS`: the number of endpoints, and the
//! time of the last deletion.
//!
//! 1. `list_with_health` Query of the base table, consistent: the settings page shows an endpoint as soon as it is
//!    created. `list_with_deletion` the same with the number's item.
//! 2. `get` GetItem, `get_all` BatchGetItem, consistent, with the secrets.
//! 3. `create` Parts of a transaction: check of the workspace, the count below its limit, the endpoint.
//! 4. `find` GetItem, consistent. `change`, `rotate_secret` (module `secret`) Part of a transaction on the version
//!    read.
//! 5. `delete` Parts of a transaction: the endpoint, the count.
//! 6. `count_test`, `prolong_recovery`, `end_recovery` UpdateItem, `begin_recovery` Part of a transaction: module
//!    `by_hand`.
//! 7. `count` GetItem.
//! 8. `note` GetItem, then a PutItem or a transaction on the version read, if an attempt changes the health: module
//!    `health`.

mod by_hand;
mod health;
mod secret;

use domain::delivery::DeliveryJob;
use domain::endpoint::{
    Endpoint, EndpointChange, EndpointDraft, EndpointGone, EndpointStatus, EndpointWithHealth, MAX_ENDPOINTS,
    SignedEndpoint,
};
use domain::endpoint_health::EndpointHealth;
use domain::event::{EventType, PayloadMode};
use domain::id::{CoachId, EndpointId};
use domain::receiver_url::{Reach, ReceiverUrl};
use domain::signature::SigningSecret;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::db::{Db, Item, Part, StoreError, Table, Write, from_item, n, number, query_page, s, sk_of, to_item};
use crate::outbox::Content;
use crate::vault::Vault;
use crate::workspace::{key as workspace_key, key_of, partition};

pub use by_hand::recovery_until;

/// An endpoint as stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredEndpoint {
    pk: String,
    sk: String,
    version: u64,
    #[serde(flatten, with = "EndpointAttributes")]
    pub endpoint: Endpoint,
    secrets: Vec<SealedSecret>,
    pub health: EndpointHealth,
    /// The time of the last change of status or events, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_at: Option<i64>,
}

impl StoredEndpoint {
    pub fn with_health(&self) -> EndpointWithHealth {
        let changed_at = self.changed_at.map(Timestamp::from_ms);
        EndpointWithHealth { endpoint: self.endpoint.clone(), health: self.health.clone(), changed_at }
    }

    /// The record with another endpoint.
    fn with_endpoint(self, endpoint: Endpoint, now: Timestamp) -> Self {
        let is_same = endpoint.status == self.endpoint.status && endpoint.events == self.endpoint.events;
        Self { endpoint, changed_at: if is_same { self.changed_at } else { Some(now.ms()) }, ..self }
    }
}

/// An endpoint after a change by its coach, and what a transaction stores of it.
pub struct ChangedEndpoint {
    pub endpoint: EndpointWithHealth,
    pub write: Write,
    /// The entry of the job that sends the deliveries that wait for the breaker, if the change closes it early.
    pub resume: Option<Content>,
}

/// The attributes of an endpoint.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Endpoint")]
struct EndpointAttributes {
    id: EndpointId,
    #[serde(serialize_with = "write_url", deserialize_with = "read_url")]
    url: ReceiverUrl,
    events: Vec<EventType>,
    payload_mode: PayloadMode,
    description: Option<String>,
    status: EndpointStatus,
    disabled_reason: Option<String>,
    disabled_at: Option<Timestamp>,
    created_at: Timestamp,
}

fn write_url<S: Serializer>(url: &ReceiverUrl, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(url.expose())
}

/// Parses without a check of the host: the URL was checked when it was registered, and each attempt checks it again.
fn read_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReceiverUrl, D::Error> {
    let url = String::deserialize(deserializer)?;
    ReceiverUrl::parse(&url, Reach::PublicAndLoopback).map_err(D::Error::custom)
}

#[derive(Clone, Serialize, Deserialize)]
struct SealedSecret {
    #[serde(with = "crate::binary")]
    sealed: Vec<u8>,
    /// The time until which the secret signs, in ms. Absent from the current secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
}

impl SealedSecret {
    fn counts(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now.ms())
    }
}

/// The endpoints in the workspaces table.
#[derive(Clone)]
pub struct Endpoints {
    pub(crate) table: Table,
    vault: Vault,
}

impl Endpoints {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "WORKSPACES_TABLE")?, vault: vault.clone() })
    }

    /// Reads all endpoints of a workspace with their health, oldest first.
    pub async fn list_with_health(&self, coach: &CoachId) -> Result<Vec<EndpointWithHealth>, StoreError> {
        // At most MAX_ENDPOINTS small items: one page holds them.
        let values = [(":pk", s(partition(coach))), (":sk", s(SORT_PREFIX))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :sk)", values).consistent_read(true);
        let items = query_page(query).await?.items.into_iter();
        items.map(|item| from_item("endpoint", item).map(|stored: StoredEndpoint| stored.with_health())).collect()
    }

    /// Reads all endpoints of a workspace with their health, and the time at which the last one was deleted.
    pub async fn list_with_deletion(
        &self,
        coach: &CoachId,
    ) -> Result<(Vec<EndpointWithHealth>, Option<Timestamp>), StoreError> {
        // The key of the number of endpoints begins like theirs.
        let values = [(":pk", s(partition(coach))), (":sk", s("ENDPOINT"))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :sk)", values).consistent_read(true);
        let (mut endpoints, mut deleted_at) = (Vec::new(), None);
        for item in query_page(query).await?.items {
            if sk_of(&item) == COUNT_KEY {
                deleted_at = number(&item, "deleted_at").map(Timestamp::from_ms);
            } else {
                let stored: StoredEndpoint = from_item("endpoint", item)?;
                endpoints.push(stored.with_health());
            }
        }
        Ok((endpoints, deleted_at))
    }

    /// Reads an endpoint with the secrets that sign now.
    pub async fn get(
        &self,
        coach: &CoachId,
        id: &EndpointId,
        now: Timestamp,
    ) -> Result<Option<SignedEndpoint>, StoreError> {
        self.find(coach, id).await?.map(|record| self.signed(record, now)).transpose()
    }

    pub(crate) fn signed(&self, record: StoredEndpoint, now: Timestamp) -> Result<SignedEndpoint, StoreError> {
        let secrets = record.secrets.iter().filter(|secret| secret.counts(now));
        let secrets = secrets.map(|secret| self.open(&record.endpoint.id, secret)).collect::<Result<_, _>>()?;
        let StoredEndpoint { endpoint, health, .. } = record;
        Ok(SignedEndpoint { read_at: now, endpoint, secrets, health })
    }

    /// A new endpoint with its secret, and the parts of a transaction that store it below the limit of endpoints.
    pub fn create(
        &self,
        coach: &CoachId,
        draft: &EndpointDraft,
        id: EndpointId,
        secret: &SigningSecret,
        now: Timestamp,
    ) -> (EndpointWithHealth, [Write; 3]) {
        let EndpointDraft { url, events, payload_mode, description } = draft.clone();
        let record = StoredEndpoint {
            pk: partition(coach),
            sk: sort_key(&id),
            version: 1,
            secrets: vec![self.seal(&id, secret)],
            endpoint: Endpoint {
                id,
                url,
                events,
                payload_mode,
                description,
                status: EndpointStatus::Enabled,
                disabled_reason: None,
                disabled_at: None,
                created_at: now,
            },
            health: EndpointHealth::default(),
            changed_at: None,
        };
        let count = self.table.write(count_key(coach)).count("endpoints");
        let has_room = "attribute_not_exists(endpoints) OR endpoints < :most";
        let writes = [
            self.table.write(workspace_key(coach)).when_present().check(Part::Workspace),
            count.when(has_room, [(":most", n(MAX_ENDPOINTS))]).update(Part::EndpointCount),
            self.table.write(to_item(&record)).when_absent().put(Part::Endpoint),
        ];
        (record.with_health(), writes)
    }

    /// The endpoint after a change. A changed status or URL starts afresh: earlier failures no longer count.
    pub fn change(
        &self,
        coach: &CoachId,
        found: &StoredEndpoint,
        change: &EndpointChange,
        now: Timestamp,
    ) -> Result<ChangedEndpoint, EndpointGone> {
        let endpoint = found.endpoint.changed(change, now)?;
        let is_same = endpoint.status == found.endpoint.status && endpoint.url == found.endpoint.url;
        let health = if is_same { found.health.clone() } else { EndpointHealth::default() };
        let is_early = found.health.breaker.is_closed_early_by(&health.breaker, now);
        let resume =
            (is_early && endpoint.status == EndpointStatus::Enabled).then(|| resume_due(coach, &endpoint, now));
        let changed = StoredEndpoint { health, ..found.clone() }.with_endpoint(endpoint, now);
        Ok(ChangedEndpoint { endpoint: changed.with_health(), write: self.replace(changed), resume })
    }

    /// Parts of a transaction: delete an endpoint.
    pub fn delete(&self, coach: &CoachId, id: &EndpointId, now: Timestamp) -> [Write; 3] {
        let count = self.table.write(count_key(coach)).add("endpoints", n(-1)).set("deleted_at", n(now.ms()));
        [
            self.table.write(key(coach, id)).when_present().delete(Part::Endpoint),
            self.table.write(by_hand_key(coach, id)).delete(Part::Endpoint),
            count.when("endpoints > :zero", []).update(Part::EndpointCount),
        ]
    }

    /// Counts the endpoints of a workspace, as their limit does.
    pub async fn count(&self, coach: &CoachId) -> Result<usize, StoreError> {
        let item = self.table.item(count_key(coach)).await?;
        Ok(item.and_then(|item| number(&item, "endpoints")).unwrap_or_default())
    }

    /// Reads an endpoint as stored.
    pub async fn find(&self, coach: &CoachId, id: &EndpointId) -> Result<Option<StoredEndpoint>, StoreError> {
        self.table.get("endpoint", key(coach, id)).await
    }

    /// Seals the current secret of an endpoint.
    fn seal(&self, id: &EndpointId, secret: &SigningSecret) -> SealedSecret {
        SealedSecret { sealed: self.vault.seal(&secret_context(id), secret.as_bytes()), until: None }
    }

    fn open(&self, id: &EndpointId, secret: &SealedSecret) -> Result<SigningSecret, StoreError> {
        let bytes = self.vault.unseal("endpoint", &secret_context(id), &secret.sealed)?;
        SigningSecret::restore(&bytes).ok_or_else(|| StoreError::corrupt("endpoint", "its secret has another length"))
    }

    /// Part of a transaction: stores a changed record, if it is as it was read.
    fn replace(&self, changed: StoredEndpoint) -> Write {
        let found = changed.version;
        let next = StoredEndpoint { version: found + 1, ..changed };
        self.table.write(to_item(&next)).when_version(Some(found)).put(Part::Endpoint)
    }
}

/// The entry of the job for an endpoint whose breaker is closed early, at `now`.
fn resume_due(coach: &CoachId, endpoint: &Endpoint, now: Timestamp) -> Content {
    Content::Job(Box::new(DeliveryJob::resume_due(coach.clone(), endpoint.id.clone(), now)))
}

pub(crate) const SORT_PREFIX: &str = "ENDPOINT#";
const COUNT_KEY: &str = "ENDPOINTS";

fn sort_key(id: &EndpointId) -> String {
    format!("{SORT_PREFIX}{id}")
}

pub(crate) fn key(coach: &CoachId, id: &EndpointId) -> Item {
    key_of(coach, &sort_key(id))
}

fn by_hand_key(coach: &CoachId, id: &EndpointId) -> Item {
    key_of(coach, &format!("BY_HAND#{id}"))
}

fn count_key(coach: &CoachId) -> Item {
    key_of(coach, COUNT_KEY)
}

fn secret_context(id: &EndpointId) -> String {
    format!("endpoint/{id}/secret")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_from_its_item_and_absent_members_have_no_attribute() {
        let endpoint = Endpoint {
            id: EndpointId::parse("we_1").unwrap(),
            url: ReceiverUrl::parse("https://hooks.example.com/a", Reach::PublicAndLoopback).unwrap(),
            events: EventType::ALL.to_vec(),
            payload_mode: PayloadMode::Identifiers,
            description: None,
            status: EndpointStatus::Disabled,
            disabled_reason: Some("by hand".to_owned()),
            disabled_at: Some(Timestamp::from_ms(7)),
            created_at: Timestamp::from_ms(5),
        };
        let item = to_item(&StoredEndpoint {
            pk: "COACH#coach_1".to_owned(),
            sk: "ENDPOINT#we_1".to_owned(),
            version: 3,
            endpoint: endpoint.clone(),
            secrets: vec![SealedSecret { sealed: vec![1, 2], until: None }],
            health: EndpointHealth::default(),
            changed_at: None,
        });
        let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
        names.sort_unstable();
        let (first, second) = (
            ["created_at", "disabled_at", "disabled_reason", "events", "health", "id"],
            ["payload_mode", "pk", "secrets", "sk", "status", "url", "version"],
        );
        assert_eq!(names, [first.as_slice(), &second].concat());
        let read: StoredEndpoint = from_item("endpoint", item).unwrap();
        assert_eq!(read.endpoint, endpoint);
        assert_eq!(read.secrets[0].sealed, [1, 2]);
    }
}
