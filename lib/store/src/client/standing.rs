//! Where a client stands: not seen yet, known, or erased for good. What happens to a client is written on condition that it still stands
//! as it was read.

use std::fmt;

use aws_sdk_dynamodb::types::{ConditionCheck, Update};
use chrono::NaiveDate;
use domain::automation::Automation;
use domain::client::{Client, Origin};
use domain::event::EventType;
use domain::fact_time::FactTime;
use domain::id::ClientId;
use domain::time::Timestamp;
use domain::tz::Tz;

use super::record::Record;
use super::{Clients, key};
use crate::db::{Item, Part, StoreError, Write, n, s};

/// A client as stored.
#[derive(Debug, Clone)]
pub struct StoredClient {
    pub client: Client,
    /// Links to sign in with are of an epoch, and die with it.
    pub login_epoch: u64,
    /// Whether the API has said last whether the client is active, by switching or by making it.
    pub(super) flag_is_ours: bool,
    /// The later of the record's time and of the time at which the API set the flag.
    flag_said_at: FactTime,
    /// The later of the record's time and of the last step to another phase.
    pub(crate) phase_said_at: FactTime,
    pub(super) version: u64,
}

impl StoredClient {
    pub(super) fn new(record: Record) -> Self {
        let made_here = record.origin == Origin::PartnerApi && record.saved_at() == record.created_at.into();
        Self {
            flag_is_ours: made_here || record.activation_set_at() > Some(record.saved_at()),
            flag_said_at: record.activation_set_at().map_or(record.saved_at(), |set_at| set_at.max(record.saved_at())),
            login_epoch: record.login_epoch,
            phase_said_at: record.phase_set_at().map_or(record.saved_at(), |set_at| set_at.max(record.saved_at())),
            version: record.version,
            client: record.into_client(),
        }
    }
}

impl StoredClient {
    /// When the API sets the flag: after all that was said of it, even by a clock that is behind others, or by a request that came before
    /// one that has set it meanwhile.
    pub(super) fn flag_set_at(&self, now: Timestamp) -> Timestamp {
        now.after(self.flag_said_at.timestamp())
    }
}

/// What is known of a client.
#[derive(Debug)]
pub(crate) enum Standing<T = StoredClient> {
    Unknown,
    /// Nothing comes back.
    Erased,
    Known(T),
}

impl Clients {
    /// The client with that id, whoever owns it.
    pub async fn get(&self, id: &ClientId) -> Result<Option<StoredClient>, StoreError> {
        self.lookup.get(id).await
    }

    /// Where the client stands.
    pub(crate) async fn standing(&self, id: &ClientId) -> Result<Standing, StoreError> {
        self.lookup.standing(id).await
    }

    /// Where the days of the client's coach begin and end.
    pub(crate) async fn time_zone_of(&self, client: &Client) -> Result<Tz, StoreError> {
        self.workspaces.zone(&client.coach_id).await
    }

    /// The active automations on these events of the client's coach.
    pub(crate) async fn automations_on(
        &self,
        client: &Client,
        events: &[EventType],
    ) -> Result<Vec<Automation>, StoreError> {
        self.workspaces.automations_on(&client.coach_id, events).await
    }

    /// Part of a transaction: the client has not been erased.
    pub(crate) fn still_there(&self, id: &ClientId) -> Write {
        self.lookup.still_there(id)
    }

    /// Part of a transaction: the client is as it was read.
    pub(super) fn unchanged(&self, found: &StoredClient) -> Write {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(key(&client_pk(&found.client.id))))
            .condition_expression("version = :version")
            .expression_attribute_values(":version", n(found.version));
        Part::Client.check(check)
    }

    /// Part of a transaction: the client as it was read has its latest check-in at that time. It moves the version also where that is the
    /// time as it was: whoever looks for the latest at the same moment has not seen the check-in that comes or goes here.
    pub(crate) fn set_latest_check_in(&self, found: &StoredClient, latest: Option<Timestamp>) -> Write {
        let update = self.update_of(found);
        Part::Client.update(match latest {
            Some(latest) => update
                .update_expression("SET latest_check_in_at = :latest ADD version :one")
                .expression_attribute_values(":latest", s(latest.to_string())),
            None => update.update_expression("REMOVE latest_check_in_at ADD version :one"),
        })
    }

    /// Part of a transaction: the client as it was read has come to a phase, as was said at `said_at`. What is stored may be newer. The
    /// client as it is then.
    pub(crate) fn set_phase(
        &self,
        found: &StoredClient,
        phase: &str,
        started_on: NaiveDate,
        said_at: FactTime,
    ) -> (Write, Client) {
        if found.phase_said_at > said_at {
            return (self.unchanged(found), found.client.clone());
        }
        let mut client = found.client.clone();
        (client.phase.current, client.phase.started_on) = (Some(phase.to_owned()), Some(started_on));
        let set = "SET current_phase = :phase, phase_started_on = :started_on, phase_set_at = :said_at, phase_set_ns = :said_ns \
            ADD version :one";
        let update = self
            .update_of(found)
            .update_expression(set)
            .expression_attribute_values(":phase", s(phase))
            .expression_attribute_values(":started_on", s(started_on.to_string()))
            .expression_attribute_values(":said_at", n(said_at.ms()))
            .expression_attribute_values(":said_ns", n(said_at.ns_of_ms()));
        (Part::Client.update(update), client)
    }

    fn update_of(&self, found: &StoredClient) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(&client_pk(&found.client.id))))
            .condition_expression("version = :version")
            .expression_attribute_values(":version", n(found.version))
            .expression_attribute_values(":one", n(1))
    }
}

const CLIENT_PREFIX: &str = "CLIENT#";

const INTAKE_PREFIX: &str = "INTAKE#";

pub(super) fn client_pk(id: impl fmt::Display) -> String {
    format!("{CLIENT_PREFIX}{id}")
}

pub(super) fn intake_pk(id: &ClientId) -> String {
    format!("{INTAKE_PREFIX}{id}")
}

/// Whose record, or tombstone, an item is.
pub(super) fn client_id_of(item: &Item) -> Result<ClientId, StoreError> {
    let id = item.get("pk").and_then(|pk| pk.as_s().ok()).and_then(|pk| pk.strip_prefix(CLIENT_PREFIX));
    let id = id.and_then(|id| ClientId::parse(id).ok());
    id.ok_or_else(|| StoreError::corrupt("client", "its key has another form"))
}
