//! Opportunities: a possible sale to a contact, and its place in a pipeline.
//!
//! The application writes the whole record; the API writes a name, a value or a place in the pipeline. The latest write
//! wins, per field. The stage determines whether an opportunity is open, won or lost, so a rearranged pipeline also
//! changes its opportunities.

mod draft;
mod rule;

use serde::{Deserialize, Serialize};

use crate::fact::OpportunitySaved;
use crate::fact_time::FactTime;
use crate::id::{ContactId, OpportunityId, PipelineId, StageId};
use crate::pipeline::{Pipeline, StageKind};
use crate::time::Timestamp;

pub use draft::{
    MAX_LOST_REASON_CHARS, MAX_OPPORTUNITY_NAME_CHARS, MAX_VALUE_CENTS, OpportunityDraft, OpportunityPatch,
};
pub use rule::{OpportunityRefusal, apply};

/// An opportunity as stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opportunity {
    pub id: OpportunityId,
    pub contact_id: ContactId,
    pub name: String,
    pub value_cents: u64,
    pub pipeline_id: PipelineId,
    pub stage: StageId,
    /// The reason why the opportunity was lost. The application may keep one with a stage that is not lost; then the
    /// API hides it.
    pub lost_reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub times: OpportunityTimes,
}
crate::discreet! { Opportunity }

/// When each field was last written. An older write changes nothing.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpportunityTimes {
    /// When the application wrote the whole record. Absent if it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_at: Option<FactTime>,
    /// When the API set the contact, which it never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_at: Option<Timestamp>,
    /// When the API set the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_at: Option<Timestamp>,
    /// When the API set the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_at: Option<Timestamp>,
    /// When the API set pipeline, stage and reason, which only make sense together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place_at: Option<Timestamp>,
    /// A reason that the API set without the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonSet>,
}
crate::discreet! { OpportunityTimes }

/// A reason that the API gave a stage which the application chose. It applies until a later write names another stage:
/// older facts may lead away from that stage, and back to it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonSet {
    pub pipeline_id: PipelineId,
    pub stage: StageId,
    pub text: String,
    pub at: Timestamp,
}
crate::discreet! { ReasonSet }

impl OpportunityTimes {
    /// Returns the latest of all times.
    fn last(&self) -> Option<Timestamp> {
        let Self { whole_at, contact_at, name_at, value_at, place_at, reason } = self;
        let reason_at = reason.as_ref().map(|reason| reason.at);
        [whole_at.map(FactTime::timestamp), *contact_at, *name_at, *value_at, *place_at, reason_at]
            .into_iter()
            .flatten()
            .max()
    }
}

/// An opportunity as the API shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Opportunity)]
pub struct OpportunityView {
    pub id: OpportunityId,
    pub contact_id: ContactId,
    pub name: String,
    pub value_cents: u64,
    pub pipeline_id: PipelineId,
    /// The id of a stage of the pipeline.
    pub stage: StageId,
    /// The kind of the stage: `open`, `won` or `lost`.
    pub status: StageKind,
    /// Null unless the opportunity is lost.
    #[schema(required)]
    pub lost_reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
crate::discreet! { OpportunityView }

/// The answer that shows one opportunity.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct OpportunityResult {
    pub opportunity: OpportunityView,
}

impl Opportunity {
    /// Creates an opportunity in the first stage. Without a name it takes the contact's.
    pub fn create(
        id: OpportunityId,
        draft: &OpportunityDraft,
        contact_name: &str,
        pipeline: &Pipeline,
        initial_stage: &StageId,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            contact_id: draft.contact_id,
            name: draft.name.as_deref().unwrap_or(contact_name).to_owned(),
            value_cents: draft.value_cents.unwrap_or(0),
            pipeline_id: pipeline.pipeline_id.clone(),
            stage: initial_stage.clone(),
            lost_reason: None,
            created_at: now,
            updated_at: now,
            times: OpportunityTimes {
                whole_at: None,
                contact_at: Some(now),
                name_at: Some(now),
                value_at: Some(now),
                place_at: Some(now),
                reason: None,
            },
        }
    }

    /// Returns the opportunity after the application's whole record, a fact of the time `at`. Values that the API has
    /// set since then stay. `None`: the known record is newer.
    pub fn apply_fact(known: Option<&Self>, saved: &OpportunitySaved, at: FactTime, now: Timestamp) -> Option<Self> {
        let times = known.map(|known| known.times.clone()).unwrap_or_default();
        if times.whole_at > Some(at) {
            return None;
        }
        let mut saved_now = Self {
            id: saved.opportunity_id,
            contact_id: saved.contact_id,
            name: saved.name.clone(),
            value_cents: saved.value_cents,
            pipeline_id: saved.pipeline_id.clone(),
            stage: saved.stage.clone(),
            lost_reason: saved.lost_reason.clone(),
            created_at: known.map_or(now, |known| known.created_at),
            updated_at: known.map_or(now, |known| known.updated_at),
            times: OpportunityTimes { whole_at: Some(at), ..times },
        };
        let Some(known) = known else { return Some(saved_now) };
        let times = &known.times;
        let since = |set_at: Option<Timestamp>| set_at.map(FactTime::from) > Some(at);
        if since(times.contact_at) {
            saved_now.contact_id = known.contact_id;
        }
        if since(times.name_at) {
            saved_now.name.clone_from(&known.name);
        }
        if since(times.value_at) {
            saved_now.value_cents = known.value_cents;
        }
        if since(times.place_at) {
            saved_now.pipeline_id.clone_from(&known.pipeline_id);
            saved_now.stage.clone_from(&known.stage);
            saved_now.lost_reason.clone_from(&known.lost_reason);
        }
        if let Some(reason) = times.reason.as_ref().filter(|reason| since(Some(reason.at)))
            && (&reason.pipeline_id, &reason.stage) == (&saved_now.pipeline_id, &saved_now.stage)
        {
            saved_now.lost_reason = Some(reason.text.clone());
        }
        if saved_now.differs(known) {
            saved_now.updated_at = known.later(now);
        }
        Some(saved_now)
    }

    /// Returns true if any field but the write times differs.
    fn differs(&self, other: &Self) -> bool {
        Self { times: other.times.clone(), ..self.clone() } != *other
    }

    /// Returns the status by the present pipeline. A won opportunity stays won if its stage is gone, because it was
    /// paid for. If the pipeline or the stage is unknown, a reason means lost.
    pub fn status(&self, pipeline: Option<&Pipeline>) -> StageKind {
        let pipeline = pipeline.filter(|pipeline| pipeline.pipeline_id == self.pipeline_id);
        let unplaced = if self.lost_reason.is_some() { StageKind::Lost } else { StageKind::Open };
        pipeline.and_then(|pipeline| pipeline.last_known_kind(&self.stage)).unwrap_or(unplaced)
    }

    /// Returns the opportunity as the API shows it.
    pub fn view(&self, pipeline: Option<&Pipeline>) -> OpportunityView {
        let status = self.status(pipeline);
        OpportunityView {
            id: self.id,
            contact_id: self.contact_id,
            name: self.name.clone(),
            value_cents: self.value_cents,
            pipeline_id: self.pipeline_id.clone(),
            stage: self.stage.clone(),
            status,
            lost_reason: self.lost_reason.clone().filter(|_| status == StageKind::Lost),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    /// Returns the time of a change: after every known write, even if a later request committed first.
    fn later(&self, now: Timestamp) -> Timestamp {
        now.after(self.times.last().map_or(self.updated_at, |set_at| set_at.max(self.updated_at)))
    }
}

#[cfg(test)]
mod tests;
