//! Table `records`: a client's check-ins, daily log, doses and grades. pk `CLIENT#<client_id>`:
//! sk `CHECKIN#<id>`: a check-in. LSI `by_time`: `listed_at` (`<submitted_at>#<id>`), absent while unknown and once
//! deleted.
//! sk `GRADES`: the latest grade of each wellness system, sealed.
//! sk `LOGS#<yyyy>`: a year of the daily log: the set `logged` of month * 100 + day, and `d<mmdd>`: the time of a
//! date's last fact in ms, negative for a deletion.
//! sk `DOSES#<yyyy-mm>`, `DOSES#SCHEDULE`: module `doses`. sk `DOSES_WATCH`: module `watch`. sk `DOSELOG#<id>`: a log
//! of a dose, or its tombstone.
//! sk `SEEN#<event_id>`, `SEEN#MESSAGE#<message_id>`: the mark of an emitted event, kept for 30 days.
//! Doses are counted per month: 90 days are one query of a few hundred bytes. A dose log costs a transaction of three
//! items.
//! 1. `check_ins`, `logged_dates`, `doses` Query, newest first.
//! 2. `check_in`, `dose_log`, `dose_schedule` Reads. `put_check_in`, `put_grades`, `put_dose_log`, `put_dose_schedule`
//!    Parts of a transaction on the versions read. `mark_emitted` Part of a transaction.
//! 3. `save_date_now` UpdateItem, `delete_date` part of a transaction: unless a later fact has set the date.
//! 4. `erase` Query and BatchWriteItem of the partition.
//! 5. `history`, `items` Query of the partition: for operators.

mod check_in;
mod daily_log;
mod dose;
mod history;

use chrono::TimeDelta;
use domain::delivery::DELIVERY_RETENTION;
use domain::id::ClientId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};

use crate::client::Clients;
use crate::db::{self, Db, Item, Part, StoreError, Table, Write, n, query_page, s, sk_of};
pub use crate::doses::{Doses, StoredDoseSchedule};
use crate::fact::unless_alive;
use crate::vault::Vault;
use crate::watch::Watches;
pub(crate) use check_in::open_member;
pub use check_in::{FoundCheckIn, StoredCheckIn};
pub use dose::{FoundDoseLog, StoredDoseLog};

/// Prefix of the partition keys of clients.
const PARTITION: &str = "CLIENT#";
/// Retention of the marks of emitted events: as long as the events' deliveries are kept.
const SEEN_RETENTION: TimeDelta = DELIVERY_RETENTION;
/// Items per erasing call.
const MAX_ERASED: i32 = 1_000;

/// The records table, and the tables that its transactions include.
#[derive(Clone)]
pub struct Records {
    table: Table,
    vault: Vault,
    clients: Clients,
    watches: Watches,
}

/// The records table, for reading only.
#[derive(Clone)]
pub struct RecordReader {
    table: Table,
}

impl RecordReader {
    /// The table that `RECORDS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "RECORDS_TABLE")? })
    }
}

impl Records {
    /// The table that `RECORDS_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault, clients: &Clients) -> Result<Self, BoxError> {
        Ok(Self {
            table: Table::new(env, db, "RECORDS_TABLE")?,
            vault: vault.clone(),
            clients: clients.clone(),
            watches: Watches::new(env, db)?,
        })
    }

    /// Part of a transaction: the mark of an emitted event. Refused if the mark exists.
    pub fn mark_emitted(&self, client: &ClientId, what: &str, now: Timestamp) -> Write {
        let mut item = key(client, &format!("SEEN#{what}"));
        item.insert("expires_at".to_owned(), n((now + SEEN_RETENTION).unix_s()));
        unless_alive(self.table.write(item), now).put(Part::EmittedMark)
    }

    /// Deletes at most a thousand items of a client. Returns false if there are more.
    pub async fn erase(&self, client: &ClientId) -> Result<bool, StoreError> {
        let query = self.table.query("pk = :pk", [(":pk", s(partition(client)))]).consistent_read(true);
        let page = query_page(query.projection_expression("pk, sk").limit(MAX_ERASED)).await?;
        self.table.delete_all(&page.items).await?;
        Ok(page.next.is_none())
    }
}

fn partition(client: &ClientId) -> String {
    format!("{PARTITION}{client}")
}

fn key(client: &ClientId, sk: &str) -> Item {
    db::key(partition(client), sk)
}

/// Removes the item with that sort key from the items of one client that were read.
fn take_item(items: &mut Vec<Item>, sk: &str) -> Option<Item> {
    let index = items.iter().position(|item| sk_of(item) == sk);
    index.map(|index| items.swap_remove(index))
}
