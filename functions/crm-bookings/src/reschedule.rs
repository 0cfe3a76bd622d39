//! `PATCH /v1/crm/bookings/{id}`: moves a booking to another slot of its calendar.

use axum::extract::State;
use axum::response::Response;
use domain::booking::{self, BookingOutcome, BookingRefusal, Move, RescheduleDraft};
use domain::change::Change;
use domain::id::CalendarEventId;
use domain::time::Timestamp;
use domain::tz::Tz;
use edge::crm::{Write, WriteContext, WriteResult};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use store::StoreError;
use store::booking::ChangeRead;
use store::calendar::{find, zone_of};

use crate::App;
use crate::render::{booking_view, problem_of};

pub(crate) async fn reschedule(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Reschedule(&app)).await
}

struct Reschedule<'a>(&'a App);

/// The booking that a request names, and its new slot.
pub(crate) struct Rescheduling {
    booking: CalendarEventId,
    draft: RescheduleDraft,
}

impl Write for Reschedule<'_> {
    type Request = Rescheduling;
    type Found = ChangeRead;

    fn parse(&self, inbound: &Inbound) -> Result<Rescheduling, Problem> {
        let booking = crm::path_id(inbound, CalendarEventId::parse)?;
        Ok(Rescheduling { booking, draft: RescheduleDraft::parse(crm::body(inbound)?)? })
    }

    async fn read(&self, caller: &CrmCaller, rescheduling: &Rescheduling) -> Result<ChangeRead, StoreError> {
        let Rescheduling { booking, draft } = rescheduling;
        self.0.bookings.read_change(&caller.coach, *booking, draft.lead_id, Some(draft.date)).await
    }

    async fn commit(
        &self,
        context: &WriteContext<'_>,
        rescheduling: &Rescheduling,
        found: ChangeRead,
    ) -> Result<WriteResult, Problem> {
        let caller = context.caller;
        let to = decide(&found, rescheduling, caller.time_zone.zone()?, caller.now).map_err(problem_of)?;
        let event =
            found.event.as_ref().map(|found| &found.event).ok_or_else(|| problem_of(BookingRefusal::UnknownBooking))?;
        let previous = event.span.starts_at;
        // Repeating the API's own move emits no change.
        let is_change = to != Move::Unchanged || !event.is_time_set_by_api();
        let event = match to {
            Move::Unchanged => event.reconfirmed(caller.now),
            Move::To(busy) => event.moved(&busy, caller.now),
        };
        let view = booking_view(&event, &found.calendars, caller)?;
        let emitted = || Change::booking_rescheduled(&caller.coach, &view, previous, event.last_written_at());
        let change = is_change.then(emitted);
        let reply = Reply::ok(&BookingOutcome::moved_from(view, previous))?;
        let write = context.crm_write(rescheduling.draft.lead_id, &reply, change);
        Ok(WriteResult::Committed { committed: self.0.bookings.change(&found, &event, &write).await?, reply })
    }
}

fn decide(
    found: &ChangeRead,
    rescheduling: &Rescheduling,
    workspace_zone: Tz,
    now: Timestamp,
) -> Result<Move, BookingRefusal> {
    let event = found.event.as_ref().map(|found| &found.event);
    let on = event.and_then(|event| event.calendar_id);
    let calendar = find(&found.calendars, on).map(|found| &found.calendar);
    let zone = zone_of(&found.calendars, on, workspace_zone);
    let others = found.busy.without(rescheduling.booking);
    booking::reschedule(&rescheduling.draft, found.lead, event, calendar, zone, &others, now)
}
