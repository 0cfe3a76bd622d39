//! `POST /v1/crm/bookings`: books a slot if the calendar offers it.

use axum::extract::State;
use axum::response::Response;
use domain::booking::{self, BookingDraft, BookingOutcome, CalendarEvent};
use domain::change::Change;
use domain::id::{CalendarEventId, new_uuid};
use edge::crm::{Write, WriteContext, WriteResult};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use store::StoreError;
use store::booking::BookingRead;

use crate::App;
use crate::render::{booking_view, problem_of};

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Create(&app)).await
}

struct Create<'a>(&'a App);

impl Write for Create<'_> {
    type Request = BookingDraft;
    type Found = BookingRead;

    fn parse(&self, inbound: &Inbound) -> Result<BookingDraft, Problem> {
        Ok(BookingDraft::parse(crm::body(inbound)?)?)
    }

    async fn read(&self, caller: &CrmCaller, draft: &BookingDraft) -> Result<BookingRead, StoreError> {
        self.0.bookings.read_booking(&caller.coach, draft.lead_id, draft.calendar_id, draft.date).await
    }

    async fn commit(
        &self,
        context: &WriteContext<'_>,
        draft: &BookingDraft,
        found: BookingRead,
    ) -> Result<WriteResult, Problem> {
        let caller = context.caller;
        let calendar = found.calendar.as_ref().map(|found| &found.calendar);
        let busy = booking::create(draft, found.lead, calendar, &found.busy.all(), caller.now).map_err(problem_of)?;
        let id = CalendarEventId(new_uuid(caller.now.ms(), random_bytes()));
        let event = CalendarEvent::booked(id, draft, &busy, caller.now);
        let view = booking_view(&event, found.calendar.as_slice(), caller)?;
        let change = Change::booking_created(&caller.coach, &view);
        let reply = Reply::created(&BookingOutcome::of(view))?;
        let write = context.crm_write(draft.lead_id, &reply, Some(change));
        Ok(WriteResult::Committed { committed: self.0.bookings.book(&found, &event, &write).await?, reply })
    }
}
