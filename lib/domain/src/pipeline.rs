//! Pipelines: the ordered stages of opportunities. The application owns them; the API works on the pipeline that the
//! coach configured.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::fact_values::{name, named};
use crate::id::{PipelineId, StageId};

pub const MAX_STAGES: usize = 200;

/// A pipeline's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    pub pipeline_id: PipelineId,
    pub name: String,
    /// In the order in which opportunities pass through them. Ids are unique.
    pub stages: Vec<Stage>,
    /// Stages that were won stages once: an opportunity in a removed won stage stays won.
    #[serde(skip)]
    pub won_once: BTreeSet<StageId>,
}

/// One stage of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    pub id: StageId,
    #[serde(deserialize_with = "name")]
    pub name: String,
    #[serde(deserialize_with = "named")]
    pub kind: StageKind,
}

crate::named! {
    /// The kind of a stage.
    StageKind {
        Open = "open",
        /// Paid for. Payments alone bring an opportunity here.
        Won = "won",
        Lost = "lost",
    }
}

impl Pipeline {
    /// Returns the kind of a stage. `None`: the pipeline has no such stage.
    pub fn kind_of(&self, stage: &StageId) -> Option<StageKind> {
        self.stages.iter().find(|known| known.id == *stage).map(|known| known.kind)
    }

    /// Returns the kind of a stage, including removed won stages.
    pub fn last_known_kind(&self, stage: &StageId) -> Option<StageKind> {
        self.kind_of(stage).or_else(|| self.won_once.contains(stage).then_some(StageKind::Won))
    }

    pub fn won(&self) -> impl Iterator<Item = &StageId> {
        self.stages.iter().filter(|stage| stage.kind == StageKind::Won).map(|stage| &stage.id)
    }

    /// Returns the stages that callers may choose: all but won stages, which need a payment.
    pub fn selectable_stages(&self) -> Vec<StageId> {
        let open = self.stages.iter().filter(|stage| stage.kind != StageKind::Won);
        open.map(|stage| stage.id.clone()).collect()
    }

    /// Returns the stage of new opportunities, by the name that the coach configured. The stage must be open.
    pub fn initial_stage(&self, configured: &str) -> Option<&StageId> {
        let stage = self.stages.iter().find(|stage| stage.id.as_str() == configured)?;
        (stage.kind == StageKind::Open).then_some(&stage.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_begin_in_a_stage_that_is_there_and_open() {
        let stage = |id: &str, kind| Stage { id: StageId::parse(id).unwrap(), name: id.to_owned(), kind };
        let stages = vec![stage("new", StageKind::Open), stage("won", StageKind::Won), stage("lost", StageKind::Lost)];
        let pipeline = Pipeline {
            pipeline_id: PipelineId::parse("p").unwrap(),
            name: "Sales".to_owned(),
            stages,
            won_once: BTreeSet::new(),
        };
        let initial = |configured| pipeline.initial_stage(configured).map(StageId::as_str);
        assert_eq!(initial("new"), Some("new"));
        for bad in ["won", "lost", "New", "gone", ""] {
            assert_eq!(initial(bad), None, "{bad}");
        }
        assert_eq!(pipeline.kind_of(&StageId::parse("lost").unwrap()), Some(StageKind::Lost));
    }
}
