//! State of a client: unknown, known, or erased for good. Writes about a client have the condition that the client is
//! as it was read.

use std::fmt;

use chrono::NaiveDate;
use domain::client::{Client, Origin};
use domain::fact_time::FactTime;
use domain::id::ClientId;
use domain::time::Timestamp;

use super::Clients;
use super::item::ClientItem;
use crate::db::{self, Item, ItemWrite, Part, StoreError, Write, s, text};

/// A client as stored.
#[derive(Debug, Clone)]
pub struct StoredClient {
    pub client: Client,
    /// Login links belong to an epoch, and end with it.
    pub login_epoch: u64,
    /// True if the API was the last to set the active flag, by a change or by the creation of the client.
    pub(super) flag_is_ours: bool,
    /// The later of the record's time and the time at which the API set the flag.
    flag_set_at: FactTime,
    /// The later of the record's time and the time of the last phase advance.
    pub(crate) phase_set_at: FactTime,
    pub(super) version: u64,
}

impl StoredClient {
    pub(super) fn new(record: ClientItem) -> Self {
        let client = &record.client;
        let made_here = client.origin == Origin::PartnerApi && record.saved_at() == client.created_at.into();
        Self {
            flag_is_ours: made_here || record.activation_set_at() > Some(record.saved_at()),
            flag_set_at: record.activation_set_at().map_or(record.saved_at(), |set_at| set_at.max(record.saved_at())),
            login_epoch: record.login_epoch,
            phase_set_at: record.phase_set_at().map_or(record.saved_at(), |set_at| set_at.max(record.saved_at())),
            version: record.version,
            client: record.client,
        }
    }

    /// The time at which the API sets the flag: later than all earlier writes of the flag, even if this function's
    /// clock is behind.
    pub(super) fn next_flag_time(&self, now: Timestamp) -> Timestamp {
        now.after(self.flag_set_at.timestamp())
    }
}

/// The state of a client.
#[derive(Debug)]
pub(crate) enum ClientState<T = StoredClient> {
    Unknown,
    /// No later fact restores the client.
    Erased,
    Known(T),
}

impl Clients {
    /// Reads the client with that id, of any coach.
    pub async fn get(&self, id: &ClientId) -> Result<Option<StoredClient>, StoreError> {
        self.lookup.get(id).await
    }

    /// Part of a transaction: checks that the client is as it was read.
    pub(super) fn check_unchanged(&self, found: &StoredClient) -> Write {
        let client = self.table.write(db::pk(client_pk(&found.client.id)));
        client.when_version(Some(found.version)).check(Part::Client)
    }

    /// Part of a transaction: sets the time of the latest check-in, if the client is as it was read. The version rises
    /// in any case: a concurrent search for the latest check-in has not seen the present change.
    pub(crate) fn set_latest_check_in(&self, found: &StoredClient, latest: Option<Timestamp>) -> Write {
        let latest = latest.map(|latest| s(latest.to_string()));
        self.update_of(found).set_or_remove("latest_check_in_at", latest).update(Part::Client)
    }

    /// Part of a transaction: sets the phase, if the client is as it was read, unless the stored phase is newer. Also
    /// returns the changed client.
    pub(crate) fn set_phase(
        &self,
        found: &StoredClient,
        phase: &str,
        started_on: NaiveDate,
        occurred_at: FactTime,
    ) -> (Write, Client) {
        if found.phase_set_at > occurred_at {
            return (self.check_unchanged(found), found.client.clone());
        }
        let mut client = found.client.clone();
        (client.phase.current, client.phase.started_on) = (Some(phase.to_owned()), Some(started_on));
        let update = self
            .update_of(found)
            .set("current_phase", s(phase))
            .set("phase_started_on", s(started_on.to_string()))
            .set("phase_set_at", s(occurred_at.to_string()));
        (update.update(Part::Client), client)
    }

    /// An update on condition that the client is as it was read.
    pub(super) fn update_of(&self, found: &StoredClient) -> ItemWrite<'_> {
        self.table.write(db::pk(client_pk(&found.client.id))).when_version(Some(found.version)).count("version")
    }
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
