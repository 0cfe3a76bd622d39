//! Table `login-links`: one item per link, used or not, until it expires. pk `LINK#<sha256>`, of the token.
//!
//! 1. `put` PutItem of a new link.
//! 2. `get` GetItem, consistent.
//! 3. `use_up` Transaction: marks an unused, unexpired link as used, and checks that its client is as it was when the
//!    link was created. Of any number of attempts one succeeds.

use domain::id::{ClientId, CoachId};
use domain::login_link::{LoginGrant, LoginToken};
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::client::ClientLookup;
use crate::db::{self, Db, Item, Part, StoreError, Table, n, to_item};

#[derive(Serialize, Deserialize)]
struct LoginLinkItem {
    pk: String,
    client_id: ClientId,
    coach_id: CoachId,
    login_epoch: u64,
    /// Milliseconds.
    valid_until: i64,
    /// Milliseconds.
    used_at: Option<i64>,
    /// Seconds: the TTL attribute.
    expires_at: i64,
}

/// A link that was created. It may have expired, and its client may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedLink {
    pub grant: LoginGrant,
    pub is_used: bool,
}

/// The table of login links.
#[derive(Clone)]
pub struct LoginLinks {
    table: Table,
    clients: ClientLookup,
}

impl LoginLinks {
    /// The table that `LOGIN_LINKS_TABLE` names.
    pub fn new(env: &Environment, db: &Db, clients: &ClientLookup) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "LOGIN_LINKS_TABLE")?, clients: clients.clone() })
    }

    /// Stores a new link.
    pub async fn put(&self, token: &LoginToken, grant: &LoginGrant) -> Result<(), StoreError> {
        let item = to_item(&LoginLinkItem {
            pk: pk(token),
            client_id: grant.client_id.clone(),
            coach_id: grant.coach_id.clone(),
            login_epoch: grant.login_epoch,
            valid_until: grant.valid_until.ms(),
            used_at: None,
            expires_at: grant.valid_until.unix_s() + 1,
        });
        // No other request draws the same 256 bits: a refused put is the SDK's repeat of a put whose answer was lost.
        self.table.write(item).when_absent().put_now().await?;
        Ok(())
    }

    /// Reads a link.
    pub async fn get(&self, token: &LoginToken) -> Result<Option<CreatedLink>, StoreError> {
        let found: Option<LoginLinkItem> = self.table.get("login link", key(token)).await?;
        Ok(found.map(|record| CreatedLink {
            grant: LoginGrant {
                client_id: record.client_id,
                coach_id: record.coach_id,
                login_epoch: record.login_epoch,
                valid_until: Timestamp::from_ms(record.valid_until),
            },
            is_used: record.used_at.is_some(),
        }))
    }

    /// Uses a link. Returns false if the link was used before, has expired, or no longer matches its client.
    pub async fn use_up(&self, token: &LoginToken, grant: &LoginGrant, now: Timestamp) -> Result<bool, StoreError> {
        let used = self.table.write(key(token)).set("used_at", n(now.ms())).when_present();
        let used = used.when("attribute_not_exists(used_at) AND valid_until > :used_at", []);
        let writes = [used.update(Part::LoginLink), self.clients.check_grant(grant)];
        Ok(self.table.db.transact(&writes).await?.is_done())
    }
}

fn pk(token: &LoginToken) -> String {
    format!("LINK#{}", token.sha256())
}

fn key(token: &LoginToken) -> Item {
    db::pk(pk(token))
}
