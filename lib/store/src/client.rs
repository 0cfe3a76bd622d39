//! Table `clients`. pk `CLIENT#<client_id>`: the record, or a tombstone. pk `EMAIL#<compared form>`: the holders of an
//! address (module `address`), whose first holder has the address over the whole service. pk `INTAKE#<client_id>`: the
//! client's intake. pk `EXTERNAL_ID#<coach>#<external id>`: the lock of an external id (module `external_id`).
//! GSI `by_owner`: `owner` (coach), `listed_at` (`<created_at>#<client_id>`). GSI `active`: `active_owner`,
//! `listed_at`; active clients only. GSI `by_update`: `owner`, `update_position` (`<updated_at>#<client_id>`).
//! All three project what a list shows. A creation writes three entries, 1 unit each. An update moves the entry of
//! `by_update`, 2 units, and rewrites the two others, 1 unit each. Check-ins and logs write none.
//!
//! 1. `get` GetItem, consistent, by id alone: callers check the owner.
//! 2. `page` Query of `by_owner` or `active`, newest first, or of `by_update`, oldest first; with a name up to four.
//!    These are the only lists on global indexes: 20,000 clients need them.
//! 3. `with_email` GetItem of the address, then BatchGetItem of its holders: finds a new client that the index lacks.
//!    `with_external_id` GetItem of the lock, then of its holder.
//! 4. `create` Parts of a transaction: address, external id, record, watch, intake, seats under both caps, lead.
//! 5. `update` Parts of a transaction on the version read: record, external id, watch, counts.
//! 6. `put`, `move_seats`, `move_address`, `set_phase`, `set_latest_check_in` Parts of a fact's transaction on the
//!    version read. `move_address` reads the holders of the addresses.
//! 7. `erase` Read, then a transaction: only a tombstone stays, which later facts find.
//! 8. `StoredClient::keys` The items about a client, for operators.

mod create;
mod erase;
mod external_id;
mod item;
mod keys;
mod list;
mod lookup;
mod seats;
mod wipe;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use domain::change::Change;
use domain::client::{Client, Phase};
use domain::client_draft::ClientPatch;
use domain::email::{Email, EmailKey};
use domain::fact_time::FactTime;
use domain::id::ClientId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};

pub use create::NewClient;
pub use erase::ErasedClient;
pub use item::{ClientState, CreationRefs, StoredClient};
pub use list::{ClientPageRequest, ListOrder};
pub use lookup::{ClientLookup, ClientPage};
pub use seats::Seats;
pub(crate) use wipe::WIPED;

use crate::contact::Contacts;
use crate::db::{self, Db, ItemWrite, Part, StoreError, Table, Write, from_item, s, to_attribute, to_item};
use crate::holders::{Address, Holders};
use crate::unit::Unit;
use crate::watch::{DueMark, WatchUpdate, Watches};
use crate::workspace::Workspaces;
use item::{client_pk, update_position};
use lookup::is_tombstone;

/// The clients table, and the tables that its transactions include.
#[derive(Clone)]
pub struct Clients {
    table: Table,
    pub(crate) lookup: ClientLookup,
    pub(crate) workspaces: Workspaces,
    contacts: Contacts,
    watches: Watches,
}

impl Clients {
    /// The table that `CLIENTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db, workspaces: &Workspaces, contacts: &Contacts) -> Result<Self, BoxError> {
        Ok(Self {
            table: Table::new(env, db, "CLIENTS_TABLE")?,
            lookup: ClientLookup::new(env, db)?,
            workspaces: workspaces.clone(),
            contacts: contacts.clone(),
            watches: Watches::new(env, db)?,
        })
    }

    /// Reads the client with that id, of any coach.
    pub async fn get(&self, id: &ClientId) -> Result<Option<StoredClient>, StoreError> {
        self.lookup.get(id).await
    }

    /// Reads the state of a client.
    pub async fn state(&self, id: &ClientId) -> Result<ClientState, StoreError> {
        self.lookup.state(id).await
    }

    /// Part of a transaction: checks that the client is not erased.
    pub fn check_not_erased(&self, id: &ClientId) -> Write {
        self.lookup.check_not_erased(id)
    }

    /// Parts of a transaction: store the next state of a client, with the lock of its external id.
    pub fn put(&self, next: &StoredClient, found: Option<&StoredClient>) -> Vec<Write> {
        let put = self.table.write(to_item(next)).when_version(found.map(|found| found.version));
        let moved = self.move_external_id(found.map(|found| &found.client), Some(&next.client));
        std::iter::once(put.put(Part::Client)).chain(moved).collect()
    }

    /// Part of a transaction: checks that the client is as it was read.
    fn check_unchanged(&self, found: &StoredClient) -> Write {
        let client = self.table.write(db::pk(client_pk(&found.client.id)));
        client.when_version(Some(found.version)).check(Part::Client)
    }

    /// Part of a transaction: sets the time of the latest check-in, if the client is as it was read. The version rises
    /// in any case: a concurrent search for the latest check-in has not seen the present change.
    pub fn set_latest_check_in(&self, found: &StoredClient, latest: Option<Timestamp>) -> Write {
        let latest = latest.map(|latest| s(latest.to_string()));
        self.update_of(found).set_or_remove("latest_check_in_at", latest).update(Part::Client)
    }

    /// Part of a transaction: sets the phase, if the client is as it was read, unless the stored phase is newer. Also
    /// returns the changed client.
    pub fn set_phase(
        &self,
        found: &StoredClient,
        phase: &str,
        started_on: NaiveDate,
        occurred_at: FactTime,
        now: Timestamp,
    ) -> (Write, Client) {
        let (mut client, mut registers) = (found.client.clone(), found.registers);
        let entered = Phase { current: Some(phase.to_owned()), started_on: Some(started_on), ..client.phase.clone() };
        if !registers.phase.offer(&mut client.phase, entered, occurred_at) {
            return (self.check_unchanged(found), client);
        }
        client.mark_update(&found.client, now);
        let update = set_updated(self.update_of(found), &client)
            .set("current_phase", s(phase))
            .set("phase_started_on", s(started_on.to_string()))
            .set("registers.phase", to_attribute(&registers.phase));
        (update.update(Part::Client), client)
    }

    /// An update on condition that the client is as it was read.
    fn update_of(&self, found: &StoredClient) -> ItemWrite<'_> {
        self.table.write(db::pk(client_pk(&found.client.id))).when_version(Some(found.version)).count("version")
    }

    /// Reads all clients with that address, of all coaches, in no order.
    pub async fn with_email(&self, email: &Email) -> Result<Vec<Client>, StoreError> {
        let Some(holders) = self.holders(&email.key()).await? else { return Ok(Vec::new()) };
        let keys = holders.all().map(|id| db::pk(client_pk(id))).collect();
        let mut clients = Vec::new();
        for item in self.table.read(keys).await?.into_iter().filter(|item| !is_tombstone(item)) {
            let client = from_item::<StoredClient>("client", item)?.client;
            let has_it = client.profile.email.as_ref().is_some_and(|own| own.key() == email.key());
            clients.extend(has_it.then_some(client));
        }
        Ok(clients)
    }

    /// Changes a client through the API. Setting the flag to its present value counts as a write at its own time: an
    /// older fact that arrives later no longer changes the flag. The change is published if the record is shown
    /// otherwise from now on, or if the application had set the flag.
    pub fn update(&self, found: &StoredClient, patch: &ClientPatch, now: Timestamp) -> (Client, Unit) {
        let (mut client, mut registers) = (found.client.clone(), found.registers);
        let set_at = now.after(registers.last_write());
        let confirms = registers.is_active.set(&mut client.is_active, patch.is_active, set_at);
        if let Some(external_id) = &patch.external_id {
            client.profile.external_id.clone_from(external_id);
        }
        client.mark_update(&found.client, now);
        let is_new = client != found.client;
        let change = (is_new || confirms).then(|| Change::activation_changed(&client, set_at));
        let unit = Unit::new().change(change);
        let update = self.update_of(found).set("registers.is_active", to_attribute(&registers.is_active));
        if !is_new {
            return (client, unit.write([update.update(Part::Client)]));
        }
        let external_id = client.profile.external_id.as_ref();
        let update = set_updated(update, &client)
            .set("is_active", AttributeValue::Bool(client.is_active))
            .set_or_remove("active_owner", client.is_active.then(|| s(client.coach_id.as_str())))
            .set_or_remove("external_id", external_id.map(|id| s(id.as_str())));
        let unit = unit.write(self.move_external_id(Some(&found.client), Some(&client)));
        if client.is_active == found.client.is_active {
            return (client, unit.write([update.update(Part::Client)]));
        }
        let update = if client.is_active { update } else { update.count("login_epoch") };
        let counted = self.workspaces.count_active(&client.coach_id, if client.is_active { 1 } else { -1 });
        let mark = DueMark { now, silent: false };
        let watch = WatchUpdate::between(&found.client, &client);
        let watch = watch.map(|change| self.watches.change(&client.id, change, mark));
        let unit = unit.write([update.update(Part::Client), counted]).write(watch);
        (client, unit)
    }

    /// Creates the missing watch of a client, whose transactions are refused. A restore of the table to an earlier time
    /// can lose it.
    pub async fn restore_watch(&self, id: &ClientId, now: Timestamp) -> Result<(), StoreError> {
        if let Some(found) = self.get(id).await? {
            let writes = [self.watches.create_missing(&found.client, now), self.check_unchanged(&found)];
            self.table.db.transact(&writes).await?;
        }
        Ok(())
    }

    async fn holders(&self, email: &EmailKey) -> Result<Option<Holders>, StoreError> {
        self.table.item(db::pk(email_pk(email))).await?.map(Holders::from_item).transpose()
    }

    /// Parts of a transaction: move a client from the address that it had to another. Reads the holders of both.
    pub async fn move_address(
        &self,
        id: &ClientId,
        old: Option<&Email>,
        new: Option<&Email>,
    ) -> Result<Vec<Write>, StoreError> {
        let (old, new) = (old.map(Email::key), new.map(Email::key));
        let mut writes = Vec::new();
        if old == new {
            return Ok(writes);
        }
        if let Some(old) = old {
            writes.extend(self.leave_address(&old, id).await?);
        }
        if let Some(new) = new {
            writes.extend(self.address(&new).join(self.holders(&new).await?.as_ref(), id.as_str()));
        }
        Ok(writes)
    }

    /// Part of a transaction: removes the client from the holders of an address.
    async fn leave_address(&self, email: &EmailKey, id: &ClientId) -> Result<Option<Write>, StoreError> {
        Ok(self.address(email).leave(self.holders(email).await?.as_ref(), id.as_str()))
    }

    fn address(&self, email: &EmailKey) -> Address<'_> {
        Address { table: &self.table, key: db::pk(email_pk(email)) }
    }
}

/// Sets the time of a client's update, and the client's position in the list of updates.
fn set_updated<'a>(update: ItemWrite<'a>, client: &Client) -> ItemWrite<'a> {
    update.set("updated_at", s(client.updated_at.to_string())).set("update_position", s(update_position(client)))
}

fn email_pk(email: &EmailKey) -> String {
    format!("EMAIL#{}", email.as_str())
}
