//! Erasure of claims by the subject of their answers. A record loses its answer, stage and fingerprint, and refuses
//! repeats while its key is remembered: a late repeat would do the work again, and bring the person back.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::ClientId;
use domain::idempotency::RETENTION;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};

use super::{ClaimKey, ERASED, RecordedSubject, ends_s};
use crate::contact_ref::ContactRef;
use crate::db::{self, Db, ItemWrite, StoreError, Table, n, query_page, s, text};

/// The attributes that an erased record loses. Without an owner, no request under way writes the record.
const PERSONAL: [&str; 9] =
    ["owner", "lease_until", "fingerprint", "stage", "status", "body", "secret_until", "client_id", "contact_ref"];

/// The idempotency table, for erasure only.
#[derive(Clone)]
pub struct ClaimEraser {
    table: Table,
}

impl ClaimEraser {
    /// The table that `IDEMPOTENCY_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "IDEMPOTENCY_TABLE")? })
    }

    /// Finds at most `most` records with answers about a contact. The index may lag.
    pub async fn about(&self, contact: &ContactRef, most: i32) -> Result<Vec<ClaimKey>, StoreError> {
        let page = query_page(query_about(&self.table, contact).limit(most)).await?;
        Ok(page.items.iter().map(|item| ClaimKey(text(item, "pk").to_owned())).collect())
    }

    /// Erases a record about a contact. The record is remembered for as long as before.
    pub async fn erase(&self, key: &ClaimKey, contact: &ContactRef) -> Result<(), StoreError> {
        let (is_about, value) = about(&RecordedSubject::Contact(contact.clone()));
        // Refused: the record is deleted already, or another request has the key.
        self.erased(key).when(is_about, [(":about", value)]).update_now().await?;
        Ok(())
    }

    /// Erases the record of a client's creation. The creation is remembered for the whole time of a key, although an
    /// answer with a password may be gone by now.
    pub async fn erase_creation(
        &self,
        key: &ClaimKey,
        client: &ClientId,
        claimed_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (is_about, value) = about(&RecordedSubject::Client(client.clone()));
        let until = claimed_at + RETENTION;
        if until <= now {
            self.table.write(db::pk(&key.0)).when(is_about, [(":about", value)]).delete_now().await?;
            return Ok(());
        }
        let is_free = format!("{is_about} OR attribute_not_exists(pk) OR expires_at <= :now");
        let erased = self.erased(key).set("expires_at", n(ends_s(until)));
        erased.when(is_free, [(":about", value), (":now", n(now.unix_s()))]).update_now().await?;
        Ok(())
    }

    fn erased(&self, key: &ClaimKey) -> ItemWrite<'_> {
        self.table.write(db::pk(&key.0)).remove(PERSONAL).set(ERASED, AttributeValue::Bool(true))
    }
}

/// The query of the keys of the records about a contact.
pub(crate) fn query_about(table: &Table, contact: &ContactRef) -> QueryFluentBuilder {
    let query = table.query("contact_ref = :contact", [(":contact", s(contact.to_string()))]);
    query.index_name("by_contact").projection_expression("pk")
}

/// The condition that a record is about a subject.
fn about(subject: &RecordedSubject) -> (String, AttributeValue) {
    (format!("{} = :about", subject.attribute()), subject.value())
}
