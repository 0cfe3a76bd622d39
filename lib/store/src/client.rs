//! Table `clients`. pk `CLIENT#<client_id>`: the record, or a tombstone. pk `EMAIL#<compared form>`: the holders of an
//! address (module `address`), whose first holder has the address over the whole service. pk `INTAKE#<client_id>`: the
//! client's intake.
//! GSI `by_owner`: `owner` (coach), `listed_at` (`<created_at>#<client_id>`). GSI `active`: `active_owner`,
//! `listed_at`; active clients only.
//!
//! 1. `get` GetItem, consistent, by id alone: callers check the owner.
//! 2. `page` Query of `by_owner` or `active`, newest first. This is the only list on a global index: 20,000 clients
//!    need it.
//! 3. `with_email` GetItem of the address, then BatchGetItem of its holders: finds a new client that the index lacks.
//! 4. `create` Parts of a transaction: address, record, watch, intake, seats under both caps, lead.
//! 5. `set_active` Parts of a transaction on the version read: record, watch, counts.
//! 6. `save` Reads, then a transaction on the versions read: record, watch, address, seats and counts, outbox.
//! 7. `erase` Read, then a transaction: only a tombstone stays, which later facts find.

mod create;
mod erase;
mod feed;
mod item;
mod lookup;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use domain::change::Change;
use domain::client::{Client, ClientListItem, Phase};
use domain::email::{Email, EmailKey};
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use runtime::{BoxError, Environment};

pub use create::NewClient;
pub use erase::ErasedClient;
pub(crate) use item::ClientState;
pub use item::{CreationRefs, StoredClient, list_position};
pub use lookup::{ClientLookup, ClientPage};

use crate::address::{Address, Holders};
use crate::contact::Contacts;
use crate::db::{self, Db, ItemWrite, Part, StoreError, Table, Write, from_item, query_up_to, s, to_attribute};
use crate::page::Listed;
use crate::unit::Unit;
use crate::watch::{DueMark, WatchUpdate, Watches};
use crate::workspace::Workspaces;
use item::{client_pk, listed_at, page_start};
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

    /// Part of a transaction: checks that the client is as it was read.
    fn check_unchanged(&self, found: &StoredClient) -> Write {
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
        let (mut client, mut registers) = (found.client.clone(), found.registers);
        let entered = Phase { current: Some(phase.to_owned()), started_on: Some(started_on), ..client.phase.clone() };
        if !registers.phase.offer(&mut client.phase, entered, occurred_at) {
            return (self.check_unchanged(found), client);
        }
        let update = self
            .update_of(found)
            .set("current_phase", s(phase))
            .set("phase_started_on", s(started_on.to_string()))
            .set("registers.phase", to_attribute(&registers.phase));
        (update.update(Part::Client), client)
    }

    /// An update on condition that the client is as it was read.
    fn update_of(&self, found: &StoredClient) -> ItemWrite<'_> {
        self.table.write(db::pk(client_pk(&found.client.id))).when_version(Some(found.version)).count("version")
    }

    /// Reads a page of a coach's clients, newest first. `after` is an earlier page's `next`.
    pub async fn page(
        &self,
        coach: &CoachId,
        active_only: bool,
        after: Option<&str>,
        limit: u32,
    ) -> Result<ClientPage<ClientListItem>, StoreError> {
        let (index, partition) = if active_only { ("active", "active_owner") } else { ("by_owner", "owner") };
        // One item more than asked for shows whether there is a next page.
        let wanted = limit + 1;
        let query = self.table.query(&format!("#{partition} = :coach"), [(":coach", s(coach.as_str()))]);
        let query = query
            .index_name(index)
            .scan_index_forward(false)
            .limit(i32::try_from(wanted).unwrap_or(i32::MAX))
            .set_exclusive_start_key(after.map(|listed_at| page_start(coach, partition, listed_at)));
        let Listed { records: items, more } = Listed::new(query_up_to(query, wanted as usize).await?, limit);
        let next = items.last().filter(|_| more).map(listed_at);
        let items = items.into_iter().map(item::list_item).collect::<Result<Vec<_>, _>>()?;
        Ok(ClientPage { items, next })
    }

    /// Reads all clients with that address, of all coaches, newest first.
    pub async fn with_email(&self, email: &Email) -> Result<Vec<Client>, StoreError> {
        let Some(holders) = self.holders(&email.key()).await? else { return Ok(Vec::new()) };
        let keys = holders.all().map(|id| db::pk(client_pk(id))).collect();
        let mut clients = Vec::new();
        for item in self.table.read(keys).await?.into_iter().filter(|item| !is_tombstone(item)) {
            let client = from_item::<StoredClient>("client", item)?.client;
            let has_it = client.profile.email.as_ref().is_some_and(|own| own.key() == email.key());
            clients.extend(has_it.then_some(client));
        }
        clients.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        Ok(clients)
    }

    /// Sets the active flag of a client. Setting the flag to its present value counts as a write at its own time: an
    /// older fact that arrives later no longer changes the flag. The change is published if the application had set
    /// that value.
    pub fn set_active(&self, found: &StoredClient, is_active: bool, now: Timestamp) -> (Client, Unit) {
        let (mut client, mut registers) = (found.client.clone(), found.registers);
        let set_at = now.after(registers.last_write());
        let confirms = registers.is_active.set(&mut client.is_active, is_active, set_at);
        let is_new = found.client.is_active != is_active;
        let change = (is_new || confirms).then(|| Change::activation_changed(&client, set_at));
        let unit = Unit::new().change(change);
        let update = self.update_of(found).set("registers.is_active", to_attribute(&registers.is_active));
        if !is_new {
            return (client, unit.write([update.update(Part::Client)]));
        }
        let update = update.set("is_active", AttributeValue::Bool(is_active));
        let update = match is_active {
            true => update.set("active_owner", s(client.coach_id.as_str())),
            false => update.remove(["active_owner"]).count("login_epoch"),
        };
        let counted = self.workspaces.count_active(&client.coach_id, if is_active { 1 } else { -1 });
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

    /// Part of a transaction: removes the client from the holders of an address.
    async fn leave_address(&self, email: &EmailKey, id: &ClientId) -> Result<Option<Write>, StoreError> {
        Ok(self.address(email).leave(self.holders(email).await?.as_ref(), id.as_str()))
    }

    fn address(&self, email: &EmailKey) -> Address<'_> {
        Address { table: &self.table, key: db::pk(email_pk(email)) }
    }
}

fn email_pk(email: &EmailKey) -> String {
    format!("EMAIL#{}", email.as_str())
}
