//! The state that the operations share.

use domain::rate_limit::seconds_to_midnight;
use edge::{KeyHolder, Problem};
use evaluation::Evaluator;
use facts::{FactStore, FeedQueue};
use outbound::wipe::WipeQueue;
use runtime::{BoxError, Environment};
use store::Db;
use store::client::ClientLookup;
use store::contact::Contacts;
use store::endpoint::Endpoints;
use store::first_contents::FirstContentsWriter;
use store::key::Keys;
use store::sandbox_quota::SandboxCount;
use store::stored_mail::StoredMails;
use store::unit::Units;
use store::vault::Vault;
use store::watch::Watches;
use store::workspace::{StoredWorkspace, Workspaces};

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) facts: FactStore,
    pub(crate) feed: FeedQueue,
    pub(crate) evaluator: Evaluator,
    pub(crate) clients: ClientLookup,
    pub(crate) contacts: Contacts,
    pub(crate) contents: FirstContentsWriter,
    pub(crate) endpoints: Endpoints,
    pub(crate) keys: Keys,
    pub(crate) mails: StoredMails,
    pub(crate) units: Units,
    pub(crate) watches: Watches,
    pub(crate) wipes: WipeQueue,
    pub(crate) workspaces: Workspaces,
}

impl App {
    /// Connects to everything that the operations use.
    pub(crate) fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self {
            facts: FactStore::new(env, db, vault)?,
            feed: FeedQueue::new(env)?,
            evaluator: Evaluator::new(env, db, vault)?,
            clients: ClientLookup::new(env, db)?,
            contacts: Contacts::new(env, db)?,
            contents: FirstContentsWriter::new(env, db)?,
            endpoints: Endpoints::new(env, db, vault)?,
            keys: Keys::new(env, db)?,
            mails: StoredMails::new(env, db, vault)?,
            units: Units::new(env, db, vault)?,
            watches: Watches::new(env, db)?,
            wipes: WipeQueue::new(env, db)?,
            workspaces: Workspaces::new(env, db)?,
        })
    }

    /// Counts facts or events against the workspace's day, or refuses them.
    pub(crate) async fn count(
        &self,
        caller: &KeyHolder,
        count: SandboxCount,
        number: usize,
        limit: u32,
    ) -> Result<(), Problem> {
        let (coach, now) = (&caller.key.coach_id, caller.now);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        if self.workspaces.count_in_sandbox(coach, count, number, limit, now).await? {
            return Ok(());
        }
        let things = match count {
            SandboxCount::Facts => "facts",
            SandboxCount::Events => "events",
        };
        Err(Problem::TestQuota { things, limit, retry_after_s: seconds_to_midnight(now) })
    }

    /// Reads the workspace of the caller's key.
    pub(crate) async fn workspace(&self, caller: &KeyHolder) -> Result<StoredWorkspace, Problem> {
        let found = self.workspaces.get(&caller.key.coach_id).await?;
        found.ok_or_else(|| Problem::internal("read a workspace", "the key's workspace is missing"))
    }
}
