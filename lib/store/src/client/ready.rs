//! A client that something is about to change. What was due by then has been told of it as it stood: a check-in that comes a minute after
//! its deadline swallows nothing. What changes goes to the client's watch in the same transaction.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::TransactWriteItem;
use chrono::NaiveDate;
use domain::client::Client;
use domain::fact_time::FactTime;
use domain::id::ClientId;
use domain::time::Timestamp;
use futures::future::try_join;

use super::{Clients, MAX_ROUNDS, Standing, StoredClient};
use crate::db::{StoreError, stand_back};
use crate::watch::{Said, Watch, Watches};

/// How something was told.
#[derive(Debug, Clone, Copy)]
pub struct Telling {
    /// When it was said.
    pub at: FactTime,
    /// Part of a first synchronisation, of which no event is told.
    pub backfill: bool,
    pub now: Timestamp,
}

/// A client whom something may happen to now.
pub(crate) struct Ready {
    pub(crate) stored: StoredClient,
    watched: Watched,
}

/// What came of storing the last date with a daily log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLog {
    /// In the place of the watch that was read.
    Stored,
    /// Unless a later one was there, whatever else the watch was.
    Raised,
    /// The watch has changed since it was read.
    Lost,
}

/// A client's watch, by which all that was due has been told.
pub(crate) struct Watched {
    watch: Watch,
    said: Said,
    watches: Watches,
}

impl Clients {
    /// The client, once all that was due is told of it.
    pub(crate) async fn ready(&self, id: &ClientId, telling: Telling) -> Result<Standing<Ready>, StoreError> {
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let (standing, watch) = try_join(self.standing(id), self.sweeper.watches().get(id)).await?;
            let stored = match standing {
                Standing::Known(stored) => stored,
                Standing::Unknown => return Ok(Standing::Unknown),
                Standing::Erased => return Ok(Standing::Erased),
            };
            let watch = watch.unwrap_or_else(|| Watch::new(&stored.client, telling.now));
            if let Some(watched) = self.caught_up(id, watch, telling).await? {
                return Ok(Standing::Known(Ready { stored, watched }));
            }
        }
        Err(StoreError::kept_changing("the client's watch"))
    }

    /// The last date with a daily log, as far as the client's watch has it.
    pub(crate) async fn last_daily_log_on(&self, id: &ClientId) -> Result<Option<NaiveDate>, StoreError> {
        Ok(self.sweeper.watches().get(id).await?.and_then(|watch| watch.last_daily_log_on()))
    }

    /// A client's watch as it was read; `None` where something was to be told first, and it is to be read anew.
    pub(super) async fn caught_up(
        &self,
        id: &ClientId,
        watch: Watch,
        Telling { backfill, now, .. }: Telling,
    ) -> Result<Option<Watched>, StoreError> {
        let watches = self.sweeper.watches();
        let coach = watches.coach(&watch.coach_id).await?;
        if self.sweeper.catch_up(id, &watch, &coach, (now, backfill)).await? {
            return Ok(None);
        }
        let said = Said { now, backfill, is_watched: coach.is_watched };
        Ok(Some(Watched { watch, said, watches: watches.clone() }))
    }
}

impl Ready {
    /// Part of a transaction: the client's watch, where this is another to it.
    pub(crate) fn follow(&mut self, client: &Client) -> Option<TransactWriteItem> {
        self.watched.follow(client)
    }

    /// Part of a transaction: items of the client's doses come to these versions. Nothing where nobody watches: the first pass over the
    /// clients comes after whoever saw it so has ended.
    pub(crate) fn change_doses(&mut self, versions: BTreeMap<String, u64>) -> Option<TransactWriteItem> {
        let Watched { watch, said, watches } = &mut self.watched;
        watch.change_doses(versions, *said);
        said.is_watched.then(|| watches.put(watch))
    }

    /// The last date with a daily log, as far as the watch has it.
    pub(crate) fn last_daily_log_on(&self) -> Option<NaiveDate> {
        self.watched.watch.last_daily_log_on()
    }

    /// Stores the last date with a daily log. Where nobody watches, a later one takes the place of whatever is there: a history of logs,
    /// told at once, need not wait for one another.
    pub(crate) async fn log_daily(&mut self, last: Option<NaiveDate>) -> Result<LastLog, StoreError> {
        let Watched { watch, said, watches } = &mut self.watched;
        if let Some(later) = last.filter(|last| !said.is_watched && watch.last_daily_log_on() < Some(*last)) {
            watches.raise_daily_log(&self.stored.client.id, later).await?;
            return Ok(LastLog::Raised);
        }
        watch.log_daily(last, *said);
        Ok(if watches.save(watch).await? { LastLog::Stored } else { LastLog::Lost })
    }
}

impl Watched {
    /// Part of a transaction: the watch, where this is another to it.
    pub(super) fn follow(&mut self, client: &Client) -> Option<TransactWriteItem> {
        self.watch.follow(client, self.said).then(|| self.watches.put(&self.watch))
    }
}
