//! Whole records of calendars.

use domain::fact::CalendarSaved;
use store::StoreError;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};
use crate::outcome::{Next, Outcome};

/// Stores a calendar, unless the stored state is newer. A fact of the same time applies. Events that were stored before
/// the calendar get its buffers, page by page.
pub(crate) struct Save<'a>(pub(crate) &'a CalendarSaved);

impl FactCommand for Save<'_> {
    type Snapshot = ();
    type Rest = ();

    async fn read(&self, _: &FactStore, _: Context<'_>) -> Result<(), Stop> {
        Ok(())
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, (): ()) -> Decision<()> {
        if !fact.is_first {
            return Decision::Follow(());
        }
        let put = app.calendars.put(&self.0.coach_id, &self.0.calendar(), fact.occurred_at);
        Decision::Commit(Unit::new().write([put]), ())
    }

    async fn after(&self, app: &FactStore, _: Context<'_>, (): ()) -> Result<Outcome, StoreError> {
        let is_done = app.bookings.give_buffers(&self.0.coach_id, self.0.calendar_id).await?;
        Ok(if is_done { Outcome::Stored } else { Outcome::Continues(Next::Rest(Some("calendar".to_owned()))) })
    }
}
