//! `POST /v1/crm/bookings`: books a slot if the calendar offers it.

use axum::extract::State;
use axum::response::Response;
use domain::booking::{self, BookingDraft, BookingOutcome, CalendarEvent};
use domain::change::Change;
use domain::id::{CalendarEventId, new_uuid};
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use store::booking::BookingRead;

use crate::App;
use crate::render::{booking_event, booking_view, problem_of};

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    app.runner.answer(&app.gate, &inbound, &Create { app: &app, inbound: &inbound, random: random_bytes() }).await
}

struct Create<'a> {
    app: &'a App,
    inbound: &'a Inbound,
    random: [u8; 10],
}

impl Command for Create<'_> {
    type Caller = CrmCaller;
    type Snapshot = (BookingDraft, BookingRead);

    async fn read(&self, caller: &CrmCaller) -> Result<Self::Snapshot, Problem> {
        let draft = BookingDraft::parse(crm::body(self.inbound)?)?;
        let bookings = &self.app.bookings;
        let found = bookings.read_booking(&caller.coach, draft.lead_id, draft.calendar_id, draft.date).await?;
        Ok((draft, found))
    }

    fn decide(&self, caller: &CrmCaller, (draft, found): &Self::Snapshot) -> Result<Decision, Problem> {
        let calendar = found.calendar.as_ref().map(|found| &found.calendar);
        let busy =
            booking::create(draft, found.lead.lead(), calendar, &found.busy.all(), caller.now).map_err(problem_of)?;
        let id = CalendarEventId(new_uuid(caller.now.ms(), self.random));
        let event = CalendarEvent::booked(id, draft, &busy, caller.now);
        let view = booking_view(&event, found.calendar.as_slice(), caller)?;
        let change = Change::booking_created(&caller.coach, &view);
        let emitted = booking_event(caller, (draft.lead_id, &found.lead), None, &event, found.calendar.as_slice())?;
        let about = About::Contact(&caller.coach, draft.lead_id);
        Ok(Decision::reply(about, Reply::created(&BookingOutcome::of(view))?)
            .write(self.app.bookings.book(&caller.coach, draft.lead_id, found, &event))
            .change([change])
            .events(emitted))
    }
}
