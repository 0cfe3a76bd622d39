//! Opportunities: a possible sale to a contact, and its place in a pipeline.
//!
//! The application writes the whole record; the API writes a name, a value or a place in the pipeline. The latest write
//! wins, per field ([`register`](crate::register)). The stage determines whether an opportunity is open, won or lost,
//! so a rearranged pipeline also changes its opportunities.

mod draft;
mod rule;

use serde::{Deserialize, Serialize};

use crate::fact_time::FactTime;
use crate::fact_values::{cents, name, optional_text};
use crate::id::{CoachId, ContactId, OpportunityId, PipelineId, StageId};
use crate::pipeline::{Pipeline, StageKind};
use crate::register::{Register, registers};
use crate::time::Timestamp;

pub use draft::{
    MAX_LOST_REASON_CHARS, MAX_OPPORTUNITY_NAME_CHARS, MAX_VALUE_CENTS, OpportunityDraft, OpportunityPatch,
};
pub use rule::{OpportunityRefusal, apply};

/// Limit of the reason in a fact.
const MAX_REASON_CHARS: usize = 10_000;

/// The whole record of an opportunity, as the application has it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct OpportunitySaved {
    pub opportunity_id: OpportunityId,
    pub coach_id: CoachId,
    pub contact_id: ContactId,
    #[serde(deserialize_with = "name")]
    pub name: String,
    #[serde(deserialize_with = "cents")]
    pub value_cents: u64,
    pub pipeline_id: PipelineId,
    pub stage: StageId,
    #[serde(deserialize_with = "optional_text::<MAX_REASON_CHARS, _>")]
    pub lost_reason: Option<String>,
}
crate::discreet! { OpportunitySaved }

/// An opportunity as stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opportunity {
    pub id: OpportunityId,
    pub contact_id: ContactId,
    pub name: String,
    pub value_cents: u64,
    #[serde(flatten)]
    pub place: Place,
    /// The last reason that the API gave a stage which the application chose. It applies until a later write names
    /// another stage: older facts may lead away from that stage, and back to it.
    pub stage_reason: Option<Place>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub registers: OpportunityRegisters,
}
crate::discreet! { Opportunity }

/// The place of an opportunity in a pipeline. Pipeline, stage and reason only make sense together.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub pipeline_id: PipelineId,
    pub stage: StageId,
    /// The reason why the opportunity was lost. The application may keep one with a stage that is not lost; then the
    /// API hides it.
    pub lost_reason: Option<String>,
}
crate::discreet! { Place }

registers! {
    /// The last write of each field. The API sets the contact when it creates the opportunity, and never changes it.
    pub OpportunityRegisters { contact, name, value, place, stage_reason }
}

/// An opportunity as the API shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Opportunity)]
pub struct OpportunityView {
    /// Names the opportunity in every other request. Store it.
    pub id: OpportunityId,
    /// The contact of the opportunity. It may have been merged into another since.
    pub contact_id: ContactId,
    /// The name of the opportunity.
    pub name: String,
    /// The value of the opportunity, in cents.
    pub value_cents: u64,
    /// The pipeline that the opportunity is in. The API changes opportunities of the coach's chosen pipeline only.
    pub pipeline_id: PipelineId,
    /// The id of a stage of the pipeline.
    pub stage: StageId,
    /// The kind of the stage: `open`, `won` or `lost`.
    pub status: StageKind,
    /// Null unless the opportunity is lost.
    #[schema(required)]
    pub lost_reason: Option<String>,
    /// When the opportunity was created, or when the service received it from the application.
    pub created_at: Timestamp,
    /// When the opportunity last changed, or when the service received the change from the application.
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
            place: Place { pipeline_id: pipeline.pipeline_id.clone(), stage: initial_stage.clone(), lost_reason: None },
            stage_reason: None,
            created_at: now,
            updated_at: now,
            registers: OpportunityRegisters::whole(Register::by_api(now)),
        }
    }

    /// Returns the opportunity after the application's whole record, a fact of the time `at`. Values that the API has
    /// set since then stay. `None`: the fact changes nothing.
    pub fn apply_fact(known: Option<&Self>, saved: &OpportunitySaved, at: FactTime, now: Timestamp) -> Option<Self> {
        let place = Place {
            pipeline_id: saved.pipeline_id.clone(),
            stage: saved.stage.clone(),
            lost_reason: saved.lost_reason.clone(),
        };
        let mut applied = known.cloned().unwrap_or_else(|| Self {
            id: saved.opportunity_id,
            contact_id: saved.contact_id,
            name: String::new(),
            value_cents: 0,
            place: place.clone(),
            stage_reason: None,
            created_at: now,
            updated_at: now,
            registers: OpportunityRegisters::default(),
        });
        let registers = &mut applied.registers;
        registers.contact.offer(&mut applied.contact_id, saved.contact_id, at);
        registers.name.offer(&mut applied.name, saved.name.clone(), at);
        registers.value.offer(&mut applied.value_cents, saved.value_cents, at);
        registers.place.offer(&mut applied.place, place, at);
        if let Some(known) = known.filter(|known| applied.differs(known)) {
            applied.updated_at = known.later(now);
        }
        (known != Some(&applied)).then_some(applied)
    }

    /// Returns true if a field that is shown differs.
    fn differs(&self, other: &Self) -> bool {
        self.view(None) != other.view(None)
    }

    /// Returns the reason in force: the reason of the place, unless the API gave the same stage another one since.
    fn lost_reason(&self) -> Option<&str> {
        let given = self.stage_reason.as_ref().filter(|given| {
            (&given.pipeline_id, &given.stage) == (&self.place.pipeline_id, &self.place.stage)
                && self.registers.stage_reason.set_at() > self.registers.place.set_at()
        });
        given.unwrap_or(&self.place).lost_reason.as_deref()
    }

    /// Returns the status by the present pipeline. A won opportunity stays won if its stage is gone, because it was
    /// paid for. If the pipeline or the stage is unknown, a reason means lost.
    pub fn status(&self, pipeline: Option<&Pipeline>) -> StageKind {
        let pipeline = pipeline.filter(|pipeline| pipeline.pipeline_id == self.place.pipeline_id);
        let unplaced = if self.lost_reason().is_some() { StageKind::Lost } else { StageKind::Open };
        pipeline.and_then(|pipeline| pipeline.last_known_kind(&self.place.stage)).unwrap_or(unplaced)
    }

    /// Returns the opportunity as the API shows it.
    pub fn view(&self, pipeline: Option<&Pipeline>) -> OpportunityView {
        let status = self.status(pipeline);
        OpportunityView {
            id: self.id,
            contact_id: self.contact_id,
            name: self.name.clone(),
            value_cents: self.value_cents,
            pipeline_id: self.place.pipeline_id.clone(),
            stage: self.place.stage.clone(),
            status,
            lost_reason: self.lost_reason().filter(|_| status == StageKind::Lost).map(str::to_owned),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    /// Returns the time of the last write, of the application or the API. The application's clock may be ahead.
    pub fn last_written_at(&self) -> Timestamp {
        self.registers.last_write().max(self.updated_at)
    }

    /// Returns the time of a write through the API in the order of writes: after every known write, even if a later
    /// request committed first.
    fn write_time(&self, now: Timestamp) -> Timestamp {
        now.after(self.last_written_at())
    }

    /// Returns the time of a change that is shown, after the previous change.
    fn later(&self, now: Timestamp) -> Timestamp {
        now.after(self.updated_at)
    }
}

#[cfg(test)]
mod tests;
