//! Doses: schedules, logs and their deletions, in any order of the facts.

use domain::dose::{DoseSchedule, Month};
use domain::fact::DoseLogged;
use domain::id::{ClientId, DoseLogId};
use store::record::{FoundDoseLog, StoredDoseLog, StoredDoseSchedule};
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop, with_client};

/// Stores a client's dose schedule, unless the stored one is newer.
pub(crate) struct SaveSchedule<'a>(pub(crate) &'a ClientId, pub(crate) &'a DoseSchedule);

/// Stores a log. The same log counts once. Of facts that differ, the latest counts.
pub(crate) struct Log<'a>(pub(crate) &'a ClientId, pub(crate) &'a DoseLogged);

/// Deletes a log for good, even before the log itself.
pub(crate) struct DeleteLog<'a>(pub(crate) &'a ClientId, pub(crate) &'a DoseLogId);

impl FactCommand for SaveSchedule<'_> {
    type Snapshot = Option<StoredDoseSchedule>;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<Self::Snapshot, Stop> {
        Ok(with_client(app, self.0, app.records.dose_schedule(self.0)).await?.1)
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, found: Self::Snapshot) -> Decision<()> {
        let at = fact.occurred_at;
        if found.as_ref().is_some_and(|found| found.saved_at > at) {
            return Decision::Nothing;
        }
        let writes = app.records.put_dose_schedule(self.0, self.1, found.as_ref(), at, fact.due_mark());
        Decision::Commit(Unit::new().write(writes), ())
    }
}

impl FactCommand for Log<'_> {
    type Snapshot = FoundDoseLog;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<FoundDoseLog, Stop> {
        let log = app.records.dose_log(self.0, &self.1.dose_log, Some(Month::of(self.1.date)));
        Ok(with_client(app, self.0, log).await?.1)
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, found: FoundDoseLog) -> Decision<()> {
        let next = found.log.logged(self.1, fact.occurred_at);
        put_log(app, self.0, found, next, fact)
    }
}

impl FactCommand for DeleteLog<'_> {
    type Snapshot = FoundDoseLog;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<FoundDoseLog, Stop> {
        Ok(with_client(app, self.0, app.records.dose_log(self.0, self.1, None)).await?.1)
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, found: FoundDoseLog) -> Decision<()> {
        let next = found.log.tombstone();
        put_log(app, self.0, found, next, fact)
    }
}

fn put_log(
    app: &FactStore,
    client: &ClientId,
    found: FoundDoseLog,
    next: Option<StoredDoseLog>,
    fact: Context<'_>,
) -> Decision<()> {
    let Some(next) = next else { return Decision::Nothing };
    Decision::Commit(Unit::new().write(app.records.put_dose_log(client, found, next, fact.due_mark())), ())
}
