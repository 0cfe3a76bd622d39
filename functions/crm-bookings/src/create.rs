//! `POST /v1/crm/bookings`: books a slot if the calendar offers it.

use domain::booking::{self, BookingDraft, BookingOutcome, CalendarEntry};
use domain::change::Change;
use domain::id::{CalendarEntryId, new_uuid};
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use store::booking::BookingRead;

use crate::App;
use crate::render::{booking_event, booking_view, problem_of};

pub(crate) struct Create;

/// The draft, the records that decide the booking, and the random part of its id.
pub(crate) struct CreateRead {
    draft: BookingDraft,
    found: BookingRead,
    random: [u8; 10],
}

impl Command for Create {
    type App = App;
    type Caller = CrmCaller;
    type Snapshot = CreateRead;

    async fn read(app: &App, caller: &CrmCaller, inbound: &Inbound) -> Result<CreateRead, Problem> {
        let draft = BookingDraft::parse(crm::body(inbound)?)?;
        let bookings = &app.bookings;
        let found = bookings.read_booking(&caller.coach, draft.lead_id, draft.calendar_id, draft.date).await?;
        Ok(CreateRead { draft, found, random: random_bytes() })
    }

    fn decide(app: &App, caller: &CrmCaller, read: &CreateRead) -> Result<Decision, Problem> {
        let CreateRead { draft, found, random } = read;
        let calendar = found.calendar.as_ref().map(|found| &found.calendar);
        let busy =
            booking::create(draft, found.lead.lead(), calendar, &found.busy.all(), caller.now).map_err(problem_of)?;
        let id = CalendarEntryId(new_uuid(caller.now.ms(), *random));
        let event = CalendarEntry::booked(id, draft, &busy, caller.now);
        let view = booking_view(&event, found.calendar.as_slice(), caller)?;
        let change = Change::booking_created(&caller.coach, &view);
        let emitted = booking_event(caller, (draft.lead_id, &found.lead), None, &event, found.calendar.as_slice())?;
        let about = About::Contact(&caller.coach, draft.lead_id);
        Ok(Decision::reply(about, Reply::created(&BookingOutcome::of(view))?)
            .write(app.bookings.book(&caller.coach, draft.lead_id, found, &event))
            .change([change])
            .events(emitted))
    }
}
