//! What the writes have in common: how a refusal is told, and what an answer leaves behind.

use domain::booking::{Booking, CalendarEvent, Refusal};
use domain::id::ContactId;
use domain::idempotency::RETENTION;
use edge::idempotency::Outcome;
use edge::{CrmCaller, Problem, Reply};
use store::StoreError;
use store::booking::ChangeRead;
use store::calendar::zone_of;
use store::claim::Claim;
use store::contact_ref::ContactRef;

use crate::App;

/// A refusal as it is told.
pub(crate) fn refused(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::UnknownLead => Problem::NotFound("contact"),
        Refusal::LeadMerged(into) => Problem::ContactMerged(into),
        Refusal::UnknownBooking => Problem::NotFound("booking"),
        Refusal::UnknownCalendar => Problem::NotFound("calendar"),
        Refusal::CheckoutRequired(booking_url) => Problem::CheckoutRequired(booking_url),
        Refusal::SlotUnavailable => Problem::SlotUnavailable,
        Refusal::NotActive => Problem::BookingNotActive,
    }
}

/// Answers for a write that had nothing to do.
pub(crate) async fn unchanged(
    app: &App,
    caller: &CrmCaller,
    lead: ContactId,
    claim: &Claim,
    reply: Reply,
) -> Result<Outcome, Problem> {
    let about = ContactRef::new(&caller.coach, lead);
    let finished = app.claims.finish(claim, &reply.to_answer(), Some(&about), RETENTION, caller.now).await?;
    if finished { Ok(Outcome::Recorded(reply)) } else { Err(Problem::IdempotencyInProgress) }
}

/// A booking as it is shown by the wall clock of its calendar.
pub(crate) fn shown(event: &CalendarEvent, read: &ChangeRead, caller: &CrmCaller) -> Result<Booking, Problem> {
    let zone = zone_of(&read.calendars, event.calendar_id, caller.time_zone);
    event.view(zone).ok_or_else(|| refused(Refusal::UnknownBooking))
}

/// What is said of a write that met others each time that it was tried: nothing of it has happened.
pub(crate) fn kept_changing() -> Problem {
    let source = "what it was decided by kept changing".into();
    StoreError::Unavailable { operation: "TransactWriteItems", source }.into()
}
