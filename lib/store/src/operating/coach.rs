//! A coach: clients, keys, endpoints, and what waits in the outbox.
//!
//! 1. `coach` GetItem of the workspace; GetItem of the key ring, BatchGetItem of the keys; Query of the endpoints.
//! 2. `endpoint`, `delivery` GetItem. `waits_in_outbox` BatchGetItem.
//! 3. `unsent_of` Query of all shards of the outbox, then BatchGetItem.

use domain::endpoint::EndpointStatus;
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::time::Timestamp;
use domain::workspace::Entitlements;
use serde::Serialize;

use super::Overview;
use crate::db::{self, Item, StoreError, from_item, number, query_all, s, text};
use crate::delivery::OperatedDelivery;
use crate::endpoint::{SORT_PREFIX, StoredEndpoint, key as endpoint_key};
use crate::outbox;
use crate::workspace::partition;

/// A coach, as operators see one.
#[derive(Debug, Clone, Serialize)]
pub struct CoachSummary {
    pub coach_id: CoachId,
    pub clients: ClientCounts,
    pub keys: KeyCounts,
    pub entitlements: Entitlements,
    pub crm_configured: bool,
    pub endpoints: Vec<EndpointSummary>,
}

/// The numbers that the plan's limit uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClientCounts {
    /// Client records, deactivated ones included.
    pub stored: u32,
    pub active: u32,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct KeyCounts {
    pub live: usize,
}

/// An endpoint, without its path, which may hold a secret.
#[derive(Debug, Clone, Serialize)]
pub struct EndpointSummary {
    pub id: EndpointId,
    pub host: String,
    pub status: EndpointStatus,
    pub breaker_open_until: Option<Timestamp>,
    pub failing_since: Option<Timestamp>,
}

impl Overview {
    /// Reads a coach.
    pub async fn coach(&self, coach: &CoachId, now: Timestamp) -> Result<Option<CoachSummary>, StoreError> {
        let Some(stored) = self.workspaces.get(coach).await? else { return Ok(None) };
        let live = self.keys.count_live(coach, now).await?;
        let values = [(":pk", s(partition(coach))), (":sk", s(SORT_PREFIX))];
        let query = self.workspaces.table.query("pk = :pk AND begins_with(sk, :sk)", values).consistent_read(true);
        let endpoints = query_all(query).await?.into_iter().map(|item| {
            let stored: StoredEndpoint = from_item("endpoint", item)?;
            Ok(EndpointSummary::new(&stored, now))
        });
        Ok(Some(CoachSummary {
            coach_id: coach.clone(),
            clients: ClientCounts { stored: stored.client_count, active: stored.active_count },
            keys: KeyCounts { live },
            entitlements: stored.workspace.entitlements,
            crm_configured: stored.workspace.crm.is_some(),
            endpoints: endpoints.collect::<Result<_, StoreError>>()?,
        }))
    }

    /// Reads an endpoint of a coach.
    pub async fn endpoint(&self, coach: &CoachId, id: &EndpointId) -> Result<Option<StoredEndpoint>, StoreError> {
        self.workspaces.table.get("endpoint", endpoint_key(coach, id)).await
    }

    /// Reads a delivery, without body, answers and signature.
    pub async fn delivery(
        &self,
        endpoint: &EndpointId,
        id: &DeliveryId,
    ) -> Result<Option<OperatedDelivery>, StoreError> {
        OperatedDelivery::read(&self.deliveries, endpoint, id).await
    }

    /// Reads the times from which a coach's entries of the outbox are to be sent.
    pub async fn unsent_of(&self, coach: &CoachId) -> Result<Vec<Timestamp>, StoreError> {
        let is_own = |item: &Item| text(item, "coach_id") == coach.as_str();
        let entries = outbox::entries(&self.outbox, is_own).await?;
        Ok(entries.iter().filter_map(|item| number(item, "send_after")).map(Timestamp::from_ms).collect())
    }

    /// Returns true if the entry of the outbox with this id waits to be sent.
    pub async fn waits_in_outbox(&self, id: &str) -> Result<bool, StoreError> {
        Ok(!self.outbox.read(vec![db::pk(id)]).await?.is_empty())
    }
}

impl EndpointSummary {
    fn new(stored: &StoredEndpoint, now: Timestamp) -> Self {
        let StoredEndpoint { endpoint, health, .. } = stored;
        Self {
            id: endpoint.id.clone(),
            host: endpoint.url.host().to_owned(),
            status: endpoint.status,
            breaker_open_until: health.breaker.open_until(now),
            failing_since: health.failing_since(),
        }
    }
}
