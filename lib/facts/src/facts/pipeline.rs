//! Whole records of pipelines.

use domain::fact::PipelineSaved;
use domain::fact_time::FactTime;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};

/// Stores a pipeline. If the stored state is newer, only the stages that were won are added. A fact of the same time
/// applies.
pub(crate) struct Save<'a>(pub(crate) &'a PipelineSaved);

impl FactCommand for Save<'_> {
    /// The time of the fact that set the stored pipeline.
    type Snapshot = Option<FactTime>;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<Self::Snapshot, Stop> {
        Ok(app.pipelines.set_at(&self.0.coach_id, &self.0.pipeline_id).await?)
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, found: Self::Snapshot) -> Decision<()> {
        match app.pipelines.put(&self.0.coach_id, &self.0.pipeline(), fact.occurred_at, found) {
            Some(put) => Decision::Commit(Unit::new().write([put]), ()),
            None => Decision::Nothing,
        }
    }
}
