//! Table `crm`, contacts. pk `COACH#<coach_id>`, sk `CONTACT#<uuid>`: the record. sk `EMAIL#<lower-cased>` and `PHONE#<E.164>`: who has
//! the address (module `held_by`).
//!
//! 1. `find_lead` BatchGetItem of the addresses, then BatchGetItem of the contact: who a new client has been so far.
//! 2. `link`      Part of a client's creation: the contact becomes that client.
//! 3. `erasure`   Read, then parts of a client's erasure: the contact that the client was.
//! 4. `save`      Read, then a transaction on the version read: the record and its addresses.

use aws_sdk_dynamodb::types::{Delete, Put, TransactWriteItem, Update};
use domain::contact::Contact;
use domain::email::{Email, EmailKey};
use domain::fact::ContactSaved;
use domain::id::{ClientId, CoachId, ContactId};
use domain::phone::{Country, PhoneKey};
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{Db, Item, StoreError, Transacted, deleting, from_item, n, putting, s, stand_back, to_item, updating};
use crate::held_by::{Address, Holders};
use crate::workspace::partition;

const MAX_ROUNDS: u32 = 10;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    pk: String,
    sk: String,
    #[serde(flatten)]
    contact: Contact,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phone_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merged_into: Option<ContactId>,
    saved_at: i64,
    version: u64,
}

impl Record {
    /// Sort keys of its e-mail's and its phone's items.
    fn addresses(&self) -> [Option<String>; 2] {
        let email = self.contact.email.as_ref().map(|email| email_sk(email.key().as_str()));
        [email, self.phone_key.as_deref().map(phone_sk)]
    }
}

/// A contact as stored.
#[derive(Debug, Clone)]
pub struct StoredContact {
    pub contact: Contact,
    version: u64,
}

/// The contact that a client was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lead {
    pub coach_id: CoachId,
    pub contact_id: ContactId,
}

/// The contacts in the CRM table.
#[derive(Clone)]
pub struct Contacts {
    db: Db,
    table: String,
}

impl Contacts {
    /// The table that `CRM_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("CRM_TABLE")?.to_owned() })
    }

    /// The contact that a new client with this e-mail and phone has been so far: by e-mail, else by phone. A contact that has become
    /// another client, or was merged away, is nobody's lead.
    pub async fn find_lead(
        &self,
        coach: &CoachId,
        email: &EmailKey,
        phone: Option<&PhoneKey>,
    ) -> Result<Option<StoredContact>, StoreError> {
        let email_sk = email_sk(email.as_str());
        let phone_sk = phone.map(|phone| phone_sk(phone.as_str()));
        let wanted = std::iter::once(email_sk.clone()).chain(phone_sk).collect();
        let mut found = self.read(coach, wanted).await?;
        let by_email = found.iter().position(|item| sk_of(item) == email_sk);
        let Some(address) = by_email.or(if found.is_empty() { None } else { Some(0) }) else { return Ok(None) };
        let holders = Holders::from_item(found.swap_remove(address))?;
        let contacts = self.read(coach, holders.all().map(|id| format!("CONTACT#{id}")).collect()).await?;
        let mut records =
            contacts.into_iter().map(|item| from_item("contact", item)).collect::<Result<Vec<Record>, _>>()?;
        records.sort_by_key(|record| record.contact.id);
        let free =
            records.into_iter().find(|record| record.merged_into.is_none() && record.contact.client_id.is_none());
        Ok(free.map(|record| StoredContact { version: record.version, contact: record.contact }))
    }

    /// The contact as it was read becomes the client. Nothing else of it changes.
    pub(crate) fn link(
        &self,
        coach: &CoachId,
        found: &StoredContact,
        client: &ClientId,
        now: Timestamp,
    ) -> TransactWriteItem {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(coach, &format!("CONTACT#{}", found.contact.id))))
            .update_expression("SET clientId = :client, updatedAt = :now ADD version :one")
            .condition_expression("version = :version")
            .expression_attribute_values(":client", s(client.as_str()))
            .expression_attribute_values(":version", n(found.version))
            .expression_attribute_values(":now", s(now.to_string()))
            .expression_attribute_values(":one", n(1));
        updating(update)
    }

    /// Parts of a client's erasure: the contact that the client was goes, with its addresses. One that is no longer this client's stays.
    pub(crate) async fn erasure(&self, lead: &Lead, client: &ClientId) -> Result<Vec<TransactWriteItem>, StoreError> {
        let own_sk = format!("CONTACT#{}", lead.contact_id);
        let Some(item) = self.read(&lead.coach_id, vec![own_sk.clone()]).await?.pop() else { return Ok(Vec::new()) };
        let record: Record = from_item("contact", item)?;
        if record.contact.client_id.as_ref() != Some(client) {
            return Ok(Vec::new());
        }
        let delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(key(&lead.coach_id, &own_sk)))
            .condition_expression("version = :version")
            .expression_attribute_values(":version", n(record.version));
        let addresses = record.addresses().map(|address| (address, None));
        let mut writes = vec![deleting(delete)];
        writes.extend(self.move_addresses(&lead.coach_id, &lead.contact_id.to_string(), &addresses).await?);
        Ok(writes)
    }

    /// Stores a contact as the application has it, unless a newer state is stored.
    pub async fn save(
        &self,
        saved: &ContactSaved,
        country: Country,
        at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let new_email = saved.email.as_ref().map(Email::key);
        let new_phone = saved.phone.as_ref().and_then(|phone| phone.key(country));
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let own_sk = format!("CONTACT#{}", saved.contact_id);
            let found = self.read(&saved.coach_id, vec![own_sk.clone()]).await?.pop();
            let found: Option<Record> = found.map(|item| from_item("contact", item)).transpose()?;
            if found.as_ref().is_some_and(|found| found.saved_at > at.ms()) {
                return Ok(());
            }
            let contact = Contact {
                id: saved.contact_id,
                name: saved.name.clone(),
                email: saved.email.clone(),
                phone: saved.phone.clone(),
                do_not_contact: saved.do_not_contact,
                marketing: saved.marketing,
                client_id: found.as_ref().and_then(|found| found.contact.client_id.clone()),
                created_at: found.as_ref().map_or(now, |found| found.contact.created_at),
                updated_at: now,
            };
            let record = Record {
                pk: partition(&saved.coach_id),
                sk: own_sk,
                contact,
                phone_key: new_phone.as_ref().map(|key| key.as_str().to_owned()),
                merged_into: found.as_ref().and_then(|found| found.merged_into),
                saved_at: at.ms(),
                version: found.as_ref().map_or(1, |found| found.version + 1),
            };
            let mut writes = vec![self.put(&record, found.as_ref().map(|found| found.version))];
            let [old_email, old_phone] = found.as_ref().map(Record::addresses).unwrap_or_default();
            let moves = [
                (old_email, new_email.as_ref().map(|key| email_sk(key.as_str()))),
                (old_phone, new_phone.as_ref().map(|key| phone_sk(key.as_str()))),
            ];
            writes.extend(self.move_addresses(&saved.coach_id, &saved.contact_id.to_string(), &moves).await?);
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable { operation: "TransactWriteItems", source: "the contact kept changing".into() })
    }

    fn put(&self, record: &Record, version: Option<u64>) -> TransactWriteItem {
        let put = Put::builder().table_name(&self.table).set_item(Some(to_item(record)));
        let put = match version {
            None => put.condition_expression("attribute_not_exists(pk)"),
            Some(version) => {
                put.condition_expression("version = :version").expression_attribute_values(":version", n(version))
            }
        };
        putting(put)
    }

    /// Writes that take a contact from its old addresses to its new ones.
    async fn move_addresses(
        &self,
        coach: &CoachId,
        id: &str,
        moves: &[(Option<String>, Option<String>)],
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let wanted = moves.iter().filter(|(old, new)| old != new).flat_map(|(old, new)| old.iter().chain(new)).cloned();
        let wanted: Vec<String> = wanted.collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let items = self.read(coach, wanted).await?;
        let holders_of = |sk: &str| -> Result<Option<Holders>, StoreError> {
            items.iter().find(|item| sk_of(item) == sk).cloned().map(Holders::from_item).transpose()
        };
        let mut writes = Vec::new();
        for (old, new) in moves.iter().filter(|(old, new)| old != new) {
            if let Some(old) = old {
                let address = Address { table: &self.table, key: key(coach, old) };
                writes.extend(address.leave(holders_of(old)?.as_ref(), id));
            }
            if let Some(new) = new {
                let address = Address { table: &self.table, key: key(coach, new) };
                writes.extend(address.join(holders_of(new)?.as_ref(), id));
            }
        }
        Ok(writes)
    }

    /// Items of the coach's partition, in no order.
    async fn read(&self, coach: &CoachId, sks: Vec<String>) -> Result<Vec<Item>, StoreError> {
        self.db.read(&self.table, sks.iter().map(|sk| key(coach, sk)).collect()).await
    }
}

fn email_sk(email: &str) -> String {
    format!("EMAIL#{email}")
}

fn phone_sk(phone: &str) -> String {
    format!("PHONE#{phone}")
}

fn key(coach: &CoachId, sk: &str) -> Item {
    Item::from([("pk".to_owned(), s(partition(coach))), ("sk".to_owned(), s(sk))])
}

fn sk_of(item: &Item) -> &str {
    item.get("sk").and_then(|sk| sk.as_s().ok()).map_or("", String::as_str)
}
