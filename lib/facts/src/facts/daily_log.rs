//! Dates of the daily log: of the facts about a date, the latest counts, in any order of arrival.

use std::future::ready;

use chrono::NaiveDate;
use domain::id::ClientId;
use futures::future::try_join;
use store::StoreError;
use store::unit::Unit;
use store::watch::{WatchUpdate, WatchWrite};

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop, with_client};
use crate::outcome::Outcome;

/// Stores a date. The date and the client's watch are written side by side, because a year's item is too large for a
/// transaction on every day: these facts are the most. A fact that fails in between arrives again and repeats both
/// writes. Its mark is looked up first and written last.
pub(crate) struct Save<'a>(pub(crate) &'a ClientId, pub(crate) NaiveDate);

/// Deletes a date's log.
pub(crate) struct Delete<'a>(pub(crate) &'a ClientId, pub(crate) NaiveDate);

impl FactCommand for Save<'_> {
    /// The fact was stored before.
    type Snapshot = bool;
    type Rest = ();

    async fn read(&self, app: &FactStore, fact: Context<'_>) -> Result<bool, Stop> {
        Ok(with_client(app, self.0, app.facts.is_seen(fact.id, fact.now)).await?.1)
    }

    fn decide(&self, _: &FactStore, _: Context<'_>, is_seen: bool) -> Decision<()> {
        if is_seen { Decision::Nothing } else { Decision::Follow(()) }
    }

    async fn after(&self, app: &FactStore, fact: Context<'_>, (): ()) -> Result<Outcome, StoreError> {
        let Self(client, date) = *self;
        let watch = app.watches.change_alone(client, WatchUpdate::daily_log(date), fact.due_mark());
        let (is_written, watched) = try_join(app.records.save_date_now(client, date, fact.occurred_at), watch).await?;
        if !is_written {
            // A later fact has set the date, and may have deleted its log: the next evaluation looks up the latest
            // date.
            app.watches.change_alone(client, WatchUpdate::daily_log_deleted(), fact.due_mark()).await?;
        }
        if watched == WatchWrite::Missing {
            app.clients.restore_watch(client, fact.now).await?;
        }
        Ok(if is_written { Outcome::Stored } else { Outcome::Unchanged })
    }
}

impl FactCommand for Delete<'_> {
    type Snapshot = ();
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<(), Stop> {
        with_client(app, self.0, ready(Ok(()))).await?;
        Ok(())
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, (): ()) -> Decision<()> {
        let date = app.records.delete_date(self.0, self.1, fact.occurred_at);
        let watch = app.watches.change(self.0, WatchUpdate::daily_log_deleted(), fact.due_mark());
        Decision::Commit(Unit::new().write([date, watch]), ())
    }
}
