//! Check-ins: submitted, reviewed, deleted, in any order of the facts. A review that arrives before its check-in waits
//! in the check-in's item. A deletion is permanent. The client's own item has the time of the latest check-in.

use domain::automation::{Automation, check_in_events};
use domain::check_in::CheckInSubmitted;
use domain::client::Client;
use domain::event::EventType;
use domain::id::{CheckInId, ClientId};
use domain::time::Timestamp;
use futures::future::try_join;
use store::Write;
use store::client::StoredClient;
use store::record::FoundCheckIn;
use store::unit::Unit;
use store::watch::WatchUpdate;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop, with_client};
use crate::facts::emission::automations;

/// The events that a check-in may emit.
const CHECK_IN_EVENTS: [EventType; 3] =
    [EventType::CheckInSubmitted, EventType::LowCheckInScore, EventType::SystemGradeDrop];

/// Stores a check-in. Emits its events the first time, unless it is part of a backfill.
pub(crate) struct Submit<'a>(pub(crate) &'a ClientId, pub(crate) &'a CheckInSubmitted);

/// Stores the review of a check-in, even before the check-in itself.
pub(crate) struct Review<'a> {
    pub(crate) client: &'a ClientId,
    pub(crate) check_in: &'a CheckInId,
    pub(crate) reviewed_at: Timestamp,
}

/// Deletes a check-in for good, even before the check-in itself.
pub(crate) struct Delete<'a>(pub(crate) &'a ClientId, pub(crate) &'a CheckInId);

pub(crate) struct Submission {
    client: StoredClient,
    found: FoundCheckIn,
    automations: Vec<Automation>,
    /// The client's latest check-in after the fact.
    latest: Option<Timestamp>,
}

impl FactCommand for Submit<'_> {
    type Snapshot = Submission;
    type Rest = ();

    async fn read(&self, app: &FactStore, fact: Context<'_>) -> Result<Submission, Stop> {
        let (client, found) = with_client(app, self.0, app.records.check_in(self.0, &self.1.check_in)).await?;
        let latest = app.records.latest_check_in(&client.client, &found.record, Some(self.1.submitted_at));
        let is_silent = is_silent(&found, fact);
        let automations = automations(app, &client.client, &CHECK_IN_EVENTS, is_silent);
        let (latest, automations) = try_join(latest, automations).await?;
        Ok(Submission { client, found, automations, latest })
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, snapshot: Submission) -> Decision<()> {
        let Submission { client, found, automations, latest } = snapshot;
        let Self(id, check_in) = self;
        let Some(next) = found.record.submitted(check_in.submitted_at, fact.occurred_at) else {
            return Decision::Nothing;
        };
        let (mut grades, times) = (found.grades.clone(), found.record.times(check_in.submitted_at));
        let drops = grades.apply(&check_in.check_in, times, &check_in.grades, fact.backfill);
        let put_grades = || app.records.put_grades(id, &grades, &found);
        let is_emitted = !is_silent(&found, fact);
        let events = is_emitted.then(|| check_in_events(&client.client, check_in, &drops, &automations));
        let unit = Unit::new()
            .write([app.records.put_check_in(next)])
            .write(set_latest(app, &client, latest, fact))
            .write((!check_in.grades.is_empty()).then(put_grades))
            .events(events.into_iter().flatten());
        Decision::Commit(unit, ())
    }
}

impl FactCommand for Review<'_> {
    type Snapshot = FoundCheckIn;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<FoundCheckIn, Stop> {
        let (_, found) = with_client(app, self.client, app.records.check_in(self.client, self.check_in)).await?;
        Ok(found)
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, found: FoundCheckIn) -> Decision<()> {
        let Some(next) = found.record.reviewed(self.reviewed_at, fact.occurred_at) else { return Decision::Nothing };
        let writes = [app.records.put_check_in(next), app.clients.check_not_erased(self.client)];
        Decision::Commit(Unit::new().write(writes), ())
    }
}

impl FactCommand for Delete<'_> {
    type Snapshot = (StoredClient, FoundCheckIn, Option<Timestamp>);
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<Self::Snapshot, Stop> {
        let (client, found) = with_client(app, self.0, app.records.check_in(self.0, self.1)).await?;
        let latest = app.records.latest_check_in(&client.client, &found.record, None).await?;
        Ok((client, found, latest))
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, (client, found, latest): Self::Snapshot) -> Decision<()> {
        if found.record.deleted {
            return Decision::Nothing;
        }
        let mut grades = found.grades.clone();
        grades.forget(self.1);
        let unit = Unit::new()
            .write([app.records.put_check_in(found.record.tombstone(self.0))])
            .write(set_latest(app, &client, latest, fact))
            .write(found.has_grades().then(|| app.records.put_grades(self.0, &grades, &found)));
        Decision::Commit(unit, ())
    }
}

/// Returns true if a submission emits nothing: it is a correction, or part of a backfill.
fn is_silent(found: &FoundCheckIn, fact: Context<'_>) -> bool {
    found.record.submitted_at.is_some() || fact.backfill
}

/// Parts of a transaction: set the time of the client's latest check-in, in the record and in the watch.
fn set_latest(
    app: &FactStore,
    stored: &StoredClient,
    latest: Option<Timestamp>,
    fact: Context<'_>,
) -> impl Iterator<Item = Write> {
    let client = &stored.client;
    let change = WatchUpdate::between(client, &Client { latest_check_in_at: latest, ..client.clone() });
    let watch = change.map(|change| app.watches.change(&client.id, change, fact.due_mark()));
    std::iter::once(app.clients.set_latest_check_in(stored, latest)).chain(watch)
}
