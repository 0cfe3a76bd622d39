//! Table `workspaces`, the mails of a sandbox, which are stored instead of sent. Kept for 7 days.
//! pk `COACH#<coach_id>`, sk `MAIL#<time>#<digits>`: `sealed`, the mail.
//!
//! 1. `put` PutItem.
//! 2. `page` Query, consistent, newest first.
//! 3. `items` Query, consistent, for operators.

use domain::id::CoachId;
use domain::sandbox::{MAIL_RETENTION, StoredMail};
use domain::time::Timestamp;
use runtime::{BoxError, Environment, random_bytes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::db::{Db, Item, StoreError, Table, from_item, number, query_all, query_up_to, s, sk_of, text, to_item};
use crate::vault::Vault;
use crate::workspace::{key_of, partition};

pub(crate) const PREFIX: &str = "MAIL#";
const ENTITY: &str = "mail";

#[derive(Serialize, Deserialize)]
struct MailItem {
    pk: String,
    sk: String,
    #[serde(with = "crate::binary")]
    sealed: Vec<u8>,
    /// Seconds: the TTL attribute.
    expires_at: i64,
}

/// A page of mails.
pub struct MailPage {
    pub data: Vec<StoredMail>,
    /// The position after the page; `None` at the end.
    pub next: Option<String>,
}

/// The stored mails.
#[derive(Clone)]
pub struct StoredMails {
    table: Table,
    vault: Vault,
}

impl StoredMails {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "WORKSPACES_TABLE")?, vault: vault.clone() })
    }

    /// Stores a mail of a coach's workspace.
    pub async fn put(&self, coach: &CoachId, mail: &StoredMail) -> Result<(), StoreError> {
        let (pk, sk) = (partition(coach), format!("{PREFIX}{}#{}", mail.sent_at, hex::encode(random_bytes::<8>())));
        let sealed = self.vault.seal_json(&context(&pk, &sk), mail);
        let item = MailItem { pk, sk, sealed, expires_at: (mail.sent_at + MAIL_RETENTION).unix_s() };
        self.table.write(to_item(&item)).put_now().await.map(drop)
    }

    /// Reads a page of a workspace's mails after a position, newest first.
    pub async fn page(
        &self,
        coach: &CoachId,
        after: Option<&str>,
        limit: usize,
        now: Timestamp,
    ) -> Result<MailPage, StoreError> {
        let values = [(":pk", s(partition(coach))), (":prefix", s(PREFIX))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :prefix)", values).consistent_read(true);
        let query = query
            .scan_index_forward(false)
            .limit(i32::try_from(limit + 1).unwrap_or(i32::MAX))
            .set_exclusive_start_key(after.map(|after| key_of(coach, &format!("{PREFIX}{after}"))));
        let mut items = query_up_to(query, limit + 1).await?;
        // TTL deletes late.
        items.retain(|item| number(item, "expires_at").is_some_and(|expires_at: i64| expires_at > now.unix_s()));
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(|last| sk_of(last).replacen(PREFIX, "", 1));
        let mails = items.into_iter().map(|item| {
            let MailItem { pk, sk, sealed, .. } = from_item(ENTITY, item)?;
            self.vault.unseal_json(ENTITY, &context(&pk, &sk), &sealed)
        });
        Ok(MailPage { data: mails.collect::<Result<_, _>>()?, next })
    }
}

/// Opens a mail, without its text, which may hold a password and a link.
pub(crate) fn open_member(vault: &Vault, item: &Item, _: &str, sealed: &[u8]) -> Result<Option<Value>, StoreError> {
    let context = context(text(item, "pk"), sk_of(item));
    let StoredMail { to, subject, sent_at, .. } = vault.unseal_json(ENTITY, &context, sealed)?;
    Ok(Some(json!({ "to": to, "subject": subject, "sent_at": sent_at })))
}

/// Reads the items of a workspace's mails.
pub(crate) async fn items(table: &Table, coach: &CoachId) -> Result<Vec<Item>, StoreError> {
    let values = [(":pk", s(partition(coach))), (":prefix", s(PREFIX))];
    query_all(table.query("pk = :pk AND begins_with(sk, :prefix)", values).consistent_read(true)).await
}

fn context(pk: &str, sk: &str) -> String {
    format!("workspaces/{pk}/{sk}")
}
