//! The removal of everything that a workspace of a sandbox holds, but for its keys, its endpoints and its audit trail.
//! The state of the removal is part of the workspace's record (module `workspace`).
//!
//! 1. `close` Queries the clients, then an UpdateItem each.
//! 2. `remove` Reads and deletes in all tables, step by step, until the time is over. Repeats find what is left.
//!    Recorded answers, seen facts and login links have no index by coach. They are found by Scan, which only a sandbox
//!    affords.
//! 3. `unused` Scan of the table `keys`.

use std::collections::BTreeMap;
use std::time::Instant;

use chrono::TimeDelta;
use domain::id::{ClientId, CoachId, EndpointId};
use domain::sandbox::id_prefix;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};

use crate::audit::erased_clients;
use crate::client::{ClientPageRequest, Clients, ListOrder, WIPED};
use crate::contact::Contacts;
use crate::db::{Db, Item, MeteredRequest, StoreError, Table, failed, number, query_page, s, sk_of, text};
use crate::delivery::{DELETED, Deliveries, partition_of};
use crate::endpoint::Endpoints;
use crate::outbox::Outbox;
use crate::record::Records;
use crate::shard::SHARDS;
use crate::stored_mail;
use crate::vault::Vault;
use crate::workspace::{Workspaces, partition};

/// Sort keys of the workspace's items that go.
const OF_WORKSPACE: [&str; 5] = ["AUTOMATION", "CALENDAR#", "PIPELINE#", "PROGRAMME#", stored_mail::PREFIX];
/// Condition on the beginning of an item's key.
const BY_KEY: &str = "begins_with(pk, :value)";
/// Clients that are listed at once.
const CLIENT_PAGE: u32 = 50;
/// Entries of the outbox that are read at once.
const ENTRY_PAGE: i32 = 50;
/// Time for which the removal waits for an entry of the outbox. An older one has met a fault of the relay, or waits for
/// a contact that is gone.
const MAX_ENTRY_AGE: TimeDelta = TimeDelta::minutes(1);

/// The progress of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Nothing is left.
    Done,
    /// The time is over.
    Continues,
    /// The relay has entries of the workspace to send.
    Waits,
}

/// A step of a removal with each client.
#[derive(Debug, Clone, Copy)]
enum ClientStep {
    /// Facts about the client wait.
    Close,
    Remove,
}

/// The data of workspaces, for removal.
#[derive(Clone)]
pub struct TestData {
    clients: Clients,
    records: Records,
    endpoints: Endpoints,
    deliveries: Deliveries,
    outbox: Outbox,
    workspaces: Table,
    crm: Table,
    events: Table,
    claims: Table,
    facts: Table,
    links: Table,
    keys: Table,
}

impl TestData {
    /// The tables of all records.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        let workspaces = Workspaces::new(env, db)?;
        let clients = Clients::new(env, db, &workspaces, &Contacts::new(env, db)?)?;
        Ok(Self {
            records: Records::new(env, db, vault, &clients)?,
            clients,
            endpoints: Endpoints::new(env, db, vault)?,
            deliveries: Deliveries::new(env, db, vault)?,
            outbox: Outbox::new(env, db, vault)?,
            workspaces: workspaces.table,
            crm: Table::new(env, db, "CRM_TABLE")?,
            events: Table::new(env, db, "EVENTS_TABLE")?,
            claims: Table::new(env, db, "IDEMPOTENCY_TABLE")?,
            facts: Table::new(env, db, "FACTS_TABLE")?,
            links: Table::new(env, db, "LOGIN_LINKS_TABLE")?,
            keys: Table::new(env, db, "KEYS_TABLE")?,
        })
    }

    /// Makes facts about the clients of a coach wait. Returns false if the time is over.
    pub async fn close(&self, coach: &CoachId, until: Instant) -> Result<bool, StoreError> {
        self.each_client(coach, ClientStep::Close, until).await
    }

    /// Removes the data of a coach's workspace, whose writes are refused meanwhile, until `until`.
    pub async fn remove(&self, coach: &CoachId, now: Timestamp, until: Instant) -> Result<Removal, StoreError> {
        if !self.outbox_is_empty(coach, now).await? {
            return Ok(Removal::Waits);
        }
        let is_done = self.remove_clients(coach, until).await?
            && self.remove_partition(&self.crm, partition(coach), "", until).await?
            && self.remove_of_workspace(coach, until).await?
            && self.remove_deliveries(coach, until).await?
            && self.remove_partition(&self.events, partition(coach), "", until).await?
            && self.remove_found(&self.claims, BY_KEY, format!("CLAIM#{coach}#"), until).await?
            && self.remove_found(&self.claims, BY_KEY, format!("SECRET#CLAIM#{coach}#"), until).await?
            && self.remove_found(&self.facts, BY_KEY, format!("FACT#{}", id_prefix(coach)), until).await?
            && self.remove_found(&self.links, "coach_id = :value", coach.to_string(), until).await?;
        // A sweep may have been under way. Its entries are sent to tables that were emptied before.
        Ok(match is_done {
            true if self.outbox_is_empty(coach, now).await? => Removal::Done,
            true => Removal::Waits,
            false => Removal::Continues,
        })
    }

    /// Returns false while the relay is about to send an entry of the coach. Removes entries that wait.
    async fn outbox_is_empty(&self, coach: &CoachId, now: Timestamp) -> Result<bool, StoreError> {
        let far = Timestamp::from_ms(i64::MAX);
        for shard in 0..SHARDS {
            let mut start = None;
            loop {
                let (ids, next) = self.outbox.unsent(shard, far, ENTRY_PAGE, start).await?;
                for (id, send_after) in ids {
                    let Some(entry) = self.outbox.get(&id).await?.filter(|entry| entry.content.coach_id() == coach)
                    else {
                        continue;
                    };
                    if send_after <= now && send_after + MAX_ENTRY_AGE > now {
                        return Ok(false);
                    }
                    self.outbox.delete(&entry.content).await?;
                }
                start = next;
                if start.is_none() {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Removes the coach's clients, then what is left of them in the table `records`.
    async fn remove_clients(&self, coach: &CoachId, until: Instant) -> Result<bool, StoreError> {
        if !self.each_client(coach, ClientStep::Remove, until).await? {
            return Ok(false);
        }
        loop {
            let marks = self.keys_of(&self.workspaces, partition(coach), WIPED).await?;
            if marks.is_empty() {
                break;
            }
            for mark in marks {
                if let Ok(client) = ClientId::parse(sk_of(&mark).trim_start_matches(WIPED)) {
                    while !self.records.erase(&client).await? {}
                }
                self.workspaces.delete_all(&[mark]).await?;
                if Instant::now() >= until {
                    return Ok(false);
                }
            }
        }
        for client in erased_clients(&self.workspaces, coach).await? {
            self.clients.wipe_tombstone(&client, coach).await?;
        }
        Ok(true)
    }

    /// Takes a step with each client of a coach, until the time is over.
    async fn each_client(&self, coach: &CoachId, step: ClientStep, until: Instant) -> Result<bool, StoreError> {
        let mut after = None;
        loop {
            let request = ClientPageRequest {
                order: ListOrder::Newest,
                active_only: false,
                name: None,
                after: after.as_deref(),
                limit: CLIENT_PAGE,
            };
            let page = self.clients.page(coach, request).await?;
            for client in &page.items {
                match step {
                    ClientStep::Close => self.clients.close(&client.client_id, coach).await?,
                    ClientStep::Remove => self.clients.wipe(&client.client_id, coach).await?,
                }
                if Instant::now() >= until {
                    return Ok(false);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(true);
            }
        }
    }

    async fn remove_of_workspace(&self, coach: &CoachId, until: Instant) -> Result<bool, StoreError> {
        for prefix in OF_WORKSPACE {
            if !self.remove_partition(&self.workspaces, partition(coach), prefix, until).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn remove_deliveries(&self, coach: &CoachId, until: Instant) -> Result<bool, StoreError> {
        let present = self.endpoints.list_with_health(coach).await?;
        let table = self.deliveries.table();
        for endpoint in present {
            let pk = partition_of(&endpoint.endpoint.id);
            if !self.remove_partition(table, pk, "", until).await? {
                return Ok(false);
            }
        }
        loop {
            let deleted = self.keys_of(table, partition(coach), DELETED).await?;
            if deleted.is_empty() {
                break;
            }
            for key in deleted {
                if let Ok(endpoint) = EndpointId::parse(sk_of(&key).trim_start_matches(DELETED))
                    && !self.remove_partition(table, partition_of(&endpoint), "", until).await?
                {
                    return Ok(false);
                }
                table.delete_all(&[key]).await?;
            }
        }
        self.remove_partition(table, partition(coach), "", until).await
    }

    /// Removes the items of a partition whose sort keys begin with `prefix`. Returns false if the time is over.
    async fn remove_partition(
        &self,
        table: &Table,
        pk: String,
        prefix: &str,
        until: Instant,
    ) -> Result<bool, StoreError> {
        loop {
            let keys = self.keys_of(table, pk.clone(), prefix).await?;
            if keys.is_empty() {
                return Ok(true);
            }
            table.delete_all(&keys).await?;
            if Instant::now() >= until {
                return Ok(false);
            }
        }
    }

    /// Reads the keys of a page of a partition.
    async fn keys_of(&self, table: &Table, pk: String, prefix: &str) -> Result<Vec<Item>, StoreError> {
        let query = if prefix.is_empty() {
            table.query("pk = :pk", [(":pk", s(pk))])
        } else {
            table.query("pk = :pk AND begins_with(sk, :prefix)", [(":pk", s(pk)), (":prefix", s(prefix))])
        };
        let query = query.consistent_read(true).projection_expression("pk, sk");
        Ok(query_page(query).await?.items)
    }

    /// Removes all items of a table that fulfil a condition on `:value`.
    async fn remove_found(
        &self,
        table: &Table,
        condition: &str,
        value: String,
        until: Instant,
    ) -> Result<bool, StoreError> {
        let mut start = None;
        loop {
            let scan = table.db.client().scan().table_name(&table.name).projection_expression("pk");
            let scan = scan.filter_expression(condition).consistent_read(true);
            let scan = scan.expression_attribute_values(":value", s(&value)).set_exclusive_start_key(start);
            let page = scan.send_metered().await.map_err(|error| failed("Scan", error))?;
            table.delete_all(&page.items.unwrap_or_default()).await?;
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
        }
    }

    /// Reads the coaches none of whose keys was used or created since then, with the latest of these times.
    pub async fn unused(&self, since: Timestamp) -> Result<BTreeMap<CoachId, Timestamp>, StoreError> {
        let mut used: BTreeMap<CoachId, Timestamp> = BTreeMap::new();
        let mut start = None;
        loop {
            let scan = self.keys.db.client().scan().table_name(&self.keys.name);
            let scan = scan.filter_expression("begins_with(pk, :key)").expression_attribute_values(":key", s("KEY#"));
            let scan = scan.projection_expression("coach_id, created_at, last_used_at");
            let page =
                scan.set_exclusive_start_key(start).send_metered().await.map_err(|error| failed("Scan", error))?;
            for item in page.items.unwrap_or_default() {
                let Ok(coach) = CoachId::parse(text(&item, "coach_id")) else { continue };
                let created_at = Timestamp::parse(text(&item, "created_at"));
                let used_at = number(&item, "last_used_at").map(Timestamp::from_ms);
                if let Some(at) = created_at.max(used_at) {
                    let latest = used.entry(coach).or_insert(at);
                    *latest = at.max(*latest);
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                used.retain(|_, at| *at < since);
                return Ok(used);
            }
        }
    }
}
