//! The data of the CRM's events, except the contact. No free text: a reason why an opportunity was lost never leaves.

use serde::{Deserialize, Serialize};

use crate::booking::{Booking, BookingStatus};
use crate::id::{CalendarEntryId, CalendarId, ContactId, OpportunityId, PipelineId, StageId};
use crate::opportunity::OpportunityView;
use crate::pipeline::StageKind;
use crate::time::Timestamp;

crate::named! {
    /// The creator of a contact.
    ContactSource {
        CrmApi = "crm_api",
        Application = "application",
    }
    /// A member of a contact.
    ContactField {
        Name = "name",
        Email = "email",
        Phone = "phone",
        DoNotContact = "do_not_contact",
        Marketing = "marketing",
        ClientId = "client_id",
    }
    /// A member of an opportunity, other than its place in a pipeline.
    OpportunityField {
        Name = "name",
        ValueCents = "value_cents",
        ContactId = "contact_id",
    }
}

/// `contact_created`: a contact was created by the API or in the application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContactCreated {
    /// When the contact was created, as its `createdAt` has it.
    pub created_at: Timestamp,
    pub source: ContactSource,
}

/// `contact_updated`: members of a contact changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContactUpdated {
    /// The members that changed.
    pub changed: Vec<ContactField>,
    /// When the contact changed, as its `updatedAt` has it.
    pub updated_at: Timestamp,
}

/// `contact_merged`: a contact was merged into the contact that the event names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContactMerged {
    /// The contact that was merged away.
    pub merged: MergedContactRef,
}

/// A contact that was merged away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MergedContactRef {
    /// Names the contact that was merged away. Replace it by `contact.id` of the event.
    pub id: ContactId,
}

/// `opportunity_created`: an opportunity was created by the API or in the application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpportunityCreated {
    pub opportunity: OpportunityRef,
    /// When the opportunity was created, as its `createdAt` has it.
    pub created_at: Timestamp,
}

/// `opportunity_updated`: members of an opportunity changed, but not its stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpportunityUpdated {
    pub opportunity: OpportunityRef,
    /// The members that changed.
    pub changed: Vec<OpportunityField>,
    /// When the opportunity changed, as its `updatedAt` has it.
    pub updated_at: Timestamp,
}

/// `opportunity_stage_changed`: an opportunity moved to another stage, or to another pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpportunityStageChanged {
    pub opportunity: OpportunityRef,
    /// The pipeline before.
    pub from_pipeline_id: PipelineId,
    /// The stage before.
    pub from_stage: StageId,
    /// The status before.
    pub from_status: StageKind,
    /// The members that changed with the stage. Empty if none did.
    pub changed: Vec<OpportunityField>,
    /// When the opportunity changed, as its `updatedAt` has it.
    pub updated_at: Timestamp,
}

/// An opportunity after its change.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpportunityRef {
    /// Names the opportunity in requests that read or change it.
    pub id: OpportunityId,
    /// With contact details only: a name may name a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// The value of the opportunity, in cents.
    pub value_cents: u64,
    /// The pipeline that the opportunity is in.
    pub pipeline_id: PipelineId,
    /// The id of a stage of the pipeline.
    pub stage: StageId,
    /// The kind of the stage: `open`, `won` or `lost`.
    pub status: StageKind,
}
crate::discreet! { OpportunityRef }

impl OpportunityRef {
    pub(super) fn of(opportunity: &OpportunityView) -> Self {
        Self {
            id: opportunity.id,
            name: Some(opportunity.name.clone()),
            value_cents: opportunity.value_cents,
            pipeline_id: opportunity.pipeline_id.clone(),
            stage: opportunity.stage.clone(),
            status: opportunity.status,
        }
    }
}

/// `data` of `booking_created` and `booking_cancelled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BookingEvent {
    pub booking: BookingRef,
}

/// `booking_rescheduled`: the calendar, the start or the end of a booking changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BookingRescheduled {
    pub booking: BookingRef,
    /// The start before.
    pub previous_starts_at: Timestamp,
}

/// A booking after its change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BookingRef {
    /// Names the booking in requests that read, reschedule or cancel it.
    pub id: CalendarEntryId,
    /// The calendar on which the time is booked.
    pub calendar_id: CalendarId,
    /// When the booking begins.
    pub starts_at: Timestamp,
    /// When the booking ends.
    pub ends_at: Timestamp,
    /// The calendar's zone, by its IANA name.
    pub timezone: String,
    pub status: BookingStatus,
}

impl BookingRef {
    pub(super) fn of(booking: &Booking) -> Self {
        Self {
            id: booking.id,
            calendar_id: booking.calendar_id,
            starts_at: booking.starts_at,
            ends_at: booking.ends_at,
            timezone: booking.timezone.clone(),
            status: booking.status,
        }
    }
}
